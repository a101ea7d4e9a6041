# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# Pictures are whole XML documents with the tokens and terms in them.
set -- --scheme transformer_xl --tokens "the <cat> & mat"
quiet explain "$@" -o all.svg
quiet explain "$@" --query 1 -o row.svg
quiet explain "$@" --query 1 --key 0 -o pair.svg
quiet explain --scheme t5 --length 300 --query 299 -o long.svg
quiet explain --scheme t5 --length 300 -o many.svg
python3 - <<'END'
import os
import xml.etree.ElementTree as tree
for name in ["all", "row", "pair", "long", "many"]:
    text = " ".join(tree.parse(name + ".svg").getroot().itertext())
    assert "nan" not in text.lower().split(), name
    wanted = ["content", "bias"] if name in ("long", "many") else ["content-position", "u.k", "w.r"]
    wanted += ["<cat>"] if name in ("all", "row") else []
    for word in wanted:
        assert word in text, (name, word)
    assert os.path.getsize(name + ".svg") < 3000000
print(*sorted(os.listdir(".")))
END
