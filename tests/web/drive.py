# SPDX-License-Identifier: Apache-2.0
"""drive.py PAGE LOCUS SCRATCH [PICTURES]: use the page as a reader would, with real input events. Prints one
line per case, its name and, behind a tab, what is wrong; with PICTURES screenshots are left there."""
import base64
import hashlib
import json
import math
import os
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "page"))
import browser
import look as look_at

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "lab")
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13, " ": 32,
        "Home": 36, "End": 35}


class Page:
    def __init__(self, path, scratch, locus):
        self.url = "file://" + os.path.abspath(path)
        self.scratch, self.locus = scratch, locus
        self.tab = browser.Browser(os.path.join(scratch, "profile"))
        self.tab.open_tab()
        self.tab.screen(1280)

    def visit(self, hash_=""):
        """A new document, whatever the address before it was."""
        self.tab.visit("about:blank")
        self.tab.visit(self.url + hash_)
        for _ in range(600):
            if self.tab.evaluate("document.documentElement?.dataset.ready || ''"):
                return self
            time.sleep(0.05)
        raise TimeoutError("the page does not become ready")

    def settle(self):
        """Two frames: what was asked for is on the screen."""
        self.tab.call("Runtime.evaluate", awaitPromise=True, expression=
                      "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, key, count=1):
        for _ in range(count):
            for kind in ("keyDown", "keyUp"):
                self.tab.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])
        self.settle()

    def click(self, selector, x=0.5, y=0.5):
        box = self.tab.evaluate("(e => { e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return"
                                " [b.x, b.y, b.width, b.height]; })(document.querySelector(%s))" % json.dumps(selector))
        at = {"x": box[0] + x * box[2], "y": box[1] + y * box[3], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.tab.call("Input.dispatchMouseEvent", type=kind, **at)
        self.settle()

    def focus(self, selector):
        self.tab.evaluate("document.querySelector(%s).focus()" % json.dumps(selector))

    def type(self, selector, text):
        self.tab.evaluate("(e => { e.focus(); e.select(); })(document.querySelector(%s))" % json.dumps(selector))
        self.tab.call("Input.insertText", text=text)
        self.settle()

    def choose(self, index, value):
        """An entry of the index-th menu of Explore, by its own events."""
        self.tab.evaluate("(e => { e.value = %s; e.dispatchEvent(new Event('change')); })"
                          "(document.querySelectorAll('#explore select')[%d])" % (json.dumps(value), index))
        self.settle()

    def text(self, selector):
        return self.tab.evaluate("document.querySelector(%s)?.textContent" % json.dumps(selector)) or ""

    def complaint(self):
        return self.text("#explore .complaint")

    def pixels(self, selector):
        """A fingerprint of one canvas."""
        data = self.tab.evaluate("document.querySelector(%s).toDataURL()" % json.dumps(selector))
        return hashlib.sha256(data.encode()).hexdigest()

    def blank(self, selector):
        """1: nothing is drawn on a canvas."""
        return self.tab.evaluate("(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.every(v => v === 0))"
                                 "(document.querySelector(%s))" % json.dumps(selector))

    def figures(self):
        return [self.pixels("#figure-" + name) for name in ("rule", "curve", "bars", "score", "weight")]


def schemes_of(page):
    return page.tab.evaluate("locusPage.locus.schemes.map(s => s.name)")


# ---- every control of every scheme ----

def controls(page, scheme):
    """Each option moves a figure, by keyboard alone; nine of ten positions of a slider are accepted."""
    found = []
    page.visit("#s=" + scheme)
    hidden = page.tab.evaluate("[...document.querySelectorAll('.figures figure[hidden] canvas')].map(e => e.id)")
    found += [name + " draws nothing" for name in ("rule", "curve", "bars", "score", "weight")
              if "figure-" + name not in hidden and page.blank("#figure-" + name)]
    found += refused_positions(page)
    count = page.tab.evaluate("document.querySelectorAll('#scheme-options input, #scheme-options select').length")
    for i in range(count):
        page.visit("#s=" + scheme)
        before, address = page.figures(), page.tab.evaluate("location.hash")
        page.tab.evaluate("document.querySelectorAll('#scheme-options input, #scheme-options select')[%d].focus()" % i)
        name = page.tab.evaluate("document.activeElement.previousSibling.textContent")
        value = page.tab.evaluate("document.activeElement.value + document.activeElement.checked")
        for key in (" ", "ArrowRight", "ArrowLeft", "ArrowLeft", "Home", "End"):
            page.press(key)
            if page.figures() != before:
                break
        if page.tab.evaluate("document.activeElement.value + document.activeElement.checked") == value and page.figures() == before:
            found.append("%s does not move" % name)
        elif page.figures() == before:
            found.append("%s moves nothing" % name)
        elif page.tab.evaluate("location.hash") == address:
            found.append("%s is not in the address" % name)
    return found


def refused_positions(page):
    """Each slider of the view, moved through 21 positions: those that more than one in ten refuses."""
    refused = page.tab.evaluate("""[...document.querySelectorAll('#scheme-options input[type=range]')].map(input => {
        const low = Number(input.min), high = Number(input.max), before = input.value;
        const bad = Array.from({length: 21}, (_, i) => {
            input.value = String(low + i / 20 * (high - low));
            input.dispatchEvent(new Event('input'));
            locusPage.explore.refresh(true);
            return locusPage.explore.ui.complaint.textContent;
        }).filter(text => text !== '');
        input.value = before;
        input.dispatchEvent(new Event('input'));
        return [input.previousSibling.textContent, bad.length, bad[0] ?? ''];
    })""")
    page.settle()
    return ["%s: %d of 21 positions refused (%s)" % tuple(slider) for slider in refused if slider[1] > 2]


def numbers(page, scheme, more=""):
    """The pair on the screen, its terms and weight, as `locus explain` gives them for the saved case file."""
    path = os.path.join(page.scratch, scheme + ".safetensors")
    found = []
    for causal, head in (("0", 0), ("1", 3)):
        page.visit("#s=%s&c=%s&h=%d&m=6&n=2%s" % (scheme, causal, head, more))
        data = page.tab.evaluate("btoa(String.fromCharCode(...locusPage.locus.caseFile(0)))")
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
        answer = subprocess.run([page.locus, "explain", path, "--head", str(head), "--query", "6", "--key", "2", "--json"],
                                capture_output=True, text=True)
        if answer.returncode != 0:
            return [answer.stderr.strip()]
        want = json.loads(answer.stdout)
        got = json.loads(page.tab.evaluate("document.getElementById('equation').dataset.terms"))
        weight = float(page.tab.evaluate("document.getElementById('equation').dataset.weight"))
        found += compare_pair(want, got, weight)
    return found


def trained(page):
    """Trained layers: every scheme that has one, against `locus explain`; one that has none says so."""
    page.visit()
    schemes = page.tab.evaluate("[...locusPage.locus.trained.options.keys()]")
    found = [] if len(schemes) == 14 else ["%d schemes have a trained layer" % len(schemes)]
    for scheme in schemes:
        found += ["%s: %s" % (scheme, trouble) for trouble in numbers(page, scheme, "&w=1&x=It+is+a+truth,+universally")]
    page.visit()
    if page.complaint() or not page.text("#explore .words").startswith("BOSit␣is"):
        found.append("the page does not begin with trained numbers: %s %s" % (page.text("#explore .words")[:20], page.complaint()))
    trained_view = page.figures()
    svg = page.tab.evaluate("locusPage.locus.figure(0, 0)")
    if "trained on novels" not in svg or "Head 1." not in svg or "made up" in svg:
        found.append("the figure does not say model and head")
    page.choose(2, "0")
    if page.figures() == trained_view or page.complaint() or not page.text("#explore .words").startswith("thecat"):
        found.append("the menu shows no made-up numbers: " + page.complaint())
    page.choose(2, "1")
    if page.complaint() or not page.text("#explore .words").startswith("BOSit␣is"):
        found.append("there is no way back to the trained numbers: " + page.complaint())
    page.choose(0, "fire")
    if "no trained layer" not in page.complaint():
        found.append("fire has no trained layer, and nobody says so")
    return found + ["%s: %s" % (scheme, trouble) for scheme in schemes for trouble in learned(page, scheme)]


def learned(page, scheme):
    """The first layer on the page is that of the model in examples/lab, but for 8 bits a number."""
    text = "it is a truth"
    answer = subprocess.run([page.locus, "explain", os.path.join(MODELS, scheme), "--text", text, "--layer", "0", "--head", "1",
                             "--query", "9", "--json"], capture_output=True, text=True)
    if answer.returncode != 0:
        return [answer.stderr.strip()]
    page.visit("#s=%s&w=1&c=1&h=1&m=9&n=0&x=%s" % (scheme, urllib.parse.quote_plus(text)))
    want = [pair["weight"] for pair in json.loads(answer.stdout)["pairs"]][:10]
    got = page.tab.evaluate("[...locusPage.locus.explain(0, 1, 0).weight.slice(9 * 14, 9 * 14 + 10)]")
    worst = max(abs(a - b) for a, b in zip(want, got))
    return [] if len(want) == len(got) == 10 and worst <= 0.03 else ["weights are %g away from the model's" % worst]


def findings(page):
    """The charts of the lab: a line per chosen scheme in both, their numbers in tables."""
    page.visit()
    charts = json.loads(page.text("#found"))["charts"]
    names = [chart["name"] for chart in charts]
    found = [] if names == ["copy", "text"] else ["charts are " + ", ".join(names)]
    for what, act in (("a scheme that is left out", lambda: page.press(" ")),
                      ("all schemes", lambda: page.click("#found-place .take button:first-child")),
                      ("none of them", lambda: page.click("#found-place .take button:last-child"))):
        before = [page.pixels("#figure-" + name) for name in names]
        page.tab.evaluate("document.querySelectorAll('#found-place input')[7].focus()")
        act()
        found += ["%s: %s does not change" % (what, name) for name, old in zip(names, before) if page.pixels("#figure-" + name) == old]
    for chart in charts:
        rows = page.tab.evaluate("[...document.querySelectorAll('#table-%s tr')].map(r => [...r.children].map(c => c.textContent))" % chart["name"])
        digits, seeds = ("%.1f", chart["seeds"]) if chart["name"] == "copy" else ("%.3f", None)
        want = [["scheme"] + [str(n) for n in chart["lengths"]] + (["seeds that learned it"] if seeds else [])] + [
            [name] + ["undefined" if v is None else digits % v for v in values] +
            (["%d of %d" % (seeds[name], chart["of"])] if seeds else []) for name, values in chart["values"].items()]
        if rows != want:
            found.append("the table of %s is not that of the data" % chart["name"])
    return found


def tables(page):
    """Bias by distance of published models, against the rule of `locus attend` as the first lesson on T5 has it."""
    page.visit()
    found = ["nothing is drawn"] if page.blank("#figure-tables") else []
    data = json.loads(page.text("#tables"))
    shapes = [(len(table["rows"]), len(table["rows"][0])) for table in data]
    if shapes != [(32, 6), (32, 6), (32, 12)]:
        found.append("tables are %s" % shapes)
    seen = {page.pixels("#figure-tables")}
    for model in range(len(data)):
        for head in (0, 3):
            page.tab.evaluate("document.querySelectorAll('#tables-place select').forEach((e, i) => { e.value = [%d, %d][i];"
                              " e.dispatchEvent(new Event('change')); })" % (model, head))
            page.settle()
            seen.add(page.pixels("#figure-tables"))
            row = data[model]["rows"]
            both = data[model]["bidirectional"]
            far = "%.2f" % row[bucket(48, both)][head]
            if "48 tokens back " + far.replace("-", "−") not in page.text("#tables-place .says"):
                found.append("%s, head %d: says %s" % (data[model]["title"], head, page.text("#tables-place .says")))
    return found + ([] if len(seen) == 2 * len(data) else ["%d pictures of %d heads" % (len(seen), 2 * len(data))])


def bucket(back, both):
    """T5's rule for a key `back` tokens before the query, 32 buckets, 128."""
    half = 16 if both else 32
    exact = half // 2
    if back < exact:
        return back
    return min(half - 1, exact + int(math.log(back / exact) / math.log(128 / exact) * (half - exact)))


def touch(page):
    """A finger on a map chooses a pair."""
    page.visit()
    before = page.tab.evaluate("location.hash")
    x, y = page.tab.evaluate("(e => { e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return"
                             " [b.x + b.width * 0.6, b.y + b.height * 0.4]; })(document.querySelector('#figure-weight'))")
    page.tab.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    page.tab.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    page.settle()
    return [] if page.tab.evaluate("location.hash") != before else ["a touch on the map chooses no pair"]


def compare_pair(want, got, weight):
    pair = want["pairs"][0]
    terms = pair["terms"]
    if len(terms) != len(got):
        return ["%d terms, expected %d" % (len(got), len(terms))]
    worst = max(abs(a - b) for a, b in zip(terms + [pair["weight"]], got + [weight]))
    return [] if worst <= 1e-6 else ["%g away from locus explain" % worst]


# ---- the rest ----

def keyboard_tour(page):
    """Type, choose words, move the pair, switch a term, without a mouse."""
    page.visit("#s=t5")
    page.type("#explore input[type=text]", "one fish two fish red fish")
    found = [] if page.text(".words") == "onefishtwofishredfish" else ["words: " + page.text(".words")]
    page.focus(".words button[aria-checked=true]")
    page.press("ArrowLeft")
    if page.tab.evaluate("document.activeElement.getAttribute('aria-checked')") != "true":
        found.append("the focus does not follow the query word")
    page.focus("#figure-weight")
    before = page.text("#equation")
    page.press("ArrowUp")
    page.press("ArrowRight")
    if page.text("#equation") == before:
        found.append("arrows on the map do not move the pair")
    page.focus(".terms input")
    bars = page.pixels("#figure-bars")
    page.press(" ")
    if page.pixels("#figure-bars") == bars:
        found.append("switching a term off leaves the bars as they were")
    return found


def pointer(page):
    page.visit()
    before = page.tab.evaluate("location.hash")
    page.click("#figure-weight", 0.4, 0.6)
    return [] if page.tab.evaluate("location.hash") != before else ["a click on the map chooses no pair"]


def shared_address(page):
    """The address of a view gives the same pixels in a new document; Back gives the view before."""
    page.visit("#s=deberta&c=1&m=5&n=2")
    before, first = page.figures(), page.tab.evaluate("location.hash")
    page.choose(0, "kerple")
    after, address = page.figures(), page.tab.evaluate("location.hash")
    found = [] if after != before else ["another scheme, the same picture"]
    try:
        page.tab.evaluate("history.back()")
        for _ in range(100):
            page.settle()
            if page.figures() == before:
                break
            time.sleep(0.05)
        else:
            found.append("Back does not bring the view before (%s, %s)" % (first, page.tab.evaluate("location.hash")))
    except RuntimeError:  # another document
        found.append("Back leaves the page")
    page.visit(address)
    return found + ([] if page.figures() == after else ["a shared address gives another picture"])


def anchors(page):
    """A click in the contents goes to its heading and leaves the view alone."""
    page.visit("#s=rope&x=my+own+words&m=1")
    before = page.figures()
    page.click("nav a[href='#t5']")
    for _ in range(20):
        page.settle()
    found = [] if page.tab.evaluate("location.hash") == "#t5" else ["the address is " + page.tab.evaluate("location.hash")]
    if page.complaint() or page.figures() != before or page.tab.evaluate("locusPage.explore.state.scheme") != "rope":
        found.append("the view is lost: " + page.complaint())
    page.visit("#t5")
    return found + ([page.complaint()] if page.complaint() else [])


def one_view(page):
    """The switch fills the first view; a slider and the weights that it moves are on the screen together."""
    found = []
    for width in (1280, 400):
        page.tab.screen(width, 800)
        page.visit("#s=deberta")
        bottom = page.tab.evaluate("document.querySelector('#switch-place svg').getBoundingClientRect().bottom")
        if bottom > 800:
            found.append("%d: the switch ends at %d" % (width, bottom))
        page.tab.evaluate("document.querySelector('#figure-weight').scrollIntoView({block: 'end'})")
        page.settle()
        for what in ("#scheme-options input", "#figure-weight"):
            top, bottom = page.tab.evaluate("(b => [b.top, b.bottom])(document.querySelector('%s').getBoundingClientRect())" % what)
            if top < 0 or bottom > 801:
                found.append("%d: %s lies at %d to %d" % (width, what, top, bottom))
    page.tab.screen(1280)
    return found


def maps(page):
    """Maps have names, axes and a bar of colours at any length, one look for what is hidden, one scale where two are compared."""
    found = []
    area = """(name, x, y, w, h) => { const c = document.querySelector(name), r = c.width / c.clientWidth;
        return [...c.getContext('2d').getImageData(x * r, y * r, w * r, h * r).data]; }"""
    for words in (10, 64):
        page.visit("#c=1&m=5&n=2&x=" + "+".join("w%d" % i for i in range(words)))
        layout = page.tab.evaluate("locusPage.explore.layout(document.querySelector('#figure-weight'))")
        left, top, cell = layout["left"], layout["top"], layout["cell"]
        end = left + cell * words
        for what, box in (("names of rows", (0, top, left - 4, cell * words)), ("names of columns", (left, 20, end - left, top - 24)),
                          ("name of the axis", (left, 0, 60, 16)), ("bar of colours", (end + 8, top, 14, cell * words))):
            if not any(page.tab.evaluate("(%s)('#figure-weight', %g, %g, %g, %g)" % (area, *box))):
                found.append("%d words: no %s" % (words, what))
        hidden = [page.tab.evaluate("(%s)('#figure-%s', %g, %g, 2, 2)" % (area, name, left + cell * (words - 1) + 1, top + 1))
                  for name in ("rule", "score", "weight")]
        if hidden[0] != hidden[1] or hidden[1] != hidden[2] or hidden[0] == page.tab.evaluate("(%s)('#figure-weight', %g, %g, 2, 2)" % (area, left + 1, top + 1)):
            found.append("%d words: hidden pairs look like %s" % (words, hidden))
    page.visit("#s=deberta&t=rope")
    bars = [page.tab.evaluate("(%s)('#figure-%s', %g, %g, 58, %g)" % (area, name, left, top, cell)) for name in ("weight", "other-weight")
            for left, top, cell in [page.tab.evaluate("(l => [l.left + 10 * l.cell + 8, l.top, 10 * l.cell])"
                                                      "(locusPage.explore.layout(document.querySelector('#figure-%s')))" % name)]]
    if bars[0] != bars[1]:
        found.append("two maps are compared on two scales")
    page.visit()
    inks = page.tab.evaluate("""[...document.querySelectorAll('#explore .terms .swatch')].every((s, t) => {
        const ink = locusPage.locus.ink(locusPage.locus.calls[0].terms[t].ink, false);
        return getComputedStyle(s).backgroundColor === `rgb(${[1, 3, 5].map(i => parseInt(ink.slice(i, i + 2), 16)).join(', ')})`; })""")
    return found + ([] if inks else ["a term has not its colour"])


def board(page):
    """Every scheme of the board has the terms that it declares, and areas of the size that `locus explain` finds."""
    found = []
    page.visit()
    said = page.tab.evaluate("""Object.entries(locusPage.products).map(([name, product]) => {
        document.querySelector(`[data-scheme=${name}]`).click();
        const scheme = locusPage.locus.schemes.find(s => s.name === name), parts = [...product.quarters, ...product.more].flatMap(p => p.term ?? []);
        return {name, declared: scheme.terms, parts, shares: locusPage.board.shares[name] ?? null, struck: document.querySelectorAll('.product .dropped').length,
            lit: document.querySelectorAll('.board > svg circle:not(.socket)').length, text: document.querySelector('.product svg').textContent};
    })""")
    names = ["content", "content-position", "position-content", "position-position", "bias", "value", "rotation", "input"]
    for one in said:
        declared = {name for bit, name in enumerate(names) if one["declared"] >> bit & 1}
        # What is not declared: Transformer-XL's own terms, the product of two sums in the input; RoPE turns its content.
        own = {"transformer_xl": {"u.k", "w.r"}, "sinusoidal": set(names[1:4])}.get(one["name"], set())
        if set(one["parts"]) != (declared | own) - ({"content"} if one["name"] == "rope" else set()):
            found.append("%s has %s, declares %s" % (one["name"], sorted(one["parts"]), sorted(declared)))
        if one["struck"] != 4 - len([p for p in one["parts"] if p not in ("bias", "value", "input")]) or one["lit"] != len(one["parts"]):
            found.append("%s: %d struck out, %d lit" % (one["name"], one["struck"], one["lit"]))
        if one["shares"] is None:
            continue
        answer = json.loads(subprocess.run([page.locus, "explain", os.path.join(MODELS, one["name"]), "--text", "it is a truth universally",
                                            "--json"], capture_output=True, text=True, check=True).stdout)
        want = {}
        for term in answer.get("terms", []):
            name = "rotation" if "turn" in term["name"] else term["name"]  # its bands
            want[name] = want.get(name, 0) + sum(term["share"][0]) / len(term["share"][0])
        for name, share in want.items():
            if abs(share - one["shares"][name]) > 0.02:
                found.append("%s: %s is %g, expected %g" % (one["name"], name, one["shares"][name], share))
    if sum(one["shares"] is not None for one in said) < 6:
        found.append("areas of too few schemes")
    return found


def paper(page):
    """Printed: at most 25 pages, no control, and every figure drawn in the colours of paper, also for whoever reads in the dark."""
    page.tab.screen(1280, 800, "dark")
    page.visit()
    pdf = page.tab.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
    count = base64.b64decode(pdf["data"]).count(b"/Type /Page\n")
    page.tab.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    found = [] if 5 < count <= 25 else ["%d pages" % count]
    shown = page.tab.evaluate("[...document.querySelectorAll('button, select, input')].filter(e => e.checkVisibility()).map(e => e.textContent || e.type)")
    left = [name for name in shown if not name.startswith(("head", "checkbox", "offon"))]  # what the switch shows
    found += ["%d controls: %s" % (len(left), left[:3])] if left else []
    for name in ("weight", "bars", "rule", "score", "copy", "text", "tables"):
        dark = page.tab.evaluate("(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
                                 " for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })(document.querySelector('#figure-%s'))" % name)
        if dark == 0:
            found.append(name + " is blank")
    drawn = page.tab.evaluate("locusPage.explore.palette.paper")
    found += [] if drawn == page.tab.evaluate("locusPage.locus.ink(0, false)") else ["paper is " + drawn]
    page.tab.screen(1280)
    page.tab.call("Emulation.setEmulatedMedia", media="", features=[])
    return found


def figures(page):
    """Numbers of the figures in docs/figures against formulas in plain numbers: clip, buckets, sinusoids, terms of made-up calls."""
    found = []
    page.visit()
    for name, want in (("distance", lambda d: max(-3, min(3, d))), ("t5", lambda d: t5_bucket(d, 8, 16))):
        page.tab.evaluate("document.getElementById('live-%s').scrollIntoView()" % name)
        for _ in range(40):
            page.settle()
            if page.text("#live-%s .says" % name):
                break
        for query, key in ((7, 1), (0, 9), (3, 3), (9, 5), (4, 6)):
            page.click("#live-%s canvas" % name, *page.tab.evaluate(
                "(c => { const cell = 34, left = 68, top = 80; return [(left + %g * cell) / c.clientWidth, (top + %g * cell) / c.clientHeight]; })"
                "(document.querySelector('#live-%s canvas'))" % (key + 0.5, query + 0.5, name)))
            says = page.text("#live-%s .says" % name)
            if "m − n = %s:" % str(query - key).replace("-", "−") not in says or not says.endswith(" " + str(want(query - key)).replace("-", "−")):
                found.append("%s of %d: %s" % (name, query - key, says))
    products = page.tab.evaluate("[...locusPage.locus.similarity(12, 'paper')]")
    waves = [[math.cos((i - j) * 10000 ** (-2 * t / 64)) for t in range(32)] for i in range(12) for j in range(12)]
    worst = max(abs(math.fsum(wave) - product) for wave, product in zip(waves, products))
    return found + ([] if worst <= 1e-12 else ["products of sinusoids are %g away" % worst])


def t5_bucket(distance, buckets, farthest):
    """Of both sides; the key stands `distance` before the query."""
    side, back = buckets // 2, abs(distance)
    exact = side // 2
    far = back if back < exact else min(side - 1, exact + int(math.log(back / exact) / math.log(farthest / exact) * (side - exact)))
    return far + (side if distance < 0 else 0)


def shell(page):
    """The line to copy gives the numbers of the view: what it cannot say is left to the case file."""
    found = []
    for hash_, file in (("#s=t5&o=buckets:16;max_distance:20", False), ("#s=t5&k=0.5", True), ("#s=t5&wl=2", True), ("", True)):
        page.visit(hash_)
        page.tab.evaluate("[...document.querySelectorAll('#explore .take button')].find(b => b.textContent === 'Shell').click()")
        line = page.tab.evaluate("document.querySelector('#explore .copied').value")
        if ("view.safetensors" in line) != file:
            found.append("%s: %s" % (hash_, line))
    return found


def hostile(page):
    found = []
    page.visit("#s=t5")
    for name, text in (("100,000 letters", "a " * 50000), ("controls", "a\x00b\x1b[31m c\u2028d"), ("right to left", "שלום עולם مرحبا"),
                       ("markup", "<script>alert(1)</script> <img src=x onerror=alert(1)>"), ("nothing", "   ")):
        page.type("#explore input[type=text]", text)
        if page.tab.evaluate("document.querySelectorAll('#explore script, #explore img').length") != 0:
            found.append(name + " became markup")
        if name == "nothing" and "sentence" not in page.complaint():
            found.append("an empty sentence is not refused")
    page.type("#explore input[type=text]", "still alive")
    if "alive" not in page.text(".words") or page.complaint():
        found.append("the page does not recover: " + page.complaint())
    for key in ("s", "t", "x", "h", "m", "n", "c", "wl", "wr", "k", "z", "off", "o", "p", "unknown"):
        page.visit("#%s=%s" % (key, urllib.parse.quote("%00<svg/onload=alert(1)>;:NaN,999999999999")))
        if page.tab.evaluate("document.documentElement.dataset.ready") == "failed" or not page.text("#equation"):
            found.append("field %s breaks the page" % key)
        elif key != "x" and not page.complaint():
            found.append("field %s is wrong and nobody says so" % key)
    return found


def lessons(page):
    """Every lesson has a live figure that answers to its controls and a question that can be solved."""
    page.visit()
    found = []
    names = page.tab.evaluate("[...document.querySelectorAll('.live')].map(e => e.id)")
    if len(names) != 13:
        found.append("%d live figures, expected 13" % len(names))
    for name in names:
        page.tab.evaluate("document.getElementById('%s').scrollIntoView()" % name)
        for _ in range(40):
            page.settle()
            if page.text("#%s .says" % name):
                break
        before = page.text("#%s .says" % name)
        if page.blank("#%s canvas" % name):
            found.append(name + " draws nothing")
        page.tab.evaluate("document.querySelector('#%s canvas').focus()" % name)
        page.press("ArrowUp")
        page.press("ArrowLeft")
        if page.text("#%s .says" % name) in ("", before):
            found.append(name + " does not follow the arrows")
    for name in ("shaw", "transformer-xl", "tupe", "deberta"):
        if page.tab.evaluate("document.querySelectorAll('#live-%s .swatch').length" % name) < 2:
            found.append("the bars of %s have no legend" % name)
    page.click("#live-why .fields button")
    if page.tab.evaluate("document.querySelector('#live-why .answer').hidden"):
        found.append("the first question cannot be answered")
    if page.tab.evaluate("document.querySelector('#live-alibi .answer').hidden") is False:
        found.append("an answer is told before anybody looked for it")
    page.click("#live-alibi figure + p + button")
    if page.tab.evaluate("document.querySelector('#live-alibi .answer').hidden"):
        found.append("whoever asks is not told")
    return found


def forced_colours(page):
    """With the reader's own few colours swatches and terms keep theirs: they are the legend."""
    page.tab.call("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    page.visit()
    seen = page.tab.evaluate("""['#explore .terms .swatch', '.switch-terms .swatch', '#found-place .swatch'].map(name => new Set(
        [...document.querySelectorAll(name)].slice(0, 2).map(e => getComputedStyle(e).backgroundColor)).size)""")
    page.tab.call("Emulation.setEmulatedMedia", features=[])
    return [] if seen == [2, 2, 2] else ["swatches have %s colours" % seen]


def speed(page, words):
    """Milliseconds from an input to its painted figure; printed, judged by nobody here."""
    page.visit("#x=" + "+".join("w%d" % i for i in range(words)))
    page.tab.evaluate("locusPage.explore.took.length = 0")
    page.focus("#figure-weight")
    for i in range(30):
        page.press("ArrowRight" if i % 8 < 4 else "ArrowLeft")
    took = sorted(page.tab.evaluate("locusPage.explore.took"))
    print("# %d tokens: input to figure %.1f ms median, %.1f ms worst" % (words, took[len(took) // 2], took[-1]), flush=True)


def without_library(page):
    """Where WebAssembly is forbidden, text and pictures remain and the page says so."""
    with open(page.url[7:], encoding="utf-8") as file:
        text = file.read().replace("'wasm-unsafe-eval' ", "", 1)
    path = os.path.join(page.scratch, "forbidden.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    url, page.url = page.url, "file://" + path
    page.visit()
    page.url = url
    still = page.tab.evaluate("document.querySelectorAll('main figure svg').length")
    says = page.text("#explore-place")
    return ([] if still >= 13 else ["%d pictures" % still]) + ([] if "did not start" in says else ["says nothing: " + says[:60]])


def main():
    path, locus, scratch = sys.argv[1:4]
    pictures = sys.argv[4] if len(sys.argv) > 4 else None
    wanted = os.environ.get("LOCUS_WEB_CASES", "").split()  # beginnings of names; none: all

    def report(name, case, *arguments):
        if not wanted or any(name.startswith(w) for w in wanted):
            print("%s\t%s" % (name, "; ".join(case(page, *arguments)[:6])), flush=True)

    def width(page, pixels):
        page.tab.screen(pixels)
        page.visit("#t=alibi")
        found = look_at.overflow(page.tab, pixels)
        page.tab.screen(1280)
        return found

    page = Page(path, scratch, locus)
    try:
        names = schemes_of(page.visit())
        for scheme in names[::4] if os.environ.get("LOCUS_TEST_SAMPLE") else names:
            report("controls/" + scheme, controls, scheme)
            report("numbers/" + scheme, numbers, scheme)
        for case in (keyboard_tour, pointer, touch, shared_address, anchors, one_view, board, maps, figures, shell, paper, forced_colours, hostile, lessons, trained, findings, tables):
            report(case.__name__, case)
        report("console", lambda page: look_at.console(page.visit().tab))
        report("network", lambda page: look_at.requests(page.visit().tab, page.url))
        for pixels in (2560, 1280, 400, 360):
            report("width-%d" % pixels, width, pixels)
        report("themes", lambda page: look_at.themes(page.visit().tab, pictures))
        if not wanted:
            report("no_library", without_library)
            for words in (32, 64):
                speed(page, words)
    finally:
        page.tab.close()


main()
