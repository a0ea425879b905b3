#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the site of documents that Doxygen builds: test_site.py ROOT. Doxygen must give no warning, every link of
every page must lead to a file and a heading that exist, each kind of user must have a page that the first page
names, and the search must find functions and pages. A broken link, a heading without its page, or a missing page is
a failure."""
import html.parser
import os
import re
import shutil
import sys
import tempfile
import urllib.parse

import tap

USERS = ["page-solver", "page-graphblas", "page-python", "page-large-graph", "page-limits", "page-costs"]
OF_DOXYGEN = {"nested-classes"}  # an anchor to which Doxygen 1.9 links without making it
WORDS = ["graft_open", "graft_mxm_api", "embedding graft"]


class Page(html.parser.HTMLParser):
    """The links, anchors and headings of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        for name in ("id", "name"):
            if attributes.get(name):
                self.anchors.add(attributes[name])
        link = attributes.get("src" if tag in ("img", "script", "iframe") else "href")
        if link and not link.startswith("javascript:"):
            self.links.append(link)


def read_pages(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".html"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name] = Page(file.read())
    return found


def broken(folder, pages):
    """The links whose targets do not exist."""
    for name, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = urllib.parse.unquote(link).partition("#")
            file = file or name
            if not os.path.exists(os.path.join(folder, file)):
                yield f"{name}: {link}: there is no such file"
            elif anchor and file in pages and anchor not in pages[file].anchors | OF_DOXYGEN:
                yield f"{name}: {link}: there is no such anchor"


def check_search(folder):
    index = ""
    for name in sorted(os.listdir(os.path.join(folder, "search"))):
        if re.match(r"all_.*\.js", name):
            with open(os.path.join(folder, "search", name), encoding="utf-8") as file:
                index += file.read().lower()
    missing = [word for word in WORDS if word not in index]
    tap.ok(not missing, "the search finds functions, types and pages", *missing)


def check_users(pages):
    first = pages["index.html"].links
    for user in USERS:
        tap.ok(f"{user}.html" in first and f"{user}.html" in pages, f"the first page leads to {user}", *first)


def check_checks(folder):
    """Check that this check finds faults, on two pages with three bad links."""
    with open(os.path.join(folder, "b.html"), "w", encoding="utf-8") as file:
        file.write("<a id='x'></a>")
    pages = {"a.html": Page("<a href='b.html#x'>1</a><a href='b.html#y'>2</a><a href='c.html'>3</a><img src='d.svg'>"),
             "b.html": Page("<a id='x'></a>")}
    faults = list(broken(folder, pages))
    tap.ok(len(faults) == 3, "links that lead nowhere are found", *faults)


def main():
    root = os.path.abspath(sys.argv[1])
    if shutil.which("doxygen") is None:
        tap.skip("the site", "doxygen is not installed")
        tap.done()
        return
    sys.path.insert(0, os.path.join(root, "abi", "site"))
    import build
    with tempfile.TemporaryDirectory(prefix="graft-site-") as folder:
        warnings = build.build(root, folder, "0")
        tap.ok(not warnings, "Doxygen has no warnings", *warnings.splitlines())
        pages = read_pages(folder)
        tap.ok(len(pages) > 100, "there are pages", len(pages))
        faults = list(broken(folder, pages))
        tap.ok(not faults, "every link leads to a file and a heading", *faults)
        check_users(pages)
        check_search(folder)
    with tempfile.TemporaryDirectory(prefix="graft-site-") as folder:
        check_checks(folder)
    tap.done()


if __name__ == "__main__":
    main()
