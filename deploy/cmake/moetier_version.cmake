# moetier_version.hpp in the build tree: the project's version and the commit it was configured from
# ("unknown" outside git). Written only when it changes; one source file should include it, so that
# a new commit recompiles one file.
set(MOETIER_COMMIT unknown)
if(EXISTS ${CMAKE_SOURCE_DIR}/.git)
  find_program(GIT_PROGRAM git)
  mark_as_advanced(GIT_PROGRAM)
  if(GIT_PROGRAM)
    execute_process(
      COMMAND ${GIT_PROGRAM} describe --always --dirty --abbrev=12 --exclude *
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
      OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND described)
      set(MOETIER_COMMIT ${described})
    endif()
  endif()
endif()
configure_file(
  ${CMAKE_CURRENT_LIST_DIR}/moetier_version.hpp.in ${CMAKE_BINARY_DIR}/moetier_version.hpp @ONLY)
