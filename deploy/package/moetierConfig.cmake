# find_package(moetier): the target moetier::moetier, libmoetier with its header moetier.h.
include(${CMAKE_CURRENT_LIST_DIR}/moetierTargets.cmake)
