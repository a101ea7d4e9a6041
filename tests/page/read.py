# SPDX-License-Identifier: Apache-2.0
"""read.py PAGE SNIPPETS: what can be said of the page without a browser, one line per case as look.py
does; the code of all lessons goes to the file SNIPPETS."""
import html.parser
import re
import sys

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.headings, self.trouble = [], [], [], []
        self.sections, self.inside, self.code, self.language = {}, [], [], None
        self.tags, self.addresses, self.references = set(), [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.add(tag)
        if tag == "code":
            self.language = values.get("class")
        self.addresses += [v for k, v in attributes if k in ("src", "srcset", "data", "poster", "action")]
        self.addresses += [values["href"]] if "href" in values else []
        self.references += values.get("aria-labelledby", "").split()
        self.ids += [values["id"]] if "id" in values else []
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "section":
            self.inside.append(values.get("id"))
            self.sections[values.get("id")] = {}
        for section in self.inside[-1:]:
            self.sections[section][tag] = self.sections[section].get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.trouble.append("</%s> at line %d closes something else" % (tag, self.getpos()[0]))
        if tag == "section":
            self.inside.pop()

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data):
        if self.open[-2:] == ["pre", "code"] and self.language == "language-c":
            self.code.append(data)


def lessons(page):
    """Each has its formula, two drawings of its picture, code in C, Python and shell, cost and five sentences' worth of text."""
    expected = {"math": 1, "figure": 1, "figcaption": 1, "svg": 2, "pre": 3, "table": 1}
    order = ["why", "absolute", "sinusoid", "distance", "shaw", "transformer-xl", "t5", "tupe", "deberta",
             "chapter-alibi", "alibi", "kerple", "rope", "xpos", "all"]
    found = [] if list(page.sections) == order else ["lessons are %s" % list(page.sections)]
    for name, tags in page.sections.items():
        if name in ("chapter-alibi", "all"):
            continue
        found += ["%s: %d of %s" % (name, tags.get(tag, 0), tag) for tag, count in expected.items()
                  if tags.get(tag, 0) != count]
    return found


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    page = Reader()
    page.feed(text)
    page.close()

    def report(name, found):
        print("%s\t%s" % (name, "; ".join(found[:6])))

    report("markup", page.trouble + ["<%s> stays open" % tag for tag in page.open])
    report("lessons", lessons(page))
    twice = {i for i in page.ids if page.ids.count(i) > 1}
    report("ids", ["%s is there twice" % i for i in sorted(twice)] +
           ["no element %s" % r for r in page.references if r not in page.ids])
    jumps = [(a, b) for a, b in zip([0] + page.headings, page.headings) if b > a + 1]
    report("headings", ["h%d after h%d" % (b, a) for a, b in jumps] +
           ([] if page.headings.count(1) == 1 else ["%d of h1" % page.headings.count(1)]))
    outside = [a for a in page.addresses if not a.startswith(("#", "data:"))]
    report("alone", ["needs %s" % a for a in outside] +
           ["has <%s>" % t for t in ("script", "iframe", "object", "embed") if t in page.tags] +
           re.findall(r"@import|url\([^)]*\)", text))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("".join(page.code))


main()
