#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lessons.py LOCUS > docs/lessons.md: the lessons of `locus demo` for whoever reads the repository without building it,
with the pictures of docs/gallery. tests/docs says when it is stale, and runs its Python."""
import html
import os
import re
import subprocess
import sys
import tempfile

PICTURES = {"why": "none-attention", "absolute": "learned", "sinusoid": "sinusoidal"}  # the others have the lesson's name

HEAD = """# Lessons

How attention is told where a token is, one scheme after the other, each the answer to what the one before it lacked. The page of
`make page` has the same lessons with figures that can be moved, `make demo` with what each scheme costs on your machine.
Queries are m, keys n, rows of x are tokens. The Python of all lessons in a row is one program: three tokens of two channels,
few enough to follow on paper; below each call stands what it prints. So is the C one source file.
"""


def page(locus):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([locus, "demo", "--quick", "-o", folder], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "index.html"), encoding="utf-8") as file:
            return file.read()


def prose(text):
    """HTML as Markdown: it may hold <i>, <sub>, <sup>."""
    text = re.sub(r"</?q>", '"', text)
    text = re.sub(r"</?cite>", "*", text)
    text = re.sub(r"</?code>", "`", text)
    return html.unescape(re.sub(r"\s*\n\s*", "\n", text)).strip()


def formula(section):
    said = html.unescape(re.search(r'alttext="([^"]*)"', section)[1])
    said = re.sub(r"(?<=[\w)\]]) \. (?=[\w(])", " · ", said).replace(" - ", " − ").replace("(-", "(−").replace("^(-", "^(−")
    return "\n".join("    " + line.strip() for line in said.split(";"))


def lesson(name, section, gallery):
    title = prose(re.search(r"<h[23][^>]*>(.*?)</h[23]>", section)[1])
    print("\n## %s\n" % title)
    body = section[:section.index("<figure>")]
    because = re.search(r'<p class="because">(.*?)</p>', body, re.S)
    if because:
        print("> %s\n" % prose(because[1]))
    paragraphs = [prose(text) for text in re.findall(r"<p>(.*?)</p>", body, re.S)]
    print(formula(section) + "\n")
    print("\n\n".join(paragraphs))
    picture = PICTURES.get(name, name)
    if not os.path.exists(os.path.join(gallery, picture + ".svg")):
        raise SystemExit("lessons.py: docs/gallery has no %s.svg" % picture)
    print("\n![%s](gallery/%s.svg)" % (title, picture))
    for summary, language, code in re.findall(r'<summary>(.*?)</summary>.*?<code class="language-(\w+)">(.*?)</code>', section, re.S):
        print("\n<details><summary>%s</summary>\n\n```%s\n%s```\n\n</details>" % (summary, language, html.unescape(code)))
    print("\n" + prose(re.search(r'<p class="papers">(.*?)</p>', section, re.S)[1]))


def main():
    gallery = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "gallery")
    print(HEAD, end="")
    for name, section in re.findall(r'<section id="([a-z0-9-]+)"[^>]*>(.*?)</section>', page(sys.argv[1]), re.S):
        if name.startswith("chapter-"):  # its first lesson stands inside
            name = name[len("chapter-"):]
            section = section[section.index("<section"):]
        if name != "all":
            lesson(name, section, gallery)


main()
