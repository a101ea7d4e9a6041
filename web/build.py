# SPDX-License-Identifier: Apache-2.0
"""build.py LOCUS MODULE OUT: one self-contained page from the demo page that LOCUS writes, the scripts
and the style beside this file, and the WebAssembly module. The demo page's text and pictures stay as they
are, so the page reads the same with scripts off."""
import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# In the order of their imports.
SCRIPTS = ("dom", "switch_numbers", "switch_picture", "switch", "product", "board", "module", "state", "draw", "options", "controls", "repeat", "take", "explore", "live", "lessons", "found", "tables", "main")

# For whoever links to the page: card.png lies beside it.
SHARED = """<meta property="og:title" content="Where is a token? Position in attention, scheme by scheme">
<meta property="og:description" content="One head of a trained model, its positions off and on; every scheme computed in the page.">
<meta property="og:image" content="card.png">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta name="twitter:card" content="summary_large_image">
"""

HERO = """<header class="hero">
<h1>Where is a token?</h1>
<p class="about">A head of <b>%s</b>, %s. Switch its positions off, and on again; choose another word.</p>
<div id="switch-place">%s</div>
</header>
"""

# Behind the hero: what is made of the product, scheme by scheme.
BOARD = """<section id="board" aria-labelledby="board-heading">
<h2 id="board-heading">Where can a position enter?</h2>
<p>With positions added to its input, the score of a query and a key is a product of two sums, and multiplies out into four. Each scheme keeps,
drops or replaces some of them.</p>
<div id="board-place"><p>The four: content with content, content with position, position with content, position with position. The board needs scripts.</p></div>
</section>
"""

EXPLORE = """<section id="explore" aria-labelledby="explore-heading">
<h2 id="explore-heading">Explore</h2>
<p>Type a sentence, choose a scheme, move what can be moved: every number below is computed by Locus itself, in this
page. Contents and tables are made up, from a seed, and equal words have equal contents; or, with “trained on novels”, they are
those of the first layer of a small model that <code>locus lab</code> trained on text, a character a token.</p>
<div id="explore-place"><p>This part needs scripts and WebAssembly. The lessons above do without them.</p></div>
</section>
<section id="found-section" aria-labelledby="found-heading">
<h2 id="found-heading">What training found</h2>
<p>One small model per scheme, the same weights to begin with, the same rows, the same number of steps
(<code>locus lab run</code>): what becomes of each beyond the length it was trained at? First models that copy a row of symbols,
then models that read a novel. A curve ends where a scheme has no table row for the length.</p>
<div id="found-place"><p>These charts need scripts.</p></div>
</section>
<section id="tables-section" aria-labelledby="tables-heading">
<h2 id="tables-heading">What published models learned</h2>
<p>T5 and MPNet add one learned number per head and bucket of distances. These are the tables of two published models:
heads that look one token back, heads that look ahead, heads that keep away from near tokens, heads that hardly care.</p>
<div id="tables-place"><p>This chart needs scripts.</p></div>
</section>
"""


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    """A script without comments, types and indents: they are for whoever reads web/js."""
    text = re.sub(r"/\*\*.*?\*/ ?", "", text, flags=re.S)
    text = re.sub(r"^\s*//.*\n", "", text, flags=re.M)
    return re.sub(r"^\s+", "", text, flags=re.M)


def bundle():
    """The modules as one script: they share a scope, so imports and exports fall away."""
    parts, names = [], {}
    for script in SCRIPTS:
        text = read("js/%s.js" % script)
        for name in re.findall(r"^(?:export )?(?:async )?(?:const|let|class|function) (\w+)", text, re.M):
            if name in names:
                raise SystemExit("build.py: %s is declared in %s.js and %s.js" % (name, names[name], script))
            names[name] = script
        text = re.sub(r'^import [^;]*? from "\./\w+\.js";\n', "", text, flags=re.M)
        parts.append(without_comments(re.sub(r"^export ", "", text, flags=re.M)))
    return "(() => {\n" + "\n".join(parts) + "\n})();\n"


def demo_page(locus):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([locus, "demo", "--quick", "-o", folder], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "index.html"), encoding="utf-8") as file:
            return file.read()


def one_picture(page):
    """The demo page has each picture for wide and for narrow windows; one will do beside a live figure."""
    return re.sub(r'<div class="wide">\n.*?</div>\n<div class="narrow">\n(.*?)</div>', r'<div class="still">\n\1</div>',
                  page, flags=re.S)


