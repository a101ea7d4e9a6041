# SPDX-License-Identifier: Apache-2.0
"""build.py LOCUS MODULE OUT: one self-contained page from the demo page that LOCUS writes, the scripts
and the style beside this file, and the WebAssembly module. The demo page's text and pictures stay as they
are, so the page reads the same with scripts off."""
import base64
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# In the order of their imports.
SCRIPTS = ("dom", "module", "state", "draw", "options", "controls", "repeat", "take", "explore", "live", "lessons", "found", "main")

EXPLORE = """<section id="explore" aria-labelledby="explore-heading">
<h2 id="explore-heading">Explore</h2>
<p>Type a sentence, choose a scheme, move what can be moved: every number below is computed by Locus itself, in this
page. Contents and tables are made up, from a seed, and equal words have equal contents; or, with “trained on novels”, they are
those of the first layer of a small model that <code>locus lab</code> trained on text, a character a token.</p>
<div id="explore-place"><p>This part needs scripts and WebAssembly. The lessons below do without them.</p></div>
</section>
<section id="found-section" aria-labelledby="found-heading">
<h2 id="found-heading">What training found</h2>
<p>One small model per scheme, the same weights to begin with, the same text, the same number of steps
(<code>locus lab train</code>): how well does each read windows longer than those it was trained on?</p>
<div id="found-place"><p>This chart needs scripts.</p></div>
</section>
"""


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


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
        parts.append(re.sub(r"^export ", "", text, flags=re.M))
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


def pack(path):
    with open(path, "rb") as file:
        return base64.b64encode(gzip.compress(file.read(), 9, mtime=0)).decode()


def style_hash(text):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main():
    locus, module, out = sys.argv[1:]
    page = one_picture(demo_page(locus))
    page = page.replace("</style>\n</head>", read("style.css") + "</style>\n</head>", 1)
    page = page.replace('<main id="main">', EXPLORE + '<main id="main">', 1)
    page = re.sub(r' style="[^"]*"', "", page)
    script = bundle()
    page = page.replace("</body>", '<script type="application/gzip" id="library">%s</script>\n'
                        '<script type="application/gzip" id="trained">%s</script>\n'
                        '<script type="application/json" id="found">%s</script>\n<script>%s</script>\n</body>'
                        % (pack(module), pack(os.path.join(HERE, "trained.safetensors")), read("found.json").strip(), script), 1)
    styles = sorted({style_hash(text) for text in re.findall(r"<style>(.*?)</style>", page, flags=re.S)})
    policy = "default-src 'none'; script-src 'wasm-unsafe-eval' %s; style-src %s; img-src data:; base-uri 'none'; form-action 'none'" % (
        style_hash(script), " ".join(styles))
    page = re.sub(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*', lambda m: m[1] + policy, page, count=1)
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write(page)
    print("%s: %d KB" % (out, len(page.encode()) // 1000))


main()
