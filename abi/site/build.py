#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build the site: build.py ROOT OUT VERSION. It needs Doxygen. The pages are the headers for hosts and the Markdown
files that markdown.py lists; OUT/index.html is the first one. Prints the warnings of Doxygen, and fails if there are
any."""
import glob
import os
import subprocess
import sys

import markdown

HEADERS = ["abi/*.h", "abi/draft/*.h", "adapters/cxx/*.hpp", "adapters/petsc/*.h", "adapters/mpi/*.h"]


def configuration(root, out, version):
    """The text of the Doxyfile."""
    headers = sorted(path for pattern in HEADERS for path in glob.glob(os.path.join(root, pattern)))
    inputs = headers + [os.path.join(root, page) for page in markdown.pages(root)]
    values = {"version": version, "out": out, "root": root, "python": sys.executable,
              "filter": os.path.abspath(markdown.__file__), "warnings": os.path.join(out, "warnings.txt"),
              "input": " \\\n ".join(f'"{path}"' for path in inputs),
              "figures": " ".join(f'"{path}"' for path in glob.glob(os.path.join(root, "abi/site/*.svg")))}
    with open(os.path.join(root, "abi", "site", "Doxyfile.in"), encoding="utf-8") as file:
        text = file.read()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def build(root, out, version):
    """The warnings, one per line."""
    os.makedirs(out, exist_ok=True)
    subprocess.run(["doxygen", "-"], input=configuration(root, out, version), text=True, check=True)
    with open(os.path.join(out, "warnings.txt"), encoding="utf-8") as file:
        return file.read()


def main():
    root, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    warnings = build(root, out, sys.argv[3])
    print(warnings, end="")
    print(f"{out}/index.html")
    sys.exit(warnings != "")


if __name__ == "__main__":
    main()