CELL = r'<text class="(o\d+)" x="([\d.]+)" y="([\d.]+)" font-size="([\d.]+)" text-anchor="middle">([^<]*)</text>\n'


def short_numbers(page):
    """Numbers in the cells of a map say once how large they are and how they stand, which is half of their bytes."""
    def group(match):
        cells = re.findall(CELL, match[0])
        texts = "".join('<text class="%s" x="%.1f" y="%.1f">%s</text>' % (ink, float(x), float(y), text)
                        for ink, x, y, _, text in cells)
        return '<g font-size="%s" text-anchor="middle">%s</g>\n' % (cells[0][3], texts)
    same_size = CELL.replace("([\\d.]+)\" text-anchor", "(?P<size>[\\d.]+)\" text-anchor")
    return re.sub("(?:%s)(?:%s)+" % (same_size, CELL.replace("font-size=\"([\\d.]+)\"", "font-size=\"(?P=size)\"")),
                  group, page)


def inks():
    """The colours of the terms on light and on dark paper, in the order of src/plot/colour.c."""
    with open(os.path.join(HERE, "..", "src", "plot", "colour.c"), encoding="utf-8") as file:
        text = file.read()
    tables = [re.search(r"term_%s\[PLOT_TERMS\] = {([^}]*)}" % theme, text)[1] for theme in ("light", "dark")]
    return json.dumps([["#" + ink for ink in re.findall(r"0x([0-9a-f]{6})", table)] for table in tables])


def hero():
    """The position switch, as a picture until the scripts have put the live one in its place."""
    numbers = json.loads(read("switch.json"))
    with open(os.path.join(HERE, "..", "docs", "switch.svg"), encoding="utf-8") as file:
        return HERO % (numbers["title"], numbers["about"], file.read()) + BOARD


def contents(page):
    """What is not in the demo page is listed behind its lessons."""
    entries = "".join('<li><a href="#%s">%s</a></li>\n' % entry for entry in re.findall(r'<h2 id="([a-z-]*)">(.*?)</h2>', EXPLORE))
    return page.replace('<li><a href="#all">', entries + '<li><a href="#all">', 1)


def pack(path):
    with open(path, "rb") as file:
        return base64.b64encode(gzip.compress(file.read(), 9, mtime=0)).decode()


def style_hash(text):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main():
    locus, module, out = sys.argv[1:]
    page = short_numbers(one_picture(demo_page(locus)))
    page = page.replace("</style>\n</head>", read("style.css") + read("switch.css") + "</style>\n" + SHARED + "</head>", 1)
    page = re.sub("<header>\n<h1>(.*?)</h1>", lambda m: hero() + '<div class="introduction">\n<h2>%s</h2>' % m[1].split("? ")[1], page, count=1)
    page = page.replace("</nav>\n</header>", "</nav>\n</div>", 1)
    page = contents(page).replace('<section id="all"', EXPLORE + '<section id="all"', 1)
    page = re.sub(r' style="[^"]*"', "", page)
    script = bundle()
    page = page.replace("</body>", '<script type="application/gzip" id="library">%s</script>\n'
                        '<script type="application/gzip" id="trained">%s</script>\n'
                        '<script type="application/json" id="switch">%s</script>\n'
                        '<script type="application/json" id="inks">%s</script>\n'
                        '<script type="application/json" id="found">%s</script>\n'
                        '<script type="application/json" id="tables">%s</script>\n<script>%s</script>\n</body>'
                        % (pack(module), pack(os.path.join(HERE, "trained.safetensors")), read("switch.json").strip(), inks(), read("found.json").strip(),
                           read("tables.json").strip(), script), 1)
    styles = sorted({style_hash(text) for text in re.findall(r"<style>(.*?)</style>", page, flags=re.S)})
    policy = "default-src 'none'; script-src 'wasm-unsafe-eval' %s; style-src %s; img-src data:; base-uri 'none'; form-action 'none'" % (
        style_hash(script), " ".join(styles))
    page = re.sub(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*', lambda m: m[1] + policy, page, count=1)
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write(page)
    shutil.copy(os.path.join(HERE, "..", "docs", "card.png"), os.path.join(os.path.dirname(os.path.abspath(out)), "card.png"))
    print("%s: %d KB" % (out, len(page.encode()) // 1000))


main()
