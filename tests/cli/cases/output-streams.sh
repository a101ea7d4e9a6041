# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# A standard stream that is closed does not become a file of the program.
quiet lab train --task copy --scheme t5 --steps 3 --layers 1 --width 16 --batch 2 -o lab 2>&-
python3 -c 'import json; print([json.loads(line).get("step") for line in open("lab/log.jsonl")])'
golden none/plain.safetensors
"$LOCUS" attend case.safetensors -o out.safetensors >&- 2>&- <&-
echo "exit $?"
quiet inspect out.safetensors
"$LOCUS" plot t5 -o out.svg >&- <&-
echo "exit $?"
head -c 4 out.svg
echo
# Progress is for terminals.
quiet lab train --task copy --scheme t5 --steps 3 --layers 1 --width 16 --batch 2 -o quiet 2>messages
cat messages
ls
