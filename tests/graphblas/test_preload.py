# SPDX-License-Identifier: Apache-2.0
"""Checks that an unchanged program that uses GraphBLAS has the same output and exit status with
LD_PRELOAD=libgraft-grb.so. test_preload.py LIBRARY HOST CALLS CALLS_8. Each check is made with the GraphBLAS library
with which HOST is linked, and again with each other library that is found. CALLS and CALLS_8 are programs that make
random calls, with the options of version 7, and of version 8 and later."""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import libraries
import tap

library, host, calls, calls_8 = sys.argv[1:5]


def preloaded(drop_in, graphblas):
    """The environment that preloads these libraries. Libraries from Python wheels need other libraries in the same
    folder."""
    searched = [os.path.dirname(graphblas)] if graphblas else []
    searched += [os.environ["LD_LIBRARY_PATH"]] if "LD_LIBRARY_PATH" in os.environ else []
    environment = dict(os.environ, LD_PRELOAD=":".join(path for path in (drop_in, graphblas) if path))
    return environment | ({"LD_LIBRARY_PATH": ":".join(searched)} if searched else {})


def run(what, wishes=None, preload=True, graphblas=None, threads=None, drop_in=library):
    environment = preloaded(drop_in if preload else None, graphblas)
    environment.pop("GRAFT_GRB", None)
    if wishes is not None:
        environment["GRAFT_GRB"] = wishes
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    return subprocess.run([host, what], env=environment, capture_output=True, text=True, timeout=60)


def check_same(what, wishes, plain, graphblas, name, threads=None):
    found = run(what, wishes, graphblas=graphblas, threads=threads)
    same = found.stdout == plain.stdout and found.returncode == plain.returncode
    tap.ok(same and found.stderr == "", f"{name}: {what} with GRAFT_GRB={wishes}: as without the library, and silent",
           f"{found.returncode} {found.stdout!r} {found.stderr!r}", f"{plain.returncode} {plain.stdout!r}")


def check_fork(graphblas, name):
    """Check fork() in a process that has a team of threads. GraphBLAS itself gets no threads, because it would wait
    for them in the child."""
    plain = run("fork", preload=False, graphblas=graphblas, threads=1)
    found = run("fork", "work=0,verbose", graphblas=graphblas, threads=4)
    tap.ok(found.stdout == plain.stdout and "child" in plain.stdout and found.stderr.count("taken") == 3,
           f"{name}: products are taken before and after fork(), in child and parent",
           f"{found.returncode} {found.stdout!r} {found.stderr!r}", f"{plain.returncode} {plain.stdout!r}")


def check_calls(program, graphblas, name):
    """Make the random calls of test_dropin, and count how many of them the drop-in computes."""
    environment = preloaded(library, graphblas) | {"GRAFT_GRB": "work=0,columns=0,summary"}
    found = subprocess.run([program, "1000"], env=environment, capture_output=True, text=True, timeout=60)
    taken = re.search(r"(\d+) products taken", found.stderr)
    tap.ok(found.returncode == 0 and "not ok" not in found.stdout and taken and int(taken.group(1)) > 250,
           f"{name}: of 2000 random calls an eighth is taken, and none differs", found.stdout, found.stderr)


def check_all(graphblas, name, program):
    for what in ("products", "errors", "threads", "crowd", "places", "twice", "early"):
        plain = run(what, preload=False, graphblas=graphblas)
        for wishes in (None, "work=0", "off", "exact,work=0"):
            check_same(what, wishes, plain, graphblas, name)
    check_same("small", None, run("small", preload=False, graphblas=graphblas, threads=4), graphblas, name, threads=4)
    found = run("products", "work=0,verbose", graphblas=graphblas)
    tap.ok("GrB_mxm taken" in found.stderr, f"{name}: verbose tells that a product is taken", found.stderr)
    check_fork(graphblas, name)
    check_calls(program, graphblas, name)


# A Python process that loads GraphBLAS, or nothing, and calls none of its functions.
IDLE = """
import ctypes, os, sys
before = os.sched_getaffinity(0)
print(sorted(before))
if len(sys.argv) > 1:
    ctypes.CDLL(sys.argv[1])
print(sorted(os.sched_getaffinity(0)))
"""


