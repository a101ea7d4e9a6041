# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# Files that cannot be explained: refused (3), or not to be had (4).
try explain missing.safetensors
mkdir folder picture.svg
try explain folder --text a
echo '{"not": "a case"}' >page.safetensors
try explain page.safetensors
python3 - <<'END'
import casefile
tensors, metadata = casefile.plain("none")
for name, shape in (("q", (1, 2, 0, 4)),):
    tensors[name] = casefile.ramp(*shape)
casefile.write("empty.safetensors", tensors, metadata)
open("many.txt", "w").write("word " * 100000)
open("large.txt", "w").write("word " * 300000)
open("zero.txt", "wb").write(b"word \0 word")
open("blank.txt", "w").write(" \n ")
END
try explain empty.safetensors
for text in many large zero blank missing; do
    try explain --scheme alibi --text $text.txt
done
try explain --scheme alibi --text folder
for output in nowhere/x.svg picture.svg; do
    quiet explain --scheme alibi --length 4 -o $output
done
[ -d /proc/self ] && quiet explain --scheme alibi --length 4 -o /proc/x.svg
ls
