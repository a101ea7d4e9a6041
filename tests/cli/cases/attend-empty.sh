# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# No query, no key, all masked: results without numbers, or without finite ones.
python3 - <<'END'
import casefile
tensors, metadata = casefile.plain()
tensors["q"] = casefile.ramp(1, 2, 0, 4)
casefile.write("no-query.safetensors", tensors, metadata)
tensors["q"] = casefile.ramp(1, 2, 4, 4)
tensors["key_mask"] = "U8", (1, 4), [0, 0, 0, 0]
casefile.write("no-key.safetensors", tensors, metadata)
END
for name in no-query no-key; do
    "$LOCUS" attend $name.safetensors -o out.safetensors --threads 1 >report
    echo "exit $?"
    sed 1,2d report
    "$LOCUS" attend $name.safetensors -o out.safetensors --json | grep '"name"'
done
