#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a random data set for measurements: a graph that bench_mxm generates, and random features, labels and split.

    random_dataset.py rmat:21:30000000 FOLDER --features 100 --classes 47 --train 0.08
"""
import argparse
import os
import subprocess
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", help="rmat:SCALE:EDGES or uniform:N:EDGES")
    parser.add_argument("folder")
    parser.add_argument("--features", type=int, default=100, metavar="N", help="default: %(default)s")
    parser.add_argument("--classes", type=int, default=47, metavar="N", help="default: %(default)s")
    parser.add_argument("--train", type=float, default=0.08, metavar="SHARE",
                        help="of the vertices; 2 %% validate, the others test (default: %(default)s)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="default: %(default)s")
    options = parser.parse_args()
    program = os.path.join(options.build, "tests/bench/bench_mxm")
    if not os.access(program, os.X_OK):
        sys.exit(f"random_dataset.py: there is no {program}; build Graft first, or name its build with --build")
    os.makedirs(options.folder, exist_ok=True)
    if subprocess.run([program, "--graph", options.graph, "--export", options.folder], stdout=subprocess.DEVNULL,
                      check=False).returncode != 0:
        sys.exit(1)  # bench_mxm has printed the reason
    n = len(np.load(os.path.join(options.folder, "indptr.npy"), mmap_mode="r")) - 1
    os.remove(os.path.join(options.folder, "indptr.npy"))
    random = np.random.default_rng(7)
    draw = random.random(n, np.float32)
    split = np.where(draw < options.train, 1, np.where(draw < options.train + 0.02, 2, 3)).astype(np.uint8)
    arrays = {"features": random.standard_normal((n, options.features), np.float32), "split": split,
              "labels": random.integers(0, options.classes, n, np.int32)}
    for name, array in arrays.items():
        np.save(os.path.join(options.folder, name + ".npy"), array)
    print(f"{options.folder}: {n} vertices, {int((split == 1).sum())} to train")


if __name__ == "__main__":
    main()
