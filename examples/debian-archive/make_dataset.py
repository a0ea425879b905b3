#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the package archive that apt knows as a graph for Graft: a folder of .npy files.

One vertex per binary package, in order of name. Undirected edges from Depends, Pre-Depends, Recommends and Suggests,
all alternatives; a name that no package bears leads to the first 3 packages, in order of name, that provide it.
Label: the section after its last '/'. Features: 256 hashed counts of the words of three letters or more in the short
description, each row divided by its Euclidean length. Split: 10 % training, 10 % validation, 80 % test, by a hash of
the name.
"""
import argparse
import array
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import time
import zlib

import npy

RELATIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests")
FIELDS = {"Package", "Section", "Description", "Provides", *RELATIONS}
FOLDED = {"Provides", *RELATIONS}  # the lines after a Description are its long form, which is not needed
WIDTH = 256
PROVIDERS = 3
TRAIN, VALIDATION, TEST = 1, 2, 3

# A name follows the beginning of the line, a comma or a bar. Text after it, as in "name:any (>= 1.0) [arch]", is
# skipped.
NAME = re.compile(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)", re.IGNORECASE)
WORD = re.compile(r"[^\W\d_]{3,}")


def read_packages(lines):
    """Read the packages as {name: fields}. If several stanzas have the same name, the first is kept. Lines that
    belong to no stanza are skipped."""
    packages, stanza, field = {}, {}, None
    for line in lines:
        if line.isspace():
            packages.setdefault(stanza.get("Package"), stanza)
            stanza, field = {}, None
        elif line[0] in " \t":
            if field in FOLDED:
                stanza[field] += " " + line.strip()
        else:
            field, colon, value = line.partition(":")
            if colon and field in FIELDS:
                stanza.setdefault(field, value.strip())
            else:
                field = None
    packages.setdefault(stanza.get("Package"), stanza)
    packages.pop(None, None)
    packages.pop("", None)
    return packages


def find_providers(names, packages):
    providers = {}
    for name in names:
        for virtual in dict.fromkeys(NAME.findall(packages[name].get("Provides", ""))):
            providers.setdefault(virtual, []).append(name)
    return providers


def find_edges(names, packages):
    """Find both directions of every edge, as source * n + destination in ascending order."""
    index = {name: i for i, name in enumerate(names)}
    providers = find_providers(names, packages)
    edges = set()
    for source, name in enumerate(names):
        for relation in RELATIONS:
            for target in NAME.findall(packages[name].get(relation, "")):
                for found in [target] if target in index else providers.get(target, [])[:PROVIDERS]:
                    destination = index[found]
                    if source != destination:
                        edges.add(source * len(names) + destination)
                        edges.add(destination * len(names) + source)
    return sorted(edges)


def make_features(names, packages):
    features = array.array("f", bytes(4 * WIDTH * len(names)))
    for i, name in enumerate(names):
        counts = {}
        for word in WORD.findall(packages[name].get("Description", "").lower()):
            column = zlib.crc32(word.encode()) % WIDTH
            counts[column] = counts.get(column, 0) + 1
        length = math.sqrt(sum(count * count for count in counts.values()))
        for column, count in counts.items():
            features[i * WIDTH + column] = count / length
    return features


def make_labels(names, packages):
    """The names of the classes, and the number of the class of each package, which is -1 for a package without a
    section."""
    sections = [packages[name].get("Section", "").rpartition("/")[2] for name in names]
    classes = sorted(set(sections) - {""})
    number = {name: i for i, name in enumerate(classes)}
    return classes, array.array("i", [number.get(section, -1) for section in sections])


def choose_split(name):
    draw = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") % 10
    return TRAIN if draw == 0 else VALIDATION if draw == 1 else TEST


def write_lines(path, lines):
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)
    os.replace(partial, path)


def write_dataset(folder, packages):
    """Write all files, and return one line that describes the data set."""
    names = sorted(packages)
    edges = find_edges(names, packages)
    classes, labels = make_labels(names, packages)
    split = array.array("B", map(choose_split, names))
    ends = array.array("i", [edge // len(names) for edge in edges])
    ends.extend(edge % len(names) for edge in edges)
    os.makedirs(folder, exist_ok=True)
    npy.write(os.path.join(folder, "edges.npy"), (2, len(edges)), ends)
    npy.write(os.path.join(folder, "features.npy"), (len(names), WIDTH), make_features(names, packages))
    npy.write(os.path.join(folder, "labels.npy"), (len(names),), labels)
    npy.write(os.path.join(folder, "split.npy"), (len(names),), split)
    write_lines(os.path.join(folder, "classes.txt"), classes)
    write_lines(os.path.join(folder, "names.txt"), names)  # last, so that its time is that of a complete data set
    return (f"{len(names):,} packages, {len(edges):,} directed edges, {len(classes)} classes; "
            f"{split.count(TRAIN):,} to train, {split.count(VALIDATION):,} to validate, {split.count(TEST):,} to test")


def read_archive(path):
    """Read packages from a file, from standard input ('-'), or from apt (None)."""
    if path == "-":
        return read_packages(open(0, encoding="utf-8", errors="replace", closefd=False))
    if path is not None:
        with open(path, encoding="utf-8", errors="replace") as file:
            return read_packages(file)
    command = ["apt-cache", "dumpavail"]
    if shutil.which(command[0]) is None:
        raise OSError("there is no apt-cache here. Save the output of 'apt-cache dumpavail' on a Debian machine, and "
                      "give the file with --input")
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        packages = read_packages(process.stdout)
    if process.returncode != 0:
        raise OSError(f"'{' '.join(command)}' failed with status {process.returncode}")
    return packages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where to write the files; made if it is not there")
    parser.add_argument("--input", metavar="FILE", help="output of 'apt-cache dumpavail', '-' for standard input; "
                        "without it the command is run")
    options = parser.parse_args()
    start = time.monotonic()
    try:
        packages = read_archive(options.input)
        if not packages:
            sys.exit("make_dataset.py: there is no package in the input. Let apt read the archive's lists with "
                     "'apt-get update' (as root), then run this again.")
        summary = write_dataset(options.folder, packages)
    except (OSError, ValueError) as error:
        sys.exit(f"make_dataset.py: {error}")
    print(f"{summary} ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
