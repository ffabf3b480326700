# Reads the machine code of kernels/: baseline objects must run on any x86-64, and an object built
# for a wider set must define nothing that the linker could pick for baseline code.
# -D OBJDUMP= -D NM= -D OBJECTS=a|b|c
string(REPLACE "|" ";" objects "${OBJECTS}")
set(wide 0)
foreach(object IN LISTS objects)
  if(object MATCHES "_avx2\\.cpp")
    math(EXPR wide "${wide} + 1")
    execute_process(COMMAND ${NM} -C ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "[^\n]* [Wu] [^\n]*" shared "${symbols}")
    if(shared)
      message(SEND_ERROR "${object} defines a symbol that other units share:\n${shared}")
    endif()
  else()
    execute_process(
      COMMAND ${OBJDUMP} -d --no-show-raw-insn ${object}
      OUTPUT_VARIABLE code COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "[^\n]*(%[yz]mm|\tv[a-z]+ )[^\n]*" instruction "${code}")
    if(instruction)
      message(SEND_ERROR "${object} holds a wider instruction:\n${instruction}")
    endif()
  endif()
endforeach()
if(wide EQUAL 0)
  message(SEND_ERROR "no object built for a wider instruction set among: ${objects}")
endif()
