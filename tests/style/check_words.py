#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Standard words: check_words.py ROOT. Comments and documents say what readers of the field say. The table is what not
to write, and what instead."""
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
    r"whoever|somebody|nobody|one another": "the caller, the host, each other",
}
PATTERN = re.compile("|".join(rf"\b(?:{words})\b" for words in INSTEAD), re.IGNORECASE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
def instead_of(found):
    return next(better for words, better in INSTEAD.items() if re.fullmatch(words, found, re.IGNORECASE))


def prose(path, text):
    """The text with all but its comments, or all of a document, replaced by blanks."""
    if path.endswith(".md"):
        return text
    out = list(re.sub(r"[^\n]", " ", text))
    for match in COMMENT.finditer(text):
        out[match.start():match.end()] = match.group()
    return "".join(out)


def faults_of(root, path):
    text = re.sub(r"\n[ \t]*\*?[ \t]*(?=\S)", lambda match: "\n" + " " * (len(match.group()) - 1),
                  prose(path, sources.read(root, path)))
    flat = re.sub(r"\s", " ", text)
    single = re.sub(r" +", " ", flat)  # a phrase may be broken across lines
    count = len(PATTERN.findall(single))
    shown = [f"{path}:{sources.line_of(text, match.start())}: '{match.group()}': {instead_of(match.group())}"
             for match in PATTERN.finditer(flat)]
    return shown + [f"{path}: a phrase across two lines"] * (count - len(shown))


def main():
    root = sys.argv[1]
    found = [fault for path in sources.files(root) + sources.documents(root) for fault in faults_of(root, path)]
    tap.ok(not found, "comments and documents have standard words", *found)
    tap.ok(len(PATTERN.findall("rows in few bits are told in vain")) == 3, "such words are found")
    tap.done()


if __name__ == "__main__":
    main()
