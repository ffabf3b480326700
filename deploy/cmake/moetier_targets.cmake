# One function makes every library of the house, so that warnings, include root and sanitizers are the same everywhere.
set(MOETIER_WARNINGS -Wall -Wextra -Wconversion -Wshadow)

add_library(moetier_flags INTERFACE)
target_include_directories(moetier_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_options(moetier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${MOETIER_WARNINGS}>)
# Arithmetic is ours to order: no contraction, so that a fused multiply-add stands only where std::fma is written.
target_compile_options(moetier_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(MOETIER_SANITIZE)
  target_compile_options(moetier_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MOETIER_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  target_link_options(moetier_flags INTERFACE -fsanitize=${MOETIER_SANITIZE})
endif()

# moetier_library(name SOURCES... DEPENDS...): a static library of one folder.
function(moetier_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE moetier_flags ${ARG_PRIVATE_DEPENDS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
endfunction()

# moetier_test(name SOURCES... DEPENDS... [SERIAL]): one test program. SERIAL for tests that start processes.
function(moetier_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE moetier_flags ${ARG_DEPENDS} GTest::gtest GTest::gtest_main GTest::gmock)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# moetier_capnp(target files...): one static library of the C++ code of Cap'n Proto schemas. Who links it includes
# "schemas/NAME.capnp.h"; the headers lie in a folder of their own, as system headers, so that our warnings stay ours.
function(moetier_capnp target)
  set(CAPNPC_SRC_PREFIX ${CMAKE_SOURCE_DIR})
  set(CAPNPC_OUTPUT_DIR ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${CAPNPC_OUTPUT_DIR})
  capnp_generate_cpp(sources headers ${ARGN})
  add_library(${target} STATIC ${sources} ${headers})
  target_include_directories(${target} SYSTEM PUBLIC ${CAPNPC_OUTPUT_DIR})
  target_link_libraries(${target} PUBLIC CapnProto::capnp)
endfunction()
