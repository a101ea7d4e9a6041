# SPDX-License-Identifier: Apache-2.0
"""look.py PAGE SCRATCH [PICTURES]: open a report in a browser, as tests/page does with the demo page."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "page"))
import browser  # noqa: E402
import look  # noqa: E402

OPEN = "document.querySelectorAll('details').forEach(d => { d.open = true })"


def links(tab, folder):
    """Inside the page they lead somewhere; others lead to files of the folder."""
    found = tab.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))")
    inside = set(tab.evaluate("[...document.querySelectorAll('[id]')].map(e => '#' + e.id)"))
    return ["no " + href for href in found
            if (href not in inside if href.startswith("#") else not (folder / href).is_file())]


def policy(tab):
    text = tab.evaluate("document.querySelector('meta[http-equiv]').content")
    scripts = tab.evaluate("document.querySelectorAll('script, iframe, object, embed, img').length")
    return [] if text.startswith("default-src 'none'") and scripts == 0 else ["%s; %d" % (text, scripts)]


def main():
    page, scratch = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    pictures = sys.argv[3] if len(sys.argv) > 3 else None
    url = "file://%s" % page

    def report(name, found):
        print("%s\t%s" % (name, "; ".join(found[:6])), flush=True)

    tab = browser.Browser(os.path.join(scratch, "profile"))
    try:
        tab.open_tab()
        tab.screen(1280)
        tab.visit(url)
        before = look.markup(tab)
        report("themes", look.themes(tab, pictures))
        tab.evaluate(OPEN)
        for width in (1280, 1000, 640, 400, 360):
            tab.screen(width)
            report("width-%d" % width, look.overflow(tab, width) + look.text_in_boxes(tab))
        report("names", look.nameless(tab))
        report("links", links(tab, page.parent))
        report("policy", policy(tab))
        report("network", look.requests(tab, url))
        report("console", look.console(tab))
        report("scripts-off", look.without_scripts(tab, url, before))
    finally:
        tab.close()


if __name__ == "__main__":
    main()
