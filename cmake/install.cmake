# SPDX-License-Identifier: Apache-2.0
# Headers, both libraries, the program, pkg-config and CMake packages; and the way back.

# What is installed, and nothing else: `make install` builds this.
add_custom_target(locus-product DEPENDS locus locus-static)
if(TARGET locus-mpi)
  add_dependencies(locus-product locus-mpi locus-mpi-static)
endif()
if(TARGET locus-cli)
  add_dependencies(locus-product locus-cli locus-generated)
endif()

if(NOT LOCUS_INSTALL)
  return()
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/locus)

install(DIRECTORY include/locus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h
  PATTERN mpi.h EXCLUDE)
install(TARGETS locus locus-static EXPORT locus-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}) # liblocus.dll
if(TARGET locus-cli)
  install(TARGETS locus-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT locus-targets NAMESPACE locus:: DESTINATION ${package_dir})
configure_package_config_file(cmake/locus-config.cmake.in ${PROJECT_BINARY_DIR}/locus-config.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break callers.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/locus-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/locus-config.cmake
  ${PROJECT_BINARY_DIR}/locus-config-version.cmake DESTINATION ${package_dir})

# Relative to itself, so that the prefix may move.
file(RELATIVE_PATH pc_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
string(JOIN " " pc_threads ${LOCUS_THREAD_FLAGS})
configure_file(cmake/locus.pc.in ${PROJECT_BINARY_DIR}/locus.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/locus.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Attention over ranks: find_package(locus COMPONENTS mpi), pkg-config locus-mpi.
if(TARGET locus-mpi)
  if(TARGET locus-mpi-cli)
    add_dependencies(locus-product locus-mpi-cli)
    install(TARGETS locus-mpi-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  install(FILES include/locus/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/locus)
  install(TARGETS locus-mpi locus-mpi-static EXPORT locus-mpi-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT locus-mpi-targets NAMESPACE locus:: DESTINATION ${package_dir})
  # How programs are compiled with this MPI.
  list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE pc_mpi_cflags)
  string(JOIN " " pc_mpi_cflags ${pc_mpi_cflags})
  string(JOIN " " pc_mpi_libs ${MPI_C_LIBRARIES})
  configure_file(cmake/locus-mpi.pc.in ${PROJECT_BINARY_DIR}/locus-mpi.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/locus-mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

add_custom_target(uninstall COMMAND ${CMAKE_COMMAND}
  -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)
