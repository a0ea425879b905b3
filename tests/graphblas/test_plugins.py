# SPDX-License-Identifier: Apache-2.0
"""Checks the drop-in in processes with several GraphBLAS libraries that are loaded and unloaded in any order. With
LD_PRELOAD=libgraft-grb.so every call must reach the same library as without it. test_plugins.py LIBRARY HOST PLUGIN.
A second library is a copy of the first one under another name, and the plugins linked with it are copies of PLUGIN.
Other installed versions are tried with the first library and with each other, in both orders."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import libraries
import tap

library, host, plugin = sys.argv[1:4]
NAME = b"libgraphblas.so.7"

# Plugin A is linked with the first library, written @A, and plugin B with the second.
STEPS = {
    "one is loaded first and never called":
        "load:0:@A load:1:B point:1 product:1 own:1 type:1 called:1 called-own:1 null:1 called-null:1 finalize:1",
    "one is loaded later and never called": "load:1:B point:1 load:0:@A product:1 called:1 called-own:1 finalize:1",
    "both are started by pointer":
        "load:0:A load:1:B point:1 point:0 product:0 product:1 called:0 called:1 own:0 own:1 called-own:1 called-own:0 "
        "type:0 type:1 null:0 null:1 called-null:1 called-null:0",
    "both are started by a call": "load:1:B init:1 product:1 load:0:A init:0 product:0 own:1 called:1 called-own:0",
    "threads of both begin at once": "load:0:A load:1:B init:0 init:1 threads",
    "one is global, and serves both": "global:0:@A load:1:B load:2:A init:1 product:2 own:1 type:1 called:1 null:1",
    "one becomes global after the other is used": "load:1:B init:1 product:1 global:0:@A own:1 product:1 called:1",
    "a plugin prefers its own": "global:0:@A deep:1:B load:2:A init:1 point:2 product:1 product:2 own:1 own:2 type:1",
    "one is unloaded": "load:0:A load:1:B init:0 init:1 product:0 product:1 own:1 finalize:1 close:1 product:0 own:0",
    "another takes its place": "load:1:B point:1 product:1 own:1 finalize:1 close:1 load:0:A point:0 product:0 own:0 "
                               "called:0 type:0 load:1:B point:1 product:1 own:1 called-own:0 called-own:1",
    "calls before and after": "load:0:A load:1:B product:0 null:0 init:0 finalize:0 init:0 null:0 init:1 product:1",
    "a child multiplies": "load:0:A load:1:B point:1 init:0 product:1 fork:1 fork:0 own:0 product:0",
}


def rename(path, to, name):
    """Copy an object file under the name `name`, or change it so that it needs a library of that name instead of
    libgraphblas.so.7."""
    with open(path, "rb") as file:
        content = file.read()
    with open(to, "wb") as file:
        file.write(content.replace(NAME + b"\0", name + b"\0"))
    os.chmod(to, 0o755)


class Version:
    """A library under a name of its own, and a plugin that is linked with it."""

    def __init__(self, folder, letter, path, is_copy):
        name = f"libgraphblas.so.{letter}"
        self.file = os.path.join(folder, name)
        self.plugin = os.path.join(folder, f"plugin_{letter}.so")
        if is_copy:
            rename(path, self.file, name.encode())
        else:
            os.symlink(path, self.file)
            for needed in os.listdir(os.path.dirname(path)):
                if "libgomp" in needed and not os.path.exists(os.path.join(folder, needed)):
                    os.symlink(os.path.join(os.path.dirname(path), needed), os.path.join(folder, needed))
        rename(plugin, self.plugin, name.encode())


def run(folder, steps, wishes):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    environment["LD_LIBRARY_PATH"] = f"{folder}:{environment.get('LD_LIBRARY_PATH', '')}"
    environment.pop("LD_PRELOAD", None)
    if wishes is not None:
        environment.update(LD_PRELOAD=library, GRAFT_GRB=wishes)
    return subprocess.run([host, *steps], env=environment, capture_output=True, text=True, timeout=60)


def check(folder, title, first, second, what):
    names = {"A": first.plugin, "@A": first.file, "B": second.plugin}
    steps = [re.sub(r"@?[AB]$", lambda name: names[name.group()], word) for word in what.split()]
    plain = run(folder, steps, None)
    for wishes in ("off", "work=0,columns=0,verbose"):
        found = run(folder, steps, wishes)
        same = found.stdout == plain.stdout and found.returncode == plain.returncode
        taken = found.stderr.count(" taken: ")
        tap.ok(same and (wishes == "off" or taken > 0), f"{title}, GRAFT_GRB={wishes}: as without the drop-in",
               f"{found.returncode} {found.stdout} {found.stderr}", f"{plain.returncode} {plain.stdout}")


# A Python process that imports a package before it calls any function of the linked library.
SCRIPT = """
import ctypes, sys
other = ctypes.CDLL(sys.argv[1])
import suitesparse_graphblas as package
package.initialize()
lib, ffi, n = package.lib, package.ffi, 300
made = [ffi.new("GrB_Matrix *") for _ in range(3)]
for matrix, width in zip(made, (n, 8, 8)):
    print(lib.GrB_Matrix_new(matrix, lib.GrB_FP32, n, width))
