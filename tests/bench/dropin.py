#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of GraphBLAS without the drop-in and with it, in turns: the program is the same file.

    dropin.py BUILD [--graph rmat:20:8000000] [--width 128] [--repeat 3] [--threads 2] [--cpu] [--python PYTHON]

Prints a Markdown table: for each form of product the median seconds of GraphBLAS and of the drop-in, and their ratio.
With --cpu they are seconds of the processor for each thread, of the program in C.
The checksums of the results have to agree within 1e-6. Both sides have the OMP_... variables that the user has set.
With --python, dropin_script.py runs too, by an interpreter that has python-graphblas, with the GraphBLAS that this
brings.
"""
import argparse
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def times_of(command, library):
    """{form: (seconds, checksum)} of one run of the program, with the drop-in if `library` is given."""
    environment = dict(os.environ)
    environment.pop("GRAFT_GRB", None)
    if library:
        environment["LD_PRELOAD"] = library
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"dropin.py: {' '.join(command)}\n{result.stderr}")
    lines = [line.split() for line in result.stdout.splitlines()]
    return {name: (float(seconds), float(total)) for name, seconds, total in lines}


def compare(title, command, library, repeat):
    """Rows of the table for one program."""
    runs = [(times_of(command, None), times_of(command, library)) for _ in range(repeat)]
    for form, (_, total) in runs[0][0].items():
        found = runs[0][1][form][1]
        if abs(found - total) > 1e-6 * abs(total):
            sys.exit(f"dropin.py: {form}: the checksum is {found}, expected {total}")
        plain, ours = (statistics.median(pair[side][form][0] for pair in runs) for side in (0, 1))
        ratio = statistics.median(pair[0][form][0] / pair[1][form][0] for pair in runs)
        print(f"| {title} | {form} | {plain:.3f} | {ours:.3f} | {ratio:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--graph", default="rmat:20:8000000")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--python")
    options = parser.parse_args()
    library = os.path.abspath(os.path.join(options.build, "libgraft-grb.so"))
    numbers = [options.graph, str(options.width), "3", str(options.threads)]

    print("| program | product | GraphBLAS, s | with the drop-in, s | times faster |\n|---|---|---|---|---|")
    compare("C", [os.path.join(options.build, "tests", "bench", "grb_program"), *numbers,
                  *(["cpu"] if options.cpu else [])], library, options.repeat)
    if options.python:
        script = [options.python, os.path.join(HERE, "dropin_script.py"), *numbers]
        compare("Python", script, library, options.repeat)


if __name__ == "__main__":
    main()
