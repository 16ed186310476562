#!/usr/bin/env python3
"""Makes two files of sentences, line by line translations of each other, from the Debian
Administrator's Handbook (GPL-2+ or CC-BY-SA-3.0) in two languages.

usage: examples/translation/make_sentences.py FOLDER [--language de-DE] [--html FOLDER]

Writes FOLDER/source.txt, English, and FOLDER/target.txt. The book is the Debian package
debian-handbook, unpacked to /usr/share/doc. The paragraphs of a page are those of the same page in
the other language, one by one; pairs that nobody has translated yet are left out. Where both
paragraphs of a pair have equally many sentences, these are the lines, else the paragraphs are.
"""
import argparse
import html.parser
import pathlib
import re
import sys

# An end, a blank, and what begins a sentence. Abbreviations such as "e.g. the" go on in lower case.
BETWEEN_SENTENCES = re.compile(r"(?<=[.!?:;])\s+(?=[A-ZÀ-Þ\"(])")
# Marks that each language has its own form of. A word is what has bytes above 127 to the program.
PLAIN = str.maketrans({**dict.fromkeys("“”„«»", '"'), **dict.fromkeys("‘’‚", "'"),
                       **dict.fromkeys("–—", "-"), "…": "...", "\u00ad": None})


class Paragraphs(html.parser.HTMLParser):
    """The text of each <div class="para">, without that of such a one inside of it."""

    def __init__(self):
        super().__init__()
        self.found, self.open = [], []  # open: for each div, the place of its paragraph, or None

    def handle_starttag(self, tag, attributes):
        if tag == "div":
            is_paragraph = dict(attributes).get("class") == "para"
            self.open.append(len(self.found) if is_paragraph else None)
            if is_paragraph:
                self.found.append([])

    def handle_endtag(self, tag):
        if tag == "div" and self.open:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] is not None:
            self.found[self.open[-1]].append(data)


def paragraphs_of(file):
    parser = Paragraphs()
    parser.feed(file.read_text(encoding="utf-8"))
    return [" ".join("".join(parts).translate(PLAIN).split()) for parts in parser.found]


def pairs_of(source, target):
    """Of two pages."""
    ours, theirs = paragraphs_of(source), paragraphs_of(target)
    if len(ours) != len(theirs):
        return
    for a, b in zip(ours, theirs):
        if not a or not b or a == b:
            continue
        parts = [BETWEEN_SENTENCES.split(text) for text in (a, b)]
        yield from zip(*parts) if len(parts[0]) == len(parts[1]) else [(a, b)]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--language", default="de-DE")
    parser.add_argument("--html", type=pathlib.Path,
                        default=pathlib.Path("/usr/share/doc/debian-handbook/html"))
    options = parser.parse_args(arguments)
    english, other = options.html / "en-US", options.html / options.language
    for folder in (english, other):
        if not folder.is_dir():
            sys.exit(f"make_sentences: there is no {folder}; install the package with "
                     "apt-get install debian-handbook, or name its folder with --html")
    pairs = [pair for page in sorted(english.glob("*.html")) if (other / page.name).exists()
             for pair in pairs_of(page, other / page.name)]
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, lines in zip(("source.txt", "target.txt"), zip(*pairs)):
        (options.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(pairs)} pairs in {options.folder}/source.txt and target.txt")


if __name__ == "__main__":
    main(sys.argv[1:])