def check_processors():
    """Check binding. With these variables OpenMP binds the thread that loads it, and threads that start their first
    team."""
    def run_bound(command, **more):
        environment = dict(os.environ, OMP_PLACES="cores", OMP_PROC_BIND="close", OMP_NUM_THREADS="2", **more)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60).stdout

    if len(os.sched_getaffinity(0)) < 2:
        tap.skip("processors of threads", "this process may run on one, to which all is bound")
        return
    lines = subprocess.run(["ldd", host], capture_output=True, text=True, check=True).stdout
    graphblas = re.search(r"libgraphblas\S* => (\S+)", lines).group(1)
    for name, idle in (("no GraphBLAS", []), ("a GraphBLAS that is never called", [graphblas])):
        command = [sys.executable, "-c", IDLE, *idle]
        plain = run_bound(command)
        for wishes in ("off", "work=0"):
            found = run_bound(command, LD_PRELOAD=library, GRAFT_GRB=wishes)
            tap.ok(found == plain and found.startswith(str(sorted(os.sched_getaffinity(0)))),
                   f"a process with {name}, GRAFT_GRB={wishes}: it has the processors that it has without the library",
                   found, plain)
    found = run_bound([host, "processors"], LD_PRELOAD=library, GRAFT_GRB="work=0")
    tap.ok("processors are kept" in found, "a thread keeps its processors in a product that is taken", found)


def check_words():
    """Check the values of variable GRAFT_GRB."""
    plain = run("products", preload=False)
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
    found = run("products", " work=0 , verbose\t")
    tap.ok("GrB_mxm taken" in found.stderr and "expected" not in found.stderr, "blanks around words do not matter",
           found.stderr)
    found = run("products", ",".join(["columns=8"] * 50 + ["work=0,verbose"]))
    tap.ok("GrB_mxm taken" in found.stderr and "expected" not in found.stderr and found.stdout == plain.stdout,
           "nor does the number of words", found.stderr)


def check_without_graft(folder):
    """Check a copy of the drop-in in a folder where libgraft.so is a file that is not a library."""
    copy = shutil.copy(library, folder)
    products = "libgraft-grb-products.so"
    shutil.copy(os.path.join(os.path.dirname(library), products), folder)
    with open(os.path.join(folder, "libgraft.so.1"), "w", encoding="utf-8") as file:
        file.write("no library")
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    beside = os.path.dirname(os.path.realpath(library))
    os.environ["LD_LIBRARY_PATH"] = ":".join(path for path in searched if os.path.realpath(path) != beside)
    found = run("threads", "work=0,summary,verbose", drop_in=copy)
    tap.ok(found.returncode == 0 and re.search(r"left to GraphBLAS: cannot use '.*libgraft.so.1' as the Graft library: "
                                               r".*(header|short)", found.stderr) and
           re.search(r" 81: cannot use", found.stderr), "without Graft, verbose and summary tell why", found.stderr)
    os.unlink(os.path.join(folder, "libgraft.so.1"))
    os.symlink(os.path.join(beside, "libgraft.so.1"), os.path.join(folder, "libgraft.so.1"))
    found = run("products", "work=0,verbose", drop_in=copy)
    tap.ok("GrB_mxm taken" in found.stderr, "with Graft and its second file beside it, it computes", found.stderr)
    os.unlink(os.path.join(folder, products))
    shutil.copy(os.path.join(beside, "libgraft.so.1"), os.path.join(folder, products))
    found = run("products", "work=0,verbose", drop_in=copy)
    tap.ok(found.returncode == 0 and
           re.search(r"left to GraphBLAS: cannot compute products: .*symbol.*graft_grb_compute_\d+_\d+_\d+, of another "
                     r"release", found.stderr),
           "a second file without the function of the same release is named", found.stderr)
    os.unlink(os.path.join(folder, products))
    os.environ |= {"LD_LIBRARY_PATH": beside, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": os.path.join(folder, "files")}
    found = run("products", "work=0,verbose", drop_in=copy)
    text = "".join(pathlib.Path(path).read_text() for path in glob.glob(os.path.join(folder, "files.*")))
    tap.ok(found.returncode == 0 and re.search(r"left to GraphBLAS: cannot compute products: .*libgraft-grb-products",
                                               found.stderr),
           "without its second file it takes none of another folder, and tells why", found.stderr)
    tap.ok("libgraft-grb" in text and "libgraft.so" not in text, "and does not load Graft", text)


check_all(None, "the linked GraphBLAS", calls)
found_libraries, missing = libraries.find()
for path, major in found_libraries:
    check_all(path, os.path.basename(path), calls if major == 7 else calls_8)
if not found_libraries:
    tap.skip("other versions of GraphBLAS", missing)
check_words()
check_processors()
with tempfile.TemporaryDirectory(prefix="graft-grb-") as work:
    check_without_graft(work)
tap.done()
