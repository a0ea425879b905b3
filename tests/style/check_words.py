#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Standard words: check_words.py ROOT. Comments and documents say what readers of the field say. The table is what not
to write, and what instead. Rooms and folders in CLEAN have none of it; of the others it is counted."""
import collections
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
# Folders without such words. A folder that has become clean is added here.
CLEAN = [".github", "CHANGELOG.md", "README.md", "abi", "adapters", "examples", "plugin/adaptive", "plugin/base",
         "plugin/codec", "plugin/cover", "plugin/dense", "plugin/dgraph", "plugin/edge", "plugin/entry",
         "plugin/graph", "plugin/io", "plugin/kernel", "plugin/partition", "plugin/spmm"]


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


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "plugin" and len(parts) > 2 else parts[0]


def main():
    root = sys.argv[1]
    found = collections.defaultdict(list)
    for path in sources.files(root) + sources.documents(root):
        found[folder_of(path)] += faults_of(root, path)
    wrong = [fault for folder in CLEAN for fault in found[folder]]
    tap.ok(not wrong, "folders that have standard words keep them", *wrong)
    for folder, faults in sorted(found.items()):
        if folder not in CLEAN:
            print(f"# {folder}: {len(faults)}" + (", so it can be added to CLEAN" if not faults else ""))
            if len(sys.argv) > 2 and folder.startswith(sys.argv[2]):
                print("\n".join("# " + fault for fault in faults))
    tap.ok(len(PATTERN.findall("rows in few bits are told in vain")) == 3, "such words are found")
    tap.done()


if __name__ == "__main__":
    main()
