# moetier_cuda_code(target): what all device code is compiled with. Every object leaves behind what
# ptxas said of it, OBJECT.ptxas, which a test reads (tests/kernels/cuda/ptxas_gate.py).
function(moetier_cuda_code target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
  set_target_properties(${target} PROPERTIES
    CUDA_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/deploy/cmake/keep_ptxas_log.sh)
  set_property(GLOBAL APPEND PROPERTY MOETIER_CUDA_TARGETS ${target})
endfunction()

# moetier_cuda_objects(out): a generator expression of the objects of all device code, one list.
function(moetier_cuda_objects out)
  get_property(targets GLOBAL PROPERTY MOETIER_CUDA_TARGETS)
  set(objects)
  foreach(target IN LISTS targets)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
