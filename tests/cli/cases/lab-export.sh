# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
small="--steps 2 --layers 1 --width 16 --heads 2 --batch 2"
quiet lab train --task copy --scheme t5 $small -o run
quiet lab train --task text --scheme t5 --length 16 $small -o text
# Into a new folder, and again over itself.
quiet lab export run -o some/where
quiet lab export run -o some/where
ls some/where
# Not over another model, by whoever.
model bert
quiet lab export run -o bert
quiet lab export text -o some/where
ls some/where bert
# One that fails leaves nothing.
quiet lab export run -o file/x 2>/dev/null
mkdir -p runs/copy
cp -r run runs/copy/t5 && mkdir half half/runs half/runs/copy half/runs/copy/a half/runs/copy/b
mv runs/copy/t5 half/runs/copy/a/seed1
cp -r half/runs/copy/a/seed1 half/runs/copy/b/seed1
echo broken >half/runs/copy/b/seed1/checkpoint.safetensors
quiet lab export half -o made/deep
[ -e made ] || echo "nothing is made"
# What a file says is shown as text, in one line.
sed 's/"positions": "plain"/"positions": "\\u001b[31m\\nforged"/' run/run.json >run.json
cp run.json run/run.json
quiet lab export run -o other
