# SPDX-License-Identifier: Apache-2.0
#     cmake -DWEB=web -DSCRIPTS=dom,switch -DOUT=page.html -P join-page.cmake
# WEB/explain.html with @STYLE@, @SCRIPT@ and @POLICY@ filled in; what else stands between @ is left to the program.
# The scripts share a scope, so imports and exports fall away; comments are for whoever reads web/js.

function(read_text variable file)
  file(READ ${file} text)
  string(REGEX REPLACE "/[*]([^*]|[*]+[^*/])*[*]+/" "" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# 'sha256-...': three bytes of the digest are four letters.
function(hash_of variable text)
  set(letters "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 digest "${text}")
  string(APPEND digest "00")
  set(encoded "")
  foreach(first RANGE 0 60 6)
    string(SUBSTRING ${digest} ${first} 6 three)
    foreach(shift 18 12 6 0)
      math(EXPR letter "(0x${three} >> ${shift}) & 63")
      string(SUBSTRING ${letters} ${letter} 1 letter)
      string(APPEND encoded ${letter})
    endforeach()
  endforeach()
  string(REGEX REPLACE ".$" "=" encoded ${encoded})
  set(${variable} "'sha256-${encoded}'" PARENT_SCOPE)
endfunction()

set(style "")
foreach(name explain switch)
  read_text(text ${WEB}/${name}.css)
  string(APPEND style "${text}")
endforeach()

set(script "")
string(REPLACE "," ";" names ${SCRIPTS})
foreach(name ${names})
  read_text(text ${WEB}/js/${name}.js)
  string(REGEX REPLACE "\n[ \t]*//[^\n]*" "" text "\n${text}")
  string(REGEX REPLACE "\nimport [^\n]*" "" text "${text}")
  string(REGEX REPLACE "\nexport " "\n" text "${text}")
  string(APPEND script "${text}")
endforeach()
set(script "(() => {\n${script}\n})();\n")
string(REGEX REPLACE "\n[ \t\n]+" "\n" script "${script}")

hash_of(style_hash "${style}")
hash_of(script_hash "${script}")
file(READ ${WEB}/explain.html page)
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
string(REPLACE "@POLICY@" "default-src 'none'; script-src ${script_hash}; style-src ${style_hash}; img-src data:; base-uri 'none'; form-action 'none'" page "${page}")
file(WRITE ${OUT} "${page}")
