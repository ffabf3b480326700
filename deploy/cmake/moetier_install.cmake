# `cmake --install BUILD --prefix P`: the program, its carrier module, libmoetier for those who link
# it (pkg-config and CMake), the Python package, units, examples. Everything finds the rest by where
# it lies itself, so P may be moved as a whole.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Libraries; modules are looked for in ../lib of the program")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS moetier RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS moetier_ucx LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/moetier)
install(TARGETS moetier_abi EXPORT moetier LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set_target_properties(moetier_abi PROPERTIES EXPORT_NAME moetier)
install(FILES ${CMAKE_SOURCE_DIR}/transport/client/abi/moetier.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/python/moetier DESTINATION ${CMAKE_INSTALL_LIBDIR}/python
  PATTERN __pycache__ EXCLUDE)

set(package ${CMAKE_BINARY_DIR}/package)
configure_file(${CMAKE_SOURCE_DIR}/deploy/package/moetier.pc.in ${package}/moetier.pc @ONLY)
install(FILES ${package}/moetier.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_file(${CMAKE_SOURCE_DIR}/deploy/package/moetierConfig.cmake ${package}/moetierConfig.cmake COPYONLY)
write_basic_package_version_file(${package}/moetierConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${package}/moetierConfig.cmake ${package}/moetierConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moetier)
install(EXPORT moetier NAMESPACE moetier:: FILE moetierTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/moetier)

foreach(unit moetier-coordinator.service moetier-worker@.service)
  # The prefix of the install, which --prefix may change after the configure.
  install(CODE "
    set(CMAKE_INSTALL_FULL_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    set(CMAKE_INSTALL_FULL_DOCDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/deploy/systemd/${unit}.in\" \"${package}/${unit}\" @ONLY)")
  install(FILES ${package}/${unit} DESTINATION ${CMAKE_INSTALL_LIBDIR}/systemd/system)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/moetier.sysusers
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/sysusers.d RENAME moetier.conf)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/deploy/examples ${CMAKE_SOURCE_DIR}/deploy/environments
  DESTINATION ${CMAKE_INSTALL_DATADIR}/moetier)
# What an integrator builds on: the guide, its programs, the RPC schema for those who link nothing.
install(FILES schemas/tier.capnp DESTINATION ${CMAKE_INSTALL_DATADIR}/moetier/schemas)
install(DIRECTORY transport/client/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/moetier/client
  PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
install(FILES transport/client/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME client.md)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES deploy/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME deploy.md)
