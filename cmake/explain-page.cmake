# SPDX-License-Identifier: Apache-2.0
# The page that `locus explain -o page.html` fills in: web/explain.html with its styles and scripts in one file, which
# cli/explain_page.c puts into the program. Its policy names the hashes of its one style and its one script.

set(explain_page_scripts dom switch_numbers switch_picture switch explain_page)
set(explain_page_parts ${PROJECT_SOURCE_DIR}/web/explain.html ${PROJECT_SOURCE_DIR}/web/explain.css
  ${PROJECT_SOURCE_DIR}/web/switch.css)
foreach(name ${explain_page_scripts})
  list(APPEND explain_page_parts ${PROJECT_SOURCE_DIR}/web/js/${name}.js)
endforeach()
set(explain_page ${PROJECT_BINARY_DIR}/explain-page.html)

add_custom_command(OUTPUT ${explain_page}
  COMMAND ${CMAKE_COMMAND} -DSCRIPTS=dom,switch_numbers,switch_picture,switch,explain_page
    -DWEB=${PROJECT_SOURCE_DIR}/web -DOUT=${explain_page} -P ${PROJECT_SOURCE_DIR}/cmake/join-page.cmake
  DEPENDS ${explain_page_parts} ${PROJECT_SOURCE_DIR}/cmake/join-page.cmake VERBATIM)
add_custom_target(locus-explain-page DEPENDS ${explain_page})
add_dependencies(locus-cli locus-explain-page)
set_source_files_properties(cli/explain_page.c PROPERTIES OBJECT_DEPENDS ${explain_page}
  COMPILE_DEFINITIONS EXPLAIN_PAGE_FILE="${explain_page}")