a, h, c = (matrix[0] for matrix in made)
for i in range(n):
    lib.GrB_Matrix_setElement_FP32(a, i % 5, i, (i + 1) % n)
    for j in range(8):
        lib.GrB_Matrix_setElement_FP32(h, i % 11, i, j)
for product in (lib.GrB_mxm, ffi.addressof(lib, "GrB_mxm")):
    total = ffi.new("double *")
    print(product(c, ffi.NULL, ffi.NULL, lib.GrB_PLUS_TIMES_SEMIRING_FP32, a, h, ffi.NULL))
    print(lib.GrB_Matrix_reduce_FP64(total, ffi.NULL, lib.GrB_PLUS_MONOID_FP64, c, ffi.NULL), total[0])
print(other.GrB_init(0), other.GrB_finalize())
"""


def check_python(path):
    def run_script(**more):
        return subprocess.run(["python3", "-c", SCRIPT, path], env=dict(os.environ, **more), capture_output=True,
                              text=True, timeout=60)
    plain = run_script()
    if plain.returncode != 0:
        tap.skip("a package of Python with its own GraphBLAS", (plain.stderr.splitlines() or ["it fails"])[-1])
        return
    for wishes in ("off", "work=0,verbose"):
        found = run_script(LD_PRELOAD=library, GRAFT_GRB=wishes)
        tap.ok(found.stdout == plain.stdout and (wishes == "off" or found.stderr.count(" taken: ") == 2),
               f"a package of Python with its own GraphBLAS, GRAFT_GRB={wishes}", found.stdout, found.stderr)


def linked_library():
    lines = subprocess.run(["ldd", plugin], capture_output=True, text=True, check=True).stdout
    return os.path.realpath(re.search(re.escape(NAME.decode()) + r" => (\S+)", lines).group(1))


def main():
    with tempfile.TemporaryDirectory(prefix="graft-grb-") as folder:
        path = linked_library()
        first, second = Version(folder, "a", path, False), Version(folder, "b", path, True)
        for title, what in STEPS.items():
            check(folder, title, first, second, what)
        found, missing = libraries.find()
        others = [(f"{major}", Version(folder, "cdefghij"[i], path, False)) for i, (path, major) in enumerate(found)]
        for (a, one), (b, two) in itertools.permutations([("linked", first), *others], 2):
            for title in ("one is loaded first and never called", "both are started by pointer"):
                check(folder, f"{a} and {b}: {title}", one, two, STEPS[title])
        check_python(path)
        if not others:
            tap.skip("other versions of GraphBLAS", missing)
    tap.done()


if NAME not in open(plugin, "rb").read() or shutil.which("ldd") is None:
    tap.skip("several GraphBLAS", "the plugin is not linked with version 7, or there is no ldd")
    tap.done()
else:
    main()
