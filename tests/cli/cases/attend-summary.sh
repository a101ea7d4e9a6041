# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# Nothing is asked for: what the file holds and what comes of it; no file is written.
golden t5/encoder.safetensors
"$LOCUS" attend case.safetensors --threads 2 >report
echo "exit $?"
sed -e '1s/, [a-z0-9]* ([^)]*),/, ISA (PATH),/' -e '/^note/d' report | awk '$1 == "result" { results = 1 }
    results && NF == 5 && $3 ~ /[0-9]/ { print $1, $2, $3, $4 < $5 ? "range" : "no range"; next } { print }'
ls
# The same without settings, remarks or expected results.
need python3
python3 -c 'import casefile; casefile.write("plain.safetensors", *casefile.plain())'
"$LOCUS" attend plain.safetensors --threads 1 --oracle | cut -c 1-52
