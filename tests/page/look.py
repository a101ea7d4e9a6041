# SPDX-License-Identifier: Apache-2.0
"""look.py PAGE SCRATCH [PICTURES]: open the page in a browser. Prints one line per case, its name and,
behind a tab, what is wrong; with PICTURES screenshots are left there."""
import base64
import os
import sys

import browser

WIDTHS = (1280, 400)
BETWEEN = (1000, 640, 360)  # beside the places where the layout changes

# What a reader can reach with the Tab key, in the order of the document.
REACHABLE = """
[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter(e => e.tabIndex >= 0 && e.checkVisibility())
"""

# Contrast of all visible text with what it is printed on, the worst first.
CONTRAST = """
(() => {
  const rgb = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92
      : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  let worst = [99, ''];
  for (const e of document.querySelectorAll('h1, h2, h3, h4, p, a, li, th, td, code, pre, figcaption, mi, mo, mn')) {
    if (!e.checkVisibility() || !e.textContent.trim()) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(paper(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.tagName + ': ' + e.textContent.slice(0, 40)];
  }
  return worst;
})()
"""


def console(tab):
    found = []
    for event in tab.events:
        method, params = event.get("method"), event.get("params", {})
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            found.append(params["entry"]["text"])
        if method == "Runtime.consoleAPICalled":
            found.append("console." + params["type"])
        if method == "Runtime.exceptionThrown":
            found.append(params["exceptionDetails"]["text"])
    return found


def requests(tab, url):
    sent = [e["params"]["request"]["url"] for e in tab.events
            if e.get("method") == "Network.requestWillBeSent"]
    return [u for u in sent if u != url and not u.startswith("data:")]


def overflow(tab, width):
    """Wider than the window, or elements that stick out of it and are not in a box that scrolls."""
    wide = tab.evaluate("document.scrollingElement.scrollWidth") - width
    out = tab.evaluate("""
      [...document.querySelectorAll('body *')].filter(e => {
        if (!e.checkVisibility() || e.closest('.skip') || e.closest('math, svg, pre code')) return false;
        for (let p = e.parentElement; p; p = p.parentElement)
          if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return false;
        const box = e.getBoundingClientRect();
        return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
      }).map(e => e.tagName + '.' + e.className).slice(0, 5)
    """)
    return (["%d pixels too wide" % wide] if wide > 0 else []) + out


def text_in_boxes(tab):
    """Figures as wide as their place allows, and letters of pictures that can be read."""
    return tab.evaluate("""
      [...document.querySelectorAll('figure svg')].filter(s => s.checkVisibility()).filter(s => {
        const scale = s.getBoundingClientRect().width / s.viewBox.baseVal.width;
        return 11 * scale < 9.5;
      }).map(s => s.id + ' is drawn too small')
    """)


def nameless(tab):
    """Pictures, links, groups and formulas that a screen reader has no words for."""
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    bad, pictures = [], 0
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        if node.get("ignored"):
            continue
        pictures += role in ("img", "image")
        if role in ("img", "image", "link", "navigation", "heading", "group", "region") and \
                not node.get("name", {}).get("value", "").strip():
            bad.append(role + " without a name")
    if pictures < 13:
        bad.append("%d pictures, expected 13 at least" % pictures)
    return bad + tab.evaluate("""
      [...document.querySelectorAll('math')].filter(m => !m.getAttribute('alttext'))
          .map(m => 'math without alttext').concat(
      [...document.querySelectorAll('img')].filter(i => !i.alt).map(i => 'img without alt'))
    """)


def links(tab):
    return tab.evaluate("""
      [...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))
          .filter(h => !h.startsWith('#') || !document.getElementById(h.slice(1)))
    """)


def press_tab(tab):
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)


def keyboard(tab):
    expected = tab.evaluate(REACHABLE + ".length")
    tab.evaluate("window.reachable = " + REACHABLE + "; document.activeElement.blur()")
    order = []
    for _ in range(expected):
        press_tab(tab)
        order.append(tab.evaluate("reachable.indexOf(document.activeElement)"))
        if len(order) == 1 and not tab.evaluate("document.activeElement.getBoundingClientRect().top >= 0"):
            return ["the skip link stays hidden when it has the focus"]
    if expected < 40:
        return ["%d things to reach, expected 40 at least" % expected]
    return [] if order == list(range(expected)) else ["order of the Tab key: %s" % order]


def skip_link(tab):
    tab.evaluate("document.querySelector('.skip').click()")
    return [] if tab.evaluate("location.hash === '#main' && Math.abs(document.getElementById('main')?"
                              ".getBoundingClientRect().top) < 4") else ["does not lead to the lessons"]


def screenshot(tab, path):
    size = tab.call("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}
    data = tab.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
    with open(path, "wb") as file:
        file.write(base64.b64decode(data))


def colours(tab):
    style = "getComputedStyle(document.body).%s"
    return tab.evaluate(style % "backgroundColor"), tab.evaluate(style % "color")


def themes(tab, pictures):
    found, papers = [], []
    for scheme in ("light", "dark"):
        for width in WIDTHS:
            tab.screen(width, scheme=scheme)
            if pictures:
                screenshot(tab, os.path.join(pictures, "page-%d-%s.png" % (width, scheme)))
        ratio, where = tab.evaluate(CONTRAST)
        if ratio < 4.5:
            found.append("%s: contrast %.2f of %s" % (scheme, ratio, where))
        papers.append(colours(tab))
    if papers[0] == papers[1]:
        found.append("light and dark look the same: %s" % (papers[0],))
    return found


def markup(tab):
    """The text that is there, whoever computes it: the document as the browser holds it."""
    root = tab.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    return tab.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]


def without_scripts(tab, url, before):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.visit(url)
    after = markup(tab)
    return [] if after == before and len(after) > 100000 else ["%d letters of markup, with scripts %d"
                                                               % (len(after), len(before))]


def main():
    page, scratch = os.path.abspath(sys.argv[1]), sys.argv[2]
    pictures = sys.argv[3] if len(sys.argv) > 3 else None
    url = "file://" + page

    def report(name, found):
        print("%s\t%s" % (name, "; ".join(found[:6])), flush=True)

    tab = browser.Browser(os.path.join(scratch, "profile"))
    try:
        tab.open_tab()
        tab.screen(1280)
        tab.visit(url)
        before = markup(tab)
        for width in WIDTHS:
            tab.screen(width)
            report("width-%d" % width, overflow(tab, width) + text_in_boxes(tab))
            report("names-%d" % width, nameless(tab))
        for width in BETWEEN:
            tab.screen(width)
            report("width-%d" % width, overflow(tab, width) + text_in_boxes(tab))
        tab.screen(1280)
        report("links", links(tab))
        report("keyboard", keyboard(tab))
        report("skip-link", skip_link(tab))
        report("themes", themes(tab, pictures))
        report("network", requests(tab, url))
        report("console", console(tab))
        report("scripts-off", without_scripts(tab, url, before))
    finally:
        tab.close()


if __name__ == "__main__":
    main()
