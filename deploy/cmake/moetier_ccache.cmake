# Uses ccache where it is installed and nobody chose a launcher; never required. Paths are hashed
# relative to the source tree, so that a second clone finds what the first one compiled; what is
# included is learned from the compiler, which costs a first build no extra preprocessing.
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE_PROGRAM ccache)
  mark_as_advanced(CCACHE_PROGRAM)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_DEPEND=1 ${CCACHE_PROGRAM})
  endif()
endif()
