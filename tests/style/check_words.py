#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that comments, documents and the texts of programs have the field's standard words: check_words.py ROOT.
The table has the words that are not allowed, and the words to use instead."""
import re
import sys

import sources
import tap

INSTEAD = {
    r"few bits": "quantized, low-bit",
    r"late rows?|rows of the epoch before|asynchronous rows?": "stale rows, staleness",
    r"(?:what|that|which) (?:came|comes to)|what it comes to|comes? to (?:be|the same)": "received; equals, amounts to",
    r"in vain": "unnecessarily, has no effect",
    r"lets? go of": "frees, releases",
    r"gives? up": "cancels",
    r"(?:is|are) told": "is passed, receives",
    r"verdicts?": "agreement",
    r"beats?": "heartbeat",
    r"bare rows?": "rows without local entries",
    r"what a row lost|is lost on the way": "quantization error",
    r"room for": "capacity, buffer space",
    r"same bits": "bitwise identical",
    r"first values": "initial values",
    r"on[ -]line": "online",
    r"whoever|somebody|nobody|one another": "the caller, the host, each other",
}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DIRECTIVE = re.compile(r"^#[ \t]*include[^\n]*", re.MULTILINE)
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')


def pattern_of(table):
    return re.compile("|".join(rf"\b(?:{words})\b" for words in table), re.IGNORECASE)


def instead_of(table, found):
    return next(better for words, better in table.items() if re.fullmatch(words, found, re.IGNORECASE))


def only(pattern, text):
    """The text with everything except the matches of a pattern replaced by blanks."""
    out = list(re.sub(r"[^\n]", " ", text))
    for match in pattern.finditer(text):
        out[match.start():match.end()] = match.group()
    return "".join(out)


def comments(path, text):
    """The comments of a file, or all of a document, without the characters that begin their lines. Frozen headers stay
    as they were."""
    if path.startswith("tests/abi/frozen/"):
        return ""
    text = text if path.endswith(".md") else only(COMMENT, text)
    return re.sub(r"\n[ \t]*\*?[ \t]*(?=\S)", lambda match: "\n" + " " * (len(match.group()) - 1), text)


def texts(path, text):
    """The string literals of a C file. Adjacent literals are joined to one text. Frozen hosts are not checked."""
    if path.endswith(".md") or path.startswith("tests/abi/frozen/"):
        return ""
    return only(LITERAL, DIRECTIVE.sub("", sources.blank_out(text, literals=False))).replace('"', " ")


def faults_of(path, text, table):
    pattern = pattern_of(table)
    flat = re.sub(r"\s", " ", text)
    single = re.sub(r" +", " ", flat)  # a phrase may be broken across lines
    count = len(pattern.findall(single))
    shown = [f"{path}:{sources.line_of(text, match.start())}: '{match.group()}': {instead_of(table, match.group())}"
             for match in pattern.finditer(flat)]
    return shown + [f"{path}: a phrase across two lines"] * (count - len(shown))


def main():
    root = sys.argv[1]
    files = {path: sources.read(root, path) for path in sources.files(root) + sources.documents(root)}
    found = [fault for path, text in files.items() for fault in faults_of(path, comments(path, text), INSTEAD)]
    tap.ok(not found, "comments and documents have standard words", *found)
    found = [fault for path, text in files.items() for fault in faults_of(path, texts(path, text), INSTEAD)]
    tap.ok(not found, "texts of programs have standard words", *found)
    example = '/* rows in few bits */\nf("are told in vain: the same"\n  " bits");\n'
    tap.ok(len(faults_of("x.c", comments("x.c", example), INSTEAD)) == 1 and
           len(faults_of("x.c", texts("x.c", example), INSTEAD)) == 3, "such words are found")
    tap.done()


if __name__ == "__main__":
    main()
