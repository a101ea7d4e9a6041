# SPDX-License-Identifier: Apache-2.0
# Lines whose lengths and ends cross READ_BYTES, 65536, by one both ways: as many ids as bytes and
# one more.
. "$SUPPORT/lib.sh"
need python3
tokenizer byt5
python3 - <<'END'
lengths = [65534, 0, 65535, 65536, 1, 65537, 131071, 131072, 131073, 200000, 3]
with open("lines", "w") as file:
    file.write("\n".join("a" * n for n in lengths))
with open("ended", "w") as file:
    file.write("b" * 65535 + "\n" + "c" * 65535 + "\n\n")
END
for file in lines ended; do
    "$LOCUS" tokenize byt5 --file $file --json | python3 -c '
import json, sys
print(*(len(json.loads(line)["ids"]) - 1 for line in sys.stdin))'
done
printf '' | try tokenize byt5 --file - --json
