# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the solver dummies of examples/solver_dummies from an installed tree: test_dummies.py BUILD
PYTHON."""
import glob
import os
import re
import shutil
import sys
import tempfile

import tap
from installed import fine, installed_and_moved, kept_log, option, run

BUILD, PYTHON = sys.argv[1:]
FOUND = re.compile(r"^loss +(\S+) error +(\S+) sum +(\S+)$", re.MULTILINE)


def ask(lib, *words):
    return run("pkg-config", *words, "graft", PKG_CONFIG_PATH=f"{lib}/pkgconfig").stdout.split()


def compilers(lib, sources):
    """The compiler commands as {name: command}, without the path of the binary."""
    flags, libs, module = ask(lib, "--cflags"), ask(lib, "--libs"), ask(lib, "--variable=fortran")
    return {"C": ["cc", "-std=c11", "-Wall", "-Wextra", *flags, f"{sources}/dummy.c", *libs],
            "C++": ["g++", "-std=c++11", "-Wall", "-Wextra", *flags, f"{sources}/dummy.cpp", *libs],
            "Fortran (gfortran)": ["gfortran", "-O1", *module, f"{sources}/dummy.f90", "-ldl"],
            "Fortran (flang)": ["flang-new-19", "-O1", *module, f"{sources}/dummy.f90", "-ldl"]}


def results(lib, sources, folder):
    """The results of all dummies that can be built here, as {name: (loss, squared error, sum)}."""
    found, commands = {}, {}
    for name, command in compilers(lib, sources).items():
        if shutil.which(command[0]) is None:
            tap.skip(f"{name}: the dummy", f"{command[0]} is not installed")
        elif fine(f"{name}: the dummy is compiled", run(*command, "-o", f"{folder}/dummy", cwd=folder)):
            commands[name] = shutil.move(f"{folder}/dummy", f"{folder}/dummy_{len(commands)}")
    if run(PYTHON, "-c", "import cffi, numpy").returncode == 0:
        commands["Python"] = f"{sources}/dummy.py"
    else:
        tap.skip("Python: the dummy", "cffi or NumPy is not installed")
    for name, command in commands.items():
        start = [PYTHON] if name == "Python" else []
        result = run(*start, command, f"{lib}/libgraft.so.1", PYTHONPATH=f"{lib}/graft/python", GRAFT_THREADS="1")
        match = FOUND.search(result.stdout)
        if tap.ok(result.returncode == 0 and match, f"{name}: it trains and infers", result.stdout, result.stderr):
            found[name] = tuple(map(float, match.groups()))
        result = run(*start, command, "/nowhere/libgraft.so", PYTHONPATH=f"{lib}/graft/python")
        tap.ok(result.returncode > 0 and "/nowhere/libgraft.so" in result.stdout + result.stderr,
               f"{name}: without the library it says so", result.stdout, result.stderr)
    return found


def test_cmake(tree, lib, sources, folder):
    """Build and run the same program with CMake's find_package()."""
    if shutil.which("cmake") is None or shutil.which("gfortran") is None or shutil.which("g++") is None:
        tap.skip("the dummies by CMake", "cmake, g++ or gfortran is not installed")
        return
    os.mkdir(f"{folder}/cmake")
    with open(f"{folder}/cmake/CMakeLists.txt", "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.18)\nproject(dummies C CXX Fortran)\n"
                   "find_package(graft REQUIRED)\n"
                   f"add_executable(dummy_c {sources}/dummy.c)\nadd_executable(dummy_cpp {sources}/dummy.cpp)\n"
                   f"add_executable(dummy_f90 {sources}/dummy.f90 ${{graft_FORTRAN}})\n"
                   "foreach(name c cpp f90)\n  target_link_libraries(dummy_${name} PRIVATE graft::graft)\n"
                   "endforeach()\n")
    made = run("cmake", "-G", "Ninja", "-S", f"{folder}/cmake", "-B", f"{folder}/cmake/build",
               "-DCMAKE_Fortran_COMPILER=gfortran", f"-DCMAKE_PREFIX_PATH={tree}", f"-Dgraft_DIR={lib}/cmake/graft")
    if fine("CMake finds the package", made):
        fine("and builds the dummies", run("cmake", "--build", f"{folder}/cmake/build"))


def main(folder):
    with kept_log(BUILD):
        tree = installed_and_moved(BUILD, folder)
    if tree is None:
        return
    lib = os.path.join(tree, option(BUILD, "libdir"))
    sources = f"{tree}/share/doc/graft/examples/solver_dummies"
    test_cmake(tree, lib, sources, folder)
    found = results(lib, sources, folder)
    for name, numbers in found.items():
        tap.ok(numbers == found["C"], f"{name}: the same bits as in C", numbers, found["C"])
    loss, error, total = found["C"]
    tap.ok(0 < loss < 1 and error < 1e-3 and 1 < total < 42, "the network has learned to step", loss, error, total)
    long = [(path, len(open(path, encoding="utf-8").readlines())) for path in glob.glob(f"{sources}/dummy.*")]
    tap.ok(len(long) == 4 and all(lines <= 60 for _, lines in long), "each dummy has at most 60 lines", *long)


if shutil.which("pkg-config") is None:
    tap.skip("the dummies", "pkg-config is not installed")
else:
    with tempfile.TemporaryDirectory(prefix="graft-dummies-") as base:
        main(os.path.realpath(base))
tap.done()
