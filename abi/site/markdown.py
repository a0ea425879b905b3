#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Markdown as Doxygen needs it: markdown.py ROOT FILE prints the page FILE of the site.

A page is named after its folder or file, its headings after their anchors on GitHub, and links between pages become
references that Doxygen checks. A link to a file that is not on the site becomes its text."""
import os
import re
import sys

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]\n]+)\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(@)(?=\w)")  # what Doxygen would take for a command of its own
HEADING = re.compile(r"^(#{1,6}) (.*)$", re.MULTILINE)
INDEX = "abi/site/index.md"
PAGES = ["README.md", "CHANGELOG.md", "abi/README.md", "plugin/ARCHITECTURE.md", ".github/CONTRIBUTING.md",
         "tests/README.md", "tests/bench/README.md", "tests/bench/RESULTS.md", "tests/bench/NOTES.md",
         "examples/graft-train/README.md", "examples/convert/README.md", "examples/heat/README.md",
         "examples/link-prediction/README.md", "examples/module/README.md", "examples/solver_dummies/README.md",
         "adapters/cxx/README.md", "adapters/fortran/README.md", "adapters/graphblas/README.md",
         "adapters/petsc/README.md", "adapters/python/README.md"]
ROOMS = "plugin"  # each of its folders has a page


def pages(root):
    """The Markdown files of the site."""
    own = sorted(name for name in os.listdir(os.path.join(root, "abi", "site")) if name.endswith(".md"))
    folder = os.path.join(root, ROOMS)
    rooms = sorted(room for room in os.listdir(folder) if os.path.isdir(os.path.join(folder, room)))
    return PAGES + [f"{ROOMS}/{room}/README.md" for room in rooms] + [f"abi/site/{name}" for name in own]


def label(path):
    """The name of a page: of its folder for a README, else of its file."""
    if path == INDEX:
        return "mainpage"
    stem = path[:-len(".md")].removesuffix("/README").removeprefix(".github/")
    return "page-" + re.sub(r"\W+", "-", stem.removeprefix("abi/site/")).lower()


def anchor_names(text):
    """{offset of a heading: its anchor on GitHub}"""
    seen, found = {}, {}
    for match in HEADING.finditer(FENCE.sub(lambda fence: " " * len(fence.group()), text)):
        slug = re.sub(r"[^\w\- ]", "", match[2].strip().lower()).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        found[match.start()] = f"{slug}-{seen[slug]}" if seen[slug] else slug
    return found


def reference(path, on_site, target):
    """The label that a link means, or None: it leads out of the site."""
    name, _, anchor = target.partition("#")
    file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if file not in on_site:
        return None
    return f"{label(file)}-{anchor}" if anchor else label(file)


def with_links(path, on_site, text):
    def replaced(match):
        image, words, target = match.groups()
        if image:
            return f"![{words}]({os.path.basename(target)})"
        if re.match(r"[a-z]+:", target):
            return match.group()
        found = reference(path, on_site, target)
        if found is None:
            return words
        command = "@subpage" if path == INDEX and "#" not in target else "@ref"
        return f'{command} {found} "{words.replace(chr(96), "")}"'
    return LINK.sub(replaced, text)


def converted(path, on_site, text):
    names, out, at = anchor_names(text), [], 0
    is_first = True
    for fence in [*FENCE.finditer(text), None]:
        end = fence.start() if fence else len(text)
        part, begin = text[at:end], at

        def headed(match):
            nonlocal is_first
            name = label(path) if is_first else f"{label(path)}-{names[begin + match.start()]}"
            is_first = False
            return f"{match.group()} {{#{name}}}"
        out.append(with_links(path, on_site, COMMAND.sub(r"\\\1", HEADING.sub(headed, part))))
        if fence:
            head, _, body = fence.group().partition("\n")
            language = head[3:].split(" ")[0]
            out.append("```" + (language if language != "text" else "") + "\n" + body)
            at = fence.end()
    return "".join(out)


def main():
    root, file = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with open(file, encoding="utf-8") as source:
        print(converted(os.path.relpath(file, root), set(pages(root)), source.read()))


if __name__ == "__main__":
    main()
