# SPDX-License-Identifier: Apache-2.0
# The man page and the shell completions come out of the program's own option table.

# A program for another machine runs here through CMAKE_CROSSCOMPILING_EMULATOR, or not at all.
if(locus_cross AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "Another target and no emulator: no man page and no completions")
  add_custom_target(locus-generated)
  return()
endif()

set(generated ${PROJECT_BINARY_DIR}/generated)
set(generated_files)
foreach(pair man:locus.1 bash:locus.bash zsh:_locus fish:locus.fish)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 kind)
  list(GET pair 1 file)
  add_custom_command(
    OUTPUT ${generated}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
    COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:locus-cli> --generate ${kind} > ${generated}/${file}
    DEPENDS locus-cli
    VERBATIM)
  list(APPEND generated_files ${generated}/${file})
endforeach()
add_custom_target(locus-generated ALL DEPENDS ${generated_files})

install(FILES ${generated}/locus.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${generated}/locus.bash RENAME locus
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${generated}/_locus DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${generated}/locus.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
