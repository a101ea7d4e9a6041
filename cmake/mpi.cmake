# SPDX-License-Identifier: Apache-2.0
# liblocus_mpi: attention over ranks, where there is an MPI for C. liblocus and the program do
# without.
if(LOCUS_MPI)
  find_package(MPI COMPONENTS C QUIET)
endif()
if(LOCUS_MPI AND MPI_C_FOUND)
  locus_try(LOCUS_MPI_WORKS "#include <mpi.h>
int main(int argc, char **argv) { return argc > 9 ? MPI_Init(&argc, &argv) : 0; }" MPI::MPI_C)
endif()
if(LOCUS_MPI AND LOCUS_MPI_WORKS)
  file(GLOB mpi_sources CONFIGURE_DEPENDS src/mpi/*.c)
  add_library(locus-mpi-objects OBJECT ${mpi_sources})
  target_include_directories(locus-mpi-objects PUBLIC include PRIVATE src)
  target_link_libraries(locus-mpi-objects PRIVATE locus-flags locus-threads MPI::MPI_C)

  # What it shares with liblocus below the public interface, which that does not export: core.
  add_library(locus-mpi SHARED $<FILTER:$<TARGET_OBJECTS:locus-objects>,INCLUDE,/src/core/>)
  set_target_properties(locus-mpi PROPERTIES OUTPUT_NAME locus_mpi EXPORT_NAME mpi
    VERSION ${PROJECT_VERSION} SOVERSION ${locus_soversion}
    INSTALL_RPATH "$ORIGIN" # liblocus is beside it
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/locus-mpi.map)
  target_link_options(locus-mpi PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/locus-mpi.map ${LOCUS_NO_UNDEFINED})
  target_link_libraries(locus-mpi PUBLIC locus MPI::MPI_C
    PRIVATE $<BUILD_INTERFACE:locus-flags> $<BUILD_INTERFACE:locus-threads> m ${LOCUS_THREAD_FLAGS})

  add_library(locus-mpi-static STATIC)
  set_target_properties(locus-mpi-static PROPERTIES OUTPUT_NAME locus_mpi EXPORT_NAME mpi-static)
  target_link_libraries(locus-mpi-static PUBLIC locus-static MPI::MPI_C)

  foreach(library locus-mpi locus-mpi-static)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:locus-mpi-objects>)
  endforeach()
  add_library(locus::mpi ALIAS locus-mpi)
  add_library(locus::mpi-static ALIAS locus-mpi-static)
endif()
