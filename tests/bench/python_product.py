#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the overhead of Python: of `import graft`, of graft.aggregate compared with the same product in a C program,
and of graft.Sampler.

    PYTHONPATH=build/adapters/python tests/bench/python_product.py

The product runs alternately in bench_mxm, which is a C program, and in this script, on the same graph. Then
graft.aggregate alternates with the library function that it calls, whose arguments are created once. The sampler draws
batches of 1000 seeds from 100,000 seeds, like bench_sampler in C."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="rmat:20:8000000", metavar="GRAPH", help="default: %(default)s")
    parser.add_argument("--width", type=int, default=128, metavar="N", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=15, metavar="N", help="default: %(default)s")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="default: %(default)s")
    return parser.parse_args()


def print_import(times=9):
    """Print the wall time and the processor time of `import graft` in new processes."""
    code = "import time; t = time.perf_counter(), time.process_time(); import graft; " \
           "print(time.perf_counter() - t[0], time.process_time() - t[1])"
    run = [subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
           for _ in range(times)]
    wall, processor = ([1e3 * float(one[i]) for one in run] for i in (0, 1))
    print(f"import graft: {statistics.median(wall):.1f} ms, least {min(wall):.1f} ms; of processor time "
          f"{statistics.median(processor):.1f} ms", flush=True)


def seconds_in_c(options, folder):
    """Returns the median seconds of three products in bench_mxm."""
    told = os.path.join(folder, "told.json")
    subprocess.run([os.path.join(options.build, "tests/bench/bench_mxm"), "--graph", options.graph, "--width",
                    str(options.width), "--threads", str(options.threads), "--kernel", "simd", "--form", "plain",
                    "--repeat", "3", "--json", told], check=True, stdout=subprocess.DEVNULL)
    with open(told, encoding="utf-8") as file:
        return next(line["seconds_median"] for line in json.load(file)
                    if line["kernel"] == "simd" and line["form"] == "plain")


def timed(call):
    begin = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def direct(graft, matrix, x, out, threads):
    """Returns a function that calls the library directly."""
    from graft import arrays
    from graft.context import new
    from graft.product import SEMIRINGS
    views = arrays.view_dense(x), arrays.view_dense(out)
    args = new("graft_mxm_args", semiring=SEMIRINGS["plus_second"], threads=threads, a=matrix._handle)
    args.b, args.c = views
    error = graft.errors.new_error()
    return lambda: (matrix._mxm.run(matrix.context.handle, args, error), views)


def print_pairs(options, aggregate, run):
    pairs = [(timed(aggregate), timed(run)) if i % 2 else (timed(run), timed(aggregate))[::-1]
             for i in range(options.pairs)]
    wall, processor = (statistics.median(a[i] / b[i] for a, b in pairs) for i in (0, 1))
    print(f"graft.aggregate / run() of the library, medians of {options.pairs} pairs: {wall:.4f} of wall time, "
          f"{processor:.4f} of processor time; least seconds {min(a[0] for a, _ in pairs):.4f} and "
          f"{min(b[0] for _, b in pairs):.4f}", flush=True)


def print_sampler(graft, adjacency, n, threads):
    """Print the sampled edges per second of two epochs, after one epoch to warm up."""
    sampler = graft.Sampler(adjacency, list(range(min(n, 100000))), layers=3, fanout=[5, 10, 15], batch_size=1000,
                            threads=threads)
    edges = sum(block.indices.size for batch in sampler for block in batch.blocks)
    wall, processor = (sum(both) / 2 for both in zip(*(timed(lambda: sum(1 for _ in sampler)) for _ in range(2))))
    print(f"graft.Sampler, {threads} threads: {edges} edges of an epoch, {edges / wall / 1e6:.1f} million edges per "
          f"second, {edges / processor / 1e6:.1f} million per second of the processor", flush=True)


def main():
    options = arguments()
    print_import()
    import graft
    import graft.errors
    import numpy as np
    from graft import arrays
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([os.path.join(options.build, "tests/bench/bench_mxm"), "--graph", options.graph,
                               "--export", folder], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(made.splitlines()[0], flush=True)
        indptr, edges = np.load(folder + "/indptr.npy"), np.load(folder + "/edges.npy")
        n = len(indptr) - 1
        adjacency = (indptr, np.ascontiguousarray(edges[0], np.int32), None, (n, n))
        print_sampler(graft, adjacency, n, options.threads)
        matrix = graft.Matrix(adjacency)
        x, out = (arrays.new_matrix(n, options.width, "float32") for _ in range(2))
        x[:] = np.arange(options.width)
        aggregate = lambda: graft.aggregate(matrix, x, "plus_second", out=out, threads=options.threads)
        run = direct(graft, matrix, x, out, options.threads)
        aggregate()
        print_pairs(options, aggregate, run)
        in_c, here = [], []
        for _ in range(options.rounds):
            in_c.append(seconds_in_c(options, folder))
            aggregate()  # warm up once, like bench_mxm
            here.append(statistics.median(timed(aggregate)[0] for _ in range(3)))
    if in_c:
        print(f"{n} x {options.width}, {options.threads} threads: bench_mxm {statistics.median(in_c):.4f} s, "
              f"graft.aggregate {statistics.median(here):.4f} s; least {min(in_c):.4f} and {min(here):.4f} s",
              flush=True)
    small = graft.Matrix((np.array([0, 1]), np.array([0]), None, (1, 1)))
    tiny, into = np.ones((1, 1), np.float32), np.ones((1, 1), np.float32)
    each = statistics.median(timed(lambda: graft.aggregate(small, tiny, out=into, threads=1))[0] for _ in range(2000))
    print(f"a product of one element: {1e6 * each:.1f} microseconds")


if __name__ == "__main__":
    main()
