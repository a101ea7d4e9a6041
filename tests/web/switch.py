# SPDX-License-Identifier: Apache-2.0
"""switch.py LOCUS ROOT SCRATCH [MODELS]: pages of `locus explain -o page.html`, used as a reader would, in Chromium. Prints one
line per case, its name and, behind a tab, what is wrong; MODELS is a folder of trained models, those that are there are tried."""
import json
import math
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "page"))
import browser
import look as look_at

TEXT = "the keys to the cabinet are on the table"
LOCUS, ROOT, SCRATCH = sys.argv[1:4]
MODELS = sys.argv[4] if len(sys.argv) > 4 else ""


def lab(scheme, *more):
    return [os.path.join(ROOT, "examples/lab", scheme), "--text", "it is a truth", *more]


CALLS = {
    "shaw": ["--scheme", "shaw", "--tokens", TEXT], "transformer_xl": ["--scheme", "transformer_xl", "--tokens", TEXT],
    "tupe": ["--scheme", "tupe", "--tokens", TEXT], "sinusoidal": ["--scheme", "sinusoidal", "--tokens", TEXT],
    "causal": ["--scheme", "t5", "--tokens", TEXT, "--causal"], "deberta": lab("deberta", "--layer", "1"),
    "rope": lab("rope", "--layer", "0"), "rope-all": lab("rope"), "t5": lab("t5", "--layer", "0"),
}
TRAINED = {
    "turn-detection": ["--layer", "3"], "flan-t5-small": ["--layer", "0"], "bert-tiny": ["--layer", "0"],
    "all-MiniLM-L6-v2": ["--layer", "0"],
}


def page_of(name, call):
    """The page of a call, or the complaint about it."""
    path = os.path.join(SCRATCH, name)
    done = subprocess.run([LOCUS, "explain", *call, "-o", path], capture_output=True, text=True)
    return path, done.stderr.strip() if done.returncode != 0 else ""


def visit(tab, path, width=1280, height=800, scheme="light"):
    tab.screen(width, height, scheme)
    tab.visit("about:blank")
    tab.visit("file://" + path)
    if tab.evaluate("document.documentElement.dataset.ready") != "switch":
        raise RuntimeError("the page does not become ready")


def settle(tab, milliseconds=0):
    time.sleep(milliseconds / 1000)
    tab.call("Runtime.evaluate", awaitPromise=True, expression=
             "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def press(tab, key, code):
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=" " if key == " " else "")
    settle(tab)


def weights(tab, expression="locusSwitch.factors"):
    return tab.evaluate("[...locusSwitch.numbers.row(locusSwitch.head, locusSwitch.query, %s).weight]" % expression)


def softmax(scores):
    top = max(scores)
    raised = [math.exp(score - top) for score in scores]
    return [value / math.fsum(raised) for value in raised]


def numbers(tab, call):
    """The weights on the page, with position, without, and with each term alone, from what `locus explain --json` prints."""
    found, at = [], tab.evaluate("({head: locusSwitch.numbers.data.heads[locusSwitch.head], query: locusSwitch.query})")
    layer = ["--layer", str(at["head"]["layer"])] if "--text" in call else []
    answer = subprocess.run([LOCUS, "explain", *[a for i, a in enumerate(call) if "--layer" not in (a, call[i - 1] if i else "")], *layer,
                             "--head", str(at["head"]["head"]), "--query", str(at["query"]), "--json"], capture_output=True, text=True, check=True)
    want = json.loads(answer.stdout)
    seen = [pair["visible"] for pair in want["pairs"]]
    got = weights(tab, "locusSwitch.numbers.factors(1)")
    worst = max(abs(a - pair["weight"]) for a, pair in zip(got, want["pairs"]))
    if worst > 1e-12:
        found.append("weights are %g away from locus explain" % worst)
    names = tab.evaluate("locusSwitch.numbers.data.terms.map(t => [t.name, t.position])")
    parts = tab.evaluate("locusSwitch.numbers.row(locusSwitch.head, locusSwitch.query, locusSwitch.numbers.factors(1)).parts.map(p => [...p].map(v => isNaN(v) ? 0 : v))")
    sums = [math.fsum(part[n] for part in parts) for n in range(len(got))]
    worst = max([abs(a - pair["score"]) for a, pair, there in zip(sums, want["pairs"], seen) if there] or [1])
    if worst > 1e-12 * max(1, max(abs(s) for s in sums)):
        found.append("the terms miss the score by %g" % worst)
    off = [math.fsum(part[n] for part, (_, moves) in zip(parts, names) if not moves) if there else -math.inf for n, there in enumerate(seen)]
    worst = max(abs(a - b) for a, b in zip(weights(tab, "locusSwitch.numbers.factors(0)"), softmax(off)))
    return found + (["without position the weights are %g away" % worst] if worst > 1e-12 else [])


