#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a GraphBLAS program alternately without and with the drop-in library. The executable file is the same.

    dropin.py BUILD [--graph rmat:20:8000000] [--width 128] [--repeat 3] [--threads 2] [--cpu] [--python PYTHON]

Prints a Markdown table. For each form of product it has the median seconds of GraphBLAS and of the drop-in library, and
their ratio. With --cpu these are the processor seconds per thread of the program in C. The checksums of the results
must agree within 1e-6. Both sides run with the OMP_... variables of the user. With --python, dropin_script.py runs too.
The named interpreter must have python-graphblas, and the script uses the GraphBLAS library of that package.
"""
import argparse
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def times_of(command, library):
    """Run the program once, with the drop-in library if `library` names it. Returns {form: (seconds, checksum)}."""
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
    """Measure one program, and print its rows of the table."""
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
