#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: check_docs.py ROOT [BUILD [--write]]. Prints TAP. Without BUILD it checks that every
relative link and anchor in Markdown resolves, that README.md has at most 8 KB and lines have at most 120 columns,
and that every block of C or C++ with "excerpt=FILE" in its first line occurs in that file, line by line. With BUILD
it runs every block that begins with "```sh run". The scratch folder for this has a small data set named DATASET and
looks like the source after a build or, if the document is installed, like the installed documents. Blocks of one
document share the folder and run in order. It also compares the list of options in the manual of graft-train with
that of the program; --write updates the manual."""
import array
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import installed
import sources
import tap

MAX_README, MAX_COLUMNS, TIMEOUT = 8192, 120, 120
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MANUAL = "examples/graft-train/README.md"
OPTIONS = re.compile(r"(<!-- options: begin [^\n]*\n)(.*?)(<!-- options: end -->)", re.DOTALL)
LINK = re.compile(r"(?<!\!)\[[^\]\n]+\]\(([^)\s]+)\)")


def anchors(text):
    """The anchors that GitHub makes from headings."""
    seen, names = {}, set()
    for heading in re.findall(r"^#{1,6} (.*)$", FENCE.sub("", text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        names.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
    return names


def broken_links(root, texts):
    for path, text in texts.items():
        for target in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if file not in texts and not os.path.exists(os.path.join(root, file)):
                yield f"{path}: {target}: there is no {file}"
            elif anchor and anchor not in anchors(texts.get(file, "")):
                yield f"{path}: {target}: {file} has no such heading"


def long_lines(texts):
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_COLUMNS:
                yield f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"


def wrong_excerpts(root, texts):
    for path, text in texts.items():
        for info, body in FENCE.findall(text):
            words = info.split()
            if not words or words[0] not in ("c", "cpp") or (len(words) == 1 and path == "README.md"):
                continue  # unit/examples/test_examples checks the host in README.md
            match = re.fullmatch(r"c(?:pp)? excerpt=(\S+)", info)
            file = os.path.join(root, match[1]) if match else ""
            if not os.path.isfile(file):
                yield f"{path}: a C block is no excerpt of a file: '{info}'"
                continue
            if "\n" + body not in "\n" + sources.read(root, match[1]):
                yield f"{path}: not in {match[1]}:\n{body}"


def check_texts(root, texts):
    broken = list(broken_links(root, texts))
    tap.ok(not broken, "links lead somewhere", *broken)
    size = len(texts["README.md"].encode())
    tap.ok(size <= MAX_README, f"README.md has at most {MAX_README} bytes", size)
    long = list(long_lines(texts))
    tap.ok(not long, f"Markdown has lines of at most {MAX_COLUMNS} columns", *long)
    wrong = list(wrong_excerpts(root, texts))
    tap.ok(not wrong, "C blocks are excerpts of files", *wrong)


def check_checks(root):
    """Check that these checks find faults, with a text that has one fault of each kind."""
    texts = {"a.md": "# Two words, `x`!\n[a](#two-words-x) [b](b.md) [c](#three)\n```c excerpt=none.c\nint x;\n```\n"}
    texts["a.md"] += "x" * (MAX_COLUMNS + 1) + "\n"
    found = [len(list(faults)) for faults in (broken_links(root, texts), long_lines(texts),
                                              wrong_excerpts(root, texts))]
    tap.ok(found == [2, 1, 1], "what is wrong is found", found)


def make_dataset(root, folder):
    """Make a data set of two communities whose features differ. Every third vertex is for training, validation or
    test."""
    sys.path.insert(0, os.path.join(root, "examples", "debian-archive"))
    import npy
    draw, n = random.Random(1), 120
    labels = [v % 2 for v in range(n)]
    edges = sorted({(u, v) for v in range(n) for u in (draw.randrange(n // 2) * 2 + labels[v] for _ in range(4))})
    os.makedirs(folder)
    npy.write(f"{folder}/edges.npy", (2, len(edges)), array.array("i", [e[side] for side in (0, 1) for e in edges]))
    npy.write(f"{folder}/features.npy", (n, 4),
              array.array("f", [draw.gauss(labels[v] if f else 0, 1) for v in range(n) for f in range(4)]))
    npy.write(f"{folder}/labels.npy", (n,), array.array("i", labels))
    npy.write(f"{folder}/split.npy", (n,), array.array("B", [1 + v // 2 % 3 for v in range(n)]))


def make_scratch(root, source, build, folder):
    """Make a folder with the contents of `source`, and with the build if there is one."""
    os.makedirs(folder)
    for name in os.listdir(source):
        if name != ".git" and not name.startswith("build"):
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
    if build:
        os.symlink(build, os.path.join(folder, "build"))
    make_dataset(root, os.path.join(folder, "DATASET"))


def run_block(path, number, body, folder, variables):
    name = f"{path}: block {number} runs: {body.splitlines()[0][:60]}"
    for tool in ("mpiexec", "c++", "pkg-config"):
        if tool in body and shutil.which(tool) is None:
            tap.skip(name, f"{tool} is not installed")
            return
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                       OMPI_MCA_hwloc_base_binding_policy="none", GRAFT_THREADS="1")
    environment.pop("GRAFT_LIBRARY", None)
    environment.update(variables)
    result = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=folder, stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT, env=environment)
    tap.ok(result.returncode == 0, name, f"exit status {result.returncode}", result.stdout)


def run_commands(root, build, texts):
    count = 0
    with tempfile.TemporaryDirectory(prefix="graft-docs-") as base:
        with installed.kept_log(build):
            tree = installed.installed_and_moved(build, os.path.realpath(base))
        documents = os.path.join(tree, "share", "doc", "graft")
        for path, text in texts.items():
            blocks = [body for info, body in FENCE.findall(text) if info == "sh run"]
            folder = os.path.join(base, path.replace("/", "_"))
            is_installed = os.path.exists(os.path.join(documents, path))
            if blocks and is_installed:
                make_scratch(root, documents, None, folder)
            elif blocks:
                make_scratch(root, root, build, folder)
            for number, body in enumerate(blocks, 1):
                run_block(path, number, body, folder, installed.paths(build, tree) if is_installed else {})
            count += len(blocks)
    tap.ok(count > 0, "documents have commands that run", count)


def list_of_options(build):
    """The options that the program prints, by group."""
    text = subprocess.run([os.path.join(build, "graft-train"), "--list-options=all"], check=True, text=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, GRAFT_LIBRARY="")).stdout
    return f"\n```text\n{text}```\n\n"


def check_options(root, build, text, is_writing):
    match, options = OPTIONS.search(text), list_of_options(build)
    if match and is_writing:
        with open(os.path.join(root, MANUAL), "w", encoding="utf-8") as file:
            file.write(text[:match.start(2)] + options + text[match.end(2):])
    tap.ok(match and (is_writing or match[2] == options), f"{MANUAL} has the options of the program", options)


def main():
    root = os.path.abspath(sys.argv[1])
    texts = {path: sources.read(root, path) for path in sources.documents(root)}
    if len(sys.argv) > 2:
        check_options(root, os.path.abspath(sys.argv[2]), texts[MANUAL], sys.argv[3:] == ["--write"])
        run_commands(root, os.path.abspath(sys.argv[2]), texts)
    else:
        check_texts(root, texts)
        check_checks(root)
    tap.done()


if __name__ == "__main__":
    main()