def use(tab, path, call):
    """One page: quiet, whole in the first view, its switch at work by pointer and keyboard."""
    found = []
    for width, scheme in ((1280, "light"), (400, "dark")):
        visit(tab, path, width, 800, scheme)
        found += look_at.overflow(tab, width)
        if tab.evaluate("locusSwitch.numbers.keys") <= 12 and tab.evaluate("document.querySelector('.switch>svg').getBoundingClientRect().bottom") > 800:
            found.append("the switch does not fit into %d x 800" % width)
    found += look_at.console(tab) + look_at.requests(tab, "file://" + path) + numbers(tab, call)
    on, picture = weights(tab), "document.querySelector('.switch>svg').innerHTML"
    before = tab.evaluate(picture)
    tab.evaluate("document.querySelector('.big-switch').focus()")
    press(tab, " ", 32)
    settle(tab, 400)
    moves = tab.evaluate("locusSwitch.numbers.data.terms.some(term => term.position)")
    if moves and (tab.evaluate("document.querySelector('.big-switch').getAttribute('aria-checked')") != "false" or
                  weights(tab) != weights(tab, "locusSwitch.numbers.factors(0)") or tab.evaluate(picture) == before):
        found.append("the switch does not take position out")
    press(tab, " ", 32)
    settle(tab, 400)
    if weights(tab) != on or tab.evaluate(picture) != before:
        found.append("the switch does not put position back")
    tab.evaluate("document.querySelector('.switch-terms input').click()")
    settle(tab, 400)
    if tab.evaluate(picture) == before:
        found.append("a term does not go")
    query = tab.evaluate("locusSwitch.query")
    tab.evaluate("document.querySelector('.switch>svg').focus()")
    press(tab, "ArrowUp" if query > 0 else "ArrowDown", 38 if query > 0 else 40)
    if tab.evaluate("locusSwitch.query") != query + (-1 if query > 0 else 1):
        found.append("arrow keys choose no query")
    heads = tab.evaluate("document.querySelectorAll('.switch-heads button').length")
    tab.evaluate("document.querySelectorAll('.switch-heads button')[%d]?.click()" % (heads - 1))
    if heads > 1 and tab.evaluate("locusSwitch.numbers.data.heads[locusSwitch.head].head") != heads - 1:
        found.append("a head cannot be chosen")
    return found


def motion(tab, path, _):
    """Off is reached on the way, not at once; with reduced motion at once."""
    visit(tab, path)
    ways = tab.evaluate("(() => { locusSwitch.turn(0); return locusSwitch.factors.join(); })()")
    still = "0" not in ways.split(",")
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    visit_reduced = tab.evaluate("(() => { locusSwitch.turn(1); locusSwitch.turn(0); return locusSwitch.factors.join(); })()")
    tab.call("Emulation.setEmulatedMedia", features=[])
    return ([] if still else ["the switch jumps"]) + ([] if "0" in visit_reduced.split(",") else ["reduced motion moves"])


def hostile(tab):
    """Words that look like markup, and like the places of the page."""
    path, trouble = page_of("hostile.html", ["--scheme", "t5", "--tokens", "</script><script>alert(1)</script> @SCRIPT@ <img/src=x> & \U0001f408\u200d\u2b1b"])
    if trouble:
        return [trouble]
    visit(tab, path)
    words = tab.evaluate("locusSwitch.numbers.data.tokens")
    found = [] if words[0].startswith("</script>") and words[1] == "@SCRIPT@" and words[-1] == "\U0001f408\u200d\u2b1b" else ["tokens are %s" % words]
    shown = tab.evaluate("document.querySelector('.switch>svg').textContent")
    if "\U0001f408\u200d\u2b1b" not in shown:
        found.append("a joined token is cut")
    return found + look_at.console(tab) + look_at.requests(tab, "file://" + path)


def refused():
    """One line, and no page, where there is too much to show or nothing of the kind."""
    found = []
    for name, call, words in (("long.html", ["--scheme", "t5", "--length", "400"], "expected 400000"),
                              ("page.txt", ["--scheme", "t5", "--tokens", "a b"], ".svg or .html")):
        path, trouble = page_of(name, call)
        if words not in trouble or len(trouble.splitlines()) != 1 or os.path.exists(path):
            found.append("says %r" % trouble)
    return found


def report(name, found):
    print("switch/%s\t%s" % (name, "; ".join(str(f) for f in found[:6])), flush=True)


def main():
    calls = dict(CALLS)
    for name, more in TRAINED.items():
        folder = os.path.join(MODELS, name)
        if os.path.isdir(folder):
            calls[name] = [folder, "--text", "The keys to the cabinet are on the table.", *more]
    tab = browser.Browser(os.path.join(SCRATCH, "switch-profile"))
    try:
        tab.open_tab()
        for name, call in calls.items():
            path, trouble = page_of(name + ".html", call)
            report(name, [trouble] if trouble else use(tab, path, call))
        path, _ = page_of("deberta.html", CALLS["deberta"])
        report("motion", motion(tab, path, None))
        report("hostile", hostile(tab))
        report("refused", refused())
    finally:
        tab.close()


main()
