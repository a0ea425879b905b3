#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests with traps of floating-point exceptions: traps.py BUILD-ROOT MESON [PROGRAM...]. Prints TAP.

  hosts      programs that trap in all their threads, by a preloaded library: no call of Graft may end one
  library    programs with finite numbers, and a library that does not mask traps: Graft must raise no exception; and a
             program of GraphBLAS, with the drop-in and this library
The default is the programs of HOSTS and FINITE, with few cases. A PROGRAM is a unit test, which runs as a host; "all"
means all unit tests except those of OWN, and each of FINITE again with the library that does not mask."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap
from unit_tests import run, tests_of

# For each interface the test that takes the least time, and tests that compute with numbers that are not finite.
HOSTS = ["test_batch_norm", "test_codec", "test_data", "test_edge", "test_group", "test_halo", "test_mesh",
         "test_model", "test_network_state", "test_nonfinite", "test_optimizers", "test_sampler", "test_stream"]
FINITE = ["test_batches", "test_codec", "test_edge", "test_halo", "test_labels", "test_model", "test_network",
          "test_regression", "test_stream"]
# Programs that compute numbers that are not finite themselves.
OWN = ["test_mxm"]  # its oracle compares with NaN
TRAPPED = "import ctypes; print(ctypes.CDLL('libm.so.6').fegetexcept())"


def check_drop_in(build, library):
    """Check a GraphBLAS program with the drop-in, which uses the library in the same folder."""
    program = os.path.join(build, "tests", "bench", "grb_program")
    if not os.path.exists(program):
        tap.skip("library: the drop-in", "GraphBLAS is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="graft-traps-") as folder:
        os.symlink(library, os.path.join(folder, "libgraft.so.1"))
        shutil.copy(f"{build}/libgraft-grb-products.so", folder)
        drop_in = shutil.copy(f"{build}/libgraft-grb.so", folder)
        more = {"LD_PRELOAD": drop_in, "GRAFT_GRB": "work=0,columns=0,summary"}
        ended = [subprocess.run([program, "rmat:10:8000", "17", "1", "2"], env={**os.environ, **environment}, text=True,
                                capture_output=True, timeout=120, check=False) for environment in ({}, more)]
    sums = [[line.split()[::2] for line in run.stdout.splitlines()] for run in ended]
    taken = re.search(r"(\d+) products taken", ended[1].stderr)
    tap.ok(sums[0] and sums[0] == sums[1] and taken and int(taken.group(1)) >= len(sums[0]),
           "library: the drop-in takes products of finite numbers, which are those of GraphBLAS", *ended)


def own_left_out(tests):
    return [name for name, test in tests.items() if os.path.basename(test["cmd"][0]) not in OWN]


def check(kind, name, fault):
    tap.ok(fault is None, f"{kind}: {name}", *(fault or []))


def main(build, meson, *programs):
    build = os.path.abspath(build)
    tests = tests_of(build, meson)
    folder = os.path.join(build, "tests", "lanes")
    preload = os.path.join(folder, "trapping_host.so")
    # There is no module in the folder, because the code that oneDNN generates computes with the memory behind the rows
    # of a block.
    library = {"GRAFT_LIBRARY": os.path.join(folder, "libgraft_trapping.so"), "GRAFT_TEST_FINITE": "1"}
    trapped = subprocess.run([sys.executable, "-c", TRAPPED], env={**os.environ, "LD_PRELOAD": preload}, text=True,
                             capture_output=True)
    tap.ok(trapped.stdout == "13\n", "the preloaded library makes INVALID, DIVBYZERO and OVERFLOW trap", trapped)
    hosts = HOSTS if not programs else own_left_out(tests) if "all" in programs else programs
    for name in hosts:
        check("hosts", name, run(build, tests[name], LD_PRELOAD=preload))
    for name in FINITE if not programs or "all" in programs else []:
        check("library", name, run(build, tests[name], **library))
    if not programs or "all" in programs:
        check_drop_in(build, library["GRAFT_LIBRARY"])
    fault = run(build, tests["test_nonfinite"], **library)
    tap.ok(fault is not None and "-8" in fault[0], "what is not finite ends a program with the library that traps")
    tap.done()


main(*sys.argv[1:])
