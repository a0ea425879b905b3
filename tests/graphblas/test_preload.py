# SPDX-License-Identifier: Apache-2.0
"""An unchanged program of GraphBLAS with LD_PRELOAD=libgraft-grb.so: the same output and codes."""

import os
import re
import subprocess
import sys

import tap

library, host, calls = sys.argv[1:4]


def run(what, wishes=None, preload=True):
    environment = dict(os.environ)
    environment.pop("GRAFT_GRB", None)
    if preload:
        environment["LD_PRELOAD"] = library
    if wishes is not None:
        environment["GRAFT_GRB"] = wishes
    return subprocess.run([host, what], env=environment, capture_output=True, text=True, timeout=60)


for what in ("products", "errors", "threads", "twice", "early"):
    plain = run(what, preload=False)
    for wishes in (None, "work=0", "off", "exact,work=0"):
        found = run(what, wishes)
        same = found.stdout == plain.stdout and found.returncode == plain.returncode
        tap.ok(same and found.stderr == "", f"{what} with GRAFT_GRB={wishes}: as without the library, and silent",
               f"{found.returncode} {found.stdout!r} {found.stderr!r}", f"{plain.returncode} {plain.stdout!r}")

found = run("products", "work=0,verbose")
tap.ok("GrB_mxm taken" in found.stderr and found.stdout == run("products", preload=False).stdout,
       "verbose tells that a product is taken")
found = run("products", "exact,work=0,verbose")
tap.ok("left to GraphBLAS: sums may be rounded differently" in found.stderr,
       "exact leaves sums to GraphBLAS, and says why")
found = run("products", "verbose,work=1000000")
tap.ok("left to GraphBLAS: it is small" in found.stderr, "small products are left to GraphBLAS")
found = run("products", "verbose,work=0,columns=1000")
tap.ok("left to GraphBLAS: it has few columns" in found.stderr, "so are products of few columns")
found = run("threads", "work=0,summary")
tap.ok("81 products taken" in found.stderr and "0 left" in found.stderr and "saved" in found.stderr,
       "a summary counts the products of all threads")
found = run("products", "fast")
tap.ok("GRAFT_GRB has 'fast', expected" in found.stderr and found.returncode == 0, "an unknown word is named")
found = run("products", "work=many")
tap.ok("GRAFT_GRB has 'work=many'" in found.stderr and found.returncode == 0, "so is a number that is none")
# The random calls of test_dropin: how many of them the drop-in takes.
found = subprocess.run([calls, "1000"], env=dict(os.environ, GRAFT_GRB="work=0,columns=0,summary"), capture_output=True,
                       text=True, timeout=60)
taken = re.search(r"(\d+) products taken", found.stderr)
tap.ok(taken and int(taken.group(1)) > 250, "of 2000 random calls an eighth is taken", found.stderr)
tap.done()
