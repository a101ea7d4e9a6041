# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# What a misspelt word probably meant: in files and on the command line.
python3 - <<'END'
import casefile
def case(name, change, **options):
    tensors, metadata = casefile.plain(**options)
    change(tensors, metadata)
    casefile.write(name, tensors, metadata)
case("key", lambda t, m: m.update(casual="1"))
case("key-of-the-scheme", lambda t, m: m.update(pairng="half"), scheme="rope")
case("far-key", lambda t, m: m.update(temperature="1"))
case("scheme", lambda t, m: m.update(scheme="transformer-xl"))
case("far-scheme", lambda t, m: m.update(scheme="mamba"))
case("tensor", lambda t, m: t.update(keymask=("U8", (1, 4), [1, 1, 1, 1])))
case("gradient", lambda t, m: t.update(dou=casefile.ramp(1, 2, 4, 4)))
case("far-tensor", lambda t, m: t.update(weights=casefile.ramp(1, 2, 4, 4)))
END
for file in key key-of-the-scheme far-key scheme far-scheme tensor gradient far-tensor; do
    try attend $file
done
try explain --scheme t5 --length 4 --option bukets=8
try plot rope --option pairng=half
try plot rop
try plot rope --lenght 5
try bench --lenth 5
try attend case --cheek
