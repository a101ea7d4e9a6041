# SPDX-License-Identifier: Apache-2.0
# Every picture of every scheme is well-formed, at 400 and at 1,600 pixels, whatever the tokens.
. "$SUPPORT/lib.sh"
need python3
"$LOCUS" schemes --json | sed -n 's/^    "name": "\([a-z0-9_]*\)",$/\1/p' >schemes
for scheme in $(cat schemes); do
    "$LOCUS" plot $scheme --what nothing 2>words
    for what in $(sed 's/.*it has: //; s/,//g' words); do
        for width in 400 1600; do
            "$LOCUS" plot $scheme --what $what --width $width -o $scheme-$what-$width.svg || echo "$scheme $what"
        done
    done
done
"$LOCUS" plot t5 --what attention --tokens "<b> & \" ' $(printf '\303\050 \377 \033[31m \342\200\256')" -o hostile.svg
"$LOCUS" plot shaw --theme dark -o dark.svg
python3 - <<'END'
import glob, xml.dom.minidom
files = sorted(glob.glob("*.svg"))
for name in files:
    root = xml.dom.minidom.parse(name).documentElement
    assert root.tagName == "svg" and root.getElementsByTagName("text"), name
    for kind in "title", "desc":
        assert root.getElementsByTagName(kind)[0].firstChild.data, (name, kind)
    widths = [w for w in ("400", "1600") if name.endswith("-%s.svg" % w)]
    assert not widths or root.getAttribute("width") == widths[0], name
    both = "prefers-color-scheme" in open(name).read()
    assert both == (name != "dark.svg"), name
schemes = {name.split("-")[0] for name in files if "-" in name}
assert schemes == set(open("schemes").read().split()), schemes
assert len(files) >= 2 + 2 * 5 * len(schemes) - 4, len(files)
END
