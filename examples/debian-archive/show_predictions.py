#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names a few test packages whose section a model predicted, both right and wrong."""
import argparse
import os
import sys

import npy

TEST = 3

# Well-known packages, so that a reader can judge the predictions. Packages that are missing or not for testing are
# skipped. If too few remain, other packages follow in order of name.
FAMILIAR = """
    gimp blender vlc postgresql-15 apache2 nginx git vim emacs firefox-esr libreoffice-writer inkscape audacity
    wireshark octave r-base python3-numpy texlive-latex-base gnome-terminal thunderbird mutt ffmpeg imagemagick
    darktable gcc cmake gdb valgrind rustc golang-go nodejs ruby php-cli openjdk-17-jdk sqlite3 mariadb-server
    redis-server qemu-system-x86 docker.io openssh-server rsync curl wget tmux zsh bash htop nmap tor samba cups
    krita kdenlive ardour lilypond stellarium celestia gnuplot maxima scilab freecad openscad kicad wesnoth supertux
    nethack-console supertuxkart fonts-dejavu-core hunspell calibre pandoc bind9 exim4-daemon-light dovecot-core
    squid
""".split()


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def read_vertices(path, count):
    """Read one value for each vertex."""
    shape, values = npy.read(path)
    if shape != (count,):
        raise ValueError(f"{path}: expected one value for each of {count} packages, found the shape {shape}")
    return values


def print_rows(title, rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print(title)
    for row in rows:
        print("   ", "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def print_predictions(folder, predictions_path, count_right, count_wrong):
    names = read_lines(os.path.join(folder, "names.txt"))
    classes = read_lines(os.path.join(folder, "classes.txt"))
    labels = read_vertices(os.path.join(folder, "labels.npy"), len(names))
    split = read_vertices(os.path.join(folder, "split.npy"), len(names))
    predictions = read_vertices(predictions_path, len(names))
    for vertex, label in enumerate(predictions):
        if not 0 <= label < len(classes):
            raise ValueError(f"{predictions_path}: vertex {vertex} has the class {label} of {len(classes)}")

    tested = [i for i in range(len(names)) if split[i] == TEST and labels[i] >= 0]
    if not tested:
        raise ValueError(f"{folder}: no package is for testing")
    number = {names[i]: i for i in tested}
    familiar = [number[name] for name in FAMILIAR if name in number]
    order = list(dict.fromkeys(familiar + tested))
    right = [i for i in order if predictions[i] == labels[i]]
    wrong = [i for i in order if predictions[i] != labels[i]]
    if right:
        rows = [(names[i], classes[labels[i]]) for i in right]
        print_rows("Right, for example:", rows[:count_right])
    if wrong:
        rows = [(names[i], f"{classes[predictions[i]]},", f"Debian says {classes[labels[i]]}") for i in wrong]
        print_rows("Wrong, for example:", rows[:count_wrong])
    print(f"In all, {len(right):,} of {len(tested):,} packages ({100 * len(right) / len(tested):.1f} %) that had no "
          "part in training are right.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="written by make_dataset.py")
    parser.add_argument("predictions", help="written by graft-train --predict")
    parser.add_argument("--right", type=int, default=8, metavar="N", help="how many right ones to name (default 8)")
    parser.add_argument("--wrong", type=int, default=5, metavar="N", help="how many wrong ones to name (default 5)")
    options = parser.parse_args()
    try:
        print_predictions(options.folder, options.predictions, options.right, options.wrong)
    except (OSError, ValueError) as error:
        sys.exit(f"show_predictions.py: {error}")


if __name__ == "__main__":
    main()
