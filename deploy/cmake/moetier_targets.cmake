# One function makes every library of the house, so that warnings, include root and sanitizers are
# the same everywhere.
set(MOETIER_WARNINGS -Wall -Wextra -Wconversion -Wshadow)

add_library(moetier_flags INTERFACE)
target_include_directories(moetier_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_options(moetier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${MOETIER_WARNINGS}>)
# Arithmetic is ours to order: no contraction, so that a fused multiply-add stands only where
# std::fma is written.
target_compile_options(moetier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# An assertion names schemas/base/..., not the machine that built it.
target_compile_options(moetier_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>)
if(MOETIER_SANITIZE)
  target_compile_options(moetier_flags INTERFACE
    -fsanitize=${MOETIER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(moetier_flags INTERFACE -fsanitize=${MOETIER_SANITIZE})
endif()
if(MOETIER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MOETIER_FUZZ needs clang, which brings libFuzzer; this is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  # Coverage that libFuzzer is led by; its main() is linked by the targets alone (tests/fuzz).
  target_compile_options(moetier_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(MOETIER_SANITIZE)
  # CAF's headers bind null references, which UBSAN and libstdc++'s assertions both stop at. Whoever
  # links CAF, and only they, does without.
  target_compile_options(CAF::core INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null;-U_GLIBCXX_ASSERTIONS>)
endif()

# moetier_library(name SOURCES... DEPENDS... PRIVATE_DEPENDS...): a static library of one folder.
# The flags come first, so that what a dependency switches off stays off.
function(moetier_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE moetier_flags)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
endfunction()

# moetier_relocatable(target folders): the program or library looks for its libraries, and for theirs, in folders
# relative to itself before it asks the system: deploy/bundle.sh puts them there.
function(moetier_relocatable target folders)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${folders}")
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endfunction()

# moetier_capnp(target files...): one static library of the C++ code of Cap'n Proto schemas. Who
# links it includes "schemas/NAME.capnp.h"; the headers lie in a folder of their own, as system
# headers, so that our warnings stay ours.
function(moetier_capnp target)
  set(CAPNPC_SRC_PREFIX ${CMAKE_SOURCE_DIR})
  set(CAPNPC_OUTPUT_DIR ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${CAPNPC_OUTPUT_DIR})
  capnp_generate_cpp(sources headers ${ARGN})
  add_library(${target} STATIC ${sources} ${headers})
  target_include_directories(${target} SYSTEM PUBLIC ${CAPNPC_OUTPUT_DIR})
  target_link_libraries(${target} PUBLIC CapnProto::capnp)
endfunction()

# moetier_embed(source function header namespace files...): a source in the binary folder whose
# function gives the files' names and texts; it is written anew when one of them changes.
function(moetier_embed source function header namespace)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${source})
  set(script ${CMAKE_SOURCE_DIR}/deploy/cmake/embed_files.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DFUNCTION=${function}" "-DHEADER=${header}"
      "-DNAMESPACE=${namespace}" "-DFILES=${files}" -P ${script}
    DEPENDS ${files} ${script} VERBATIM)
endfunction()

# moetier_test(name SOURCES... DEPENDS... [SERIAL] [TIMEOUT seconds]): one test program. SERIAL for
# tests that start processes. What is tested is optimised, the tests' own code only lightly: it is
# half of what a build compiles.
function(moetier_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE
    moetier_flags ${ARG_DEPENDS} GTest::gtest GTest::gtest_main GTest::gmock)
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  add_test(NAME ${name} COMMAND ${name})
  moetier_test_limits(${name} "${ARG_TIMEOUT}" "${ARG_SERIAL}")
endfunction()

# moetier_test_limits(name seconds serial): the limits of a ctest test; "" = 120 seconds. Sanitized
# programs get four times as long.
function(moetier_test_limits name seconds serial)
  if(NOT seconds)
    set(seconds 120)
  endif()
  if(MOETIER_SANITIZE)
    math(EXPR seconds "${seconds} * 4")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
  if(MOETIER_SANITIZE MATCHES thread)
    # UCX's memory hooks and the race detector's crash each other when a thread ends.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT UCX_MEM_EVENTS=n)
  endif()
  if(serial)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# moetier_targets_below(out folder...): the names of all libraries and programs that these folders'
# CMakeLists.txt made.
function(moetier_targets_below out)
  set(found)
  foreach(folder IN LISTS ARGN)
    get_property(here DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    list(APPEND found ${here})
    if(below)
      moetier_targets_below(deeper ${below})
      list(APPEND found ${deeper})
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# The product's targets, and `product`: everything but the tests.
set(MOETIER_PRODUCT_FOLDERS schemas eplb kernels transport workers coordinator actors)
function(moetier_product_targets out)
  list(TRANSFORM MOETIER_PRODUCT_FOLDERS PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE folders)
  moetier_targets_below(targets ${folders})
  set(${out} ${targets} PARENT_SCOPE)
endfunction()
function(moetier_product_target)
  moetier_product_targets(targets)
  add_custom_target(product)
  add_dependencies(product ${targets})
endfunction()
