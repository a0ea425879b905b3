# SPDX-License-Identifier: Apache-2.0
"""Checks hosts that have loaded something before the library: another allocator, the heap checks of the C library,
or a library that exports names which Graft uses internally. The programs of this folder run with each of them
preloaded. usage: test_preloaded.py LIBRARY PROGRAM..."""
import glob
import os
import signal
import subprocess
import sys
import tempfile

import compilers
import tap

FOLDERS = ("/usr/lib/*-linux-gnu", "/lib/*-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib")


def library_named(name):
    return next((path for folder in FOLDERS for path in sorted(glob.glob(os.path.join(folder, name)))), None)


def run_preloaded(program, preloaded, **more):
    return subprocess.run([program], env=dict(os.environ, LD_PRELOAD=preloaded, **more), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def check_programs(programs, title, preloaded, **more):
    for program in programs:
        name = f"{os.path.basename(program)} with {title}"
        if preloaded is None:
            tap.skip(name, "it is not installed")
            continue
        run = run_preloaded(program, preloaded, **more)
        tap.ok(run.returncode == 0, name, run.returncode, run.stdout[-2000:])


def inner_functions(library):
    """The names of functions inside the library and the modules beside it, and of those that they export."""
    found = {"graft_open", "graft_module_init", "graft_module_entry"}
    folder = os.path.dirname(library)
    for path in [library, *glob.glob(os.path.join(folder, "**", "graft_*_*.so"), recursive=True)]:
        _, text = compilers.run(["nm", "--defined-only", path])
        found |= {line.split()[-1] for line in text.splitlines() if line.split()[-2] in "tT"}
    return sorted(name for name in found if name.startswith(("gr_", "graft_")) and name.isidentifier())


def make_decoy(library, folder):
    """Make a library whose functions have those names and abort. The result is its path, or None."""
    source, decoy = os.path.join(folder, "decoy.c"), os.path.join(folder, "libdecoy.so")
    names = inner_functions(library)
    with open(source, "w", encoding="utf-8") as file:
        file.write("void abort(void);\n" + "".join(f"void {name}(void) {{ abort(); }}\n" for name in names))
    good, said = compilers.run(["gcc", "-w", "-shared", "-fPIC", source, "-o", decoy])
    tap.ok(good and len(names) > 300 and "gr_fail" in names, "a library of the same names", len(names), said)
    run = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({decoy!r}).gr_fail()"],
                         stderr=subprocess.DEVNULL, check=False)
    tap.ok(run.returncode == -signal.SIGABRT, "its functions abort", run.returncode)
    return decoy


def main(library, *programs):
    check_programs(programs, "jemalloc", library_named("libjemalloc.so.2"))
    check_programs(programs, "the checks of the C library's allocator", library_named("libc_malloc_debug.so.0"),
                   MALLOC_CHECK_="3")
    if not (compilers.is_there("gcc") and compilers.is_there("nm")):
        tap.skip("a library of the same names", "gcc or nm is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="graft-preloaded-") as folder:
        check_programs(programs, "a library of the same names", make_decoy(library, folder))


main(*sys.argv[1:])
tap.done()
