# SPDX-License-Identifier: Apache-2.0
# `locus plot -o picture.png` draws with cairo. It is the program that links it, not the
# library; without it the program says what to install.

if(LOCUS_CAIRO)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(cairo QUIET IMPORTED_TARGET cairo)
  endif()
  if(cairo_FOUND)
    locus_try(LOCUS_CAIRO_WORKS "#include <stdio.h>
#include <cairo.h>
int main(void) { return cairo_version() > 0 ? 0 : 1; }" PkgConfig::cairo)
  endif()
  if(LOCUS_CAIRO_WORKS)
    set_source_files_properties(cli/plot_png.c PROPERTIES COMPILE_DEFINITIONS LOCUS_CAIRO)
    target_link_libraries(locus-cli PRIVATE PkgConfig::cairo)
  else()
    message(STATUS "No cairo for this target: pictures as SVG, not as PNG")
  endif()
endif()
