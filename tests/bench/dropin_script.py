#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A python-graphblas script that does not use Graft. dropin.py measures it with and without the drop-in library.

    dropin_script.py uniform:N:EDGES|rmat:SCALE:EDGES WIDTH RUNS THREADS

Prints the median seconds and a checksum for each form of product.
"""
import statistics
import sys
import time

import graphblas as gb
import numpy as np

what, width, runs, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
kind, size, edges = what.split(":")
rng = np.random.default_rng(7)
n = 1 << int(size) if kind == "rmat" else int(size)
gb.ss.config["nthreads"] = threads


def draw(count):
    """Draw edges from the distributions of grb_program: uniformly, or with the recursive model (R-MAT)."""
    if kind == "uniform":
        return rng.integers(0, n, count), rng.integers(0, n, count)
    rows, columns = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for _ in range(int(size)):
        quadrant = rng.choice(4, count, p=(0.57, 0.19, 0.19, 0.05))
        rows, columns = 2 * rows + quadrant // 2, 2 * columns + quadrant % 2
    names = rng.permutation(n)
    return names[rows], names[columns]


rows, columns = draw(int(edges))
rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
a = gb.Matrix.from_coo(rows, columns, np.ones(rows.size, np.float32), nrows=n, ncols=n, dup_op=gb.binary.first)
h = gb.Matrix.from_dense(rng.random((n, width), dtype=np.float32))
chosen = np.flatnonzero(rng.random(n * width, dtype=np.float32) < 0.1)
mask = gb.Matrix.from_coo(chosen // width, chosen % width, True, nrows=n, ncols=width)


def plain():
    return a.mxm(h, gb.semiring.plus_times).new()


def masked():
    return a.mxm(h, gb.semiring.plus_times).new(mask=mask.S)


for name, product in (("plain", plain), ("mask_sparse", masked)):
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        c = product()
        c.wait()
        seconds.append(time.perf_counter() - begin)
    print(name, f"{statistics.median(seconds):.6f}", f"{float(c.reduce_scalar(gb.monoid.plus).new().value):.9g}")
