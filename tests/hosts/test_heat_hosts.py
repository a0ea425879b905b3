# SPDX-License-Identifier: Apache-2.0
"""Builds examples/heat in C++, in Fortran and with PETSc from an installed tree, and compares the results with those of
the program in C: test_heat_hosts.py BUILD LAUNCHER."""
import filecmp
import os
import re
import shutil
import sys
import tempfile

import tap
import vtu
from installed import fine, installed_and_moved, kept_log, option, run

BUILD, LAUNCHER = sys.argv[1:]
SIZES = ["11", "12", "10"]
STRICT = ["-O1", "-Wall", "-Wextra", "-Werror"]
LINE = re.compile(r"^ +(\d+) +(\S+) +(\S+)$", re.MULTILINE)
LOSS = re.compile(r"^(\d+) training steps, loss +(\S+)", re.MULTILINE)


def ask(lib, *words, packages=("graft",)):
    found = run("pkg-config", *words, *packages, PKG_CONFIG_PATH=f"{lib}/pkgconfig")
    return found.stdout.split() if found.returncode == 0 else None


def hosts(lib, sources):
    """The hosts as {name: (programs that are needed, commands)}. Each list of commands makes `heat` in the current
    folder."""
    flags, libs, module = (ask(lib, word) for word in ("--cflags", "--libs", "--variable=fortran"))
    petsc, petsc_libs = (ask(lib, word, packages=("petsc", "graft")) for word in ("--cflags", "--libs"))
    shared = ["mpicc.openmpi", "-std=c11", *STRICT, "-c", f"{sources}/solver.c", f"{sources}/vtu.c"]
    fortran = [f"{sources}/fortran/{name}.f90" for name in ("solver", "main")]
    found = {
        "C": (["mpicc.openmpi"], shared, ["mpicc.openmpi", *STRICT, *flags, f"{sources}/main.c", "solver.o", "vtu.o",
                                          "-o", "heat", *libs, "-lm"]),
        "C++": (["mpicxx.openmpi"], shared,
                ["mpicxx.openmpi", "-std=c++11", "-DOMPI_SKIP_MPICXX", *STRICT, *flags,
                 f"{sources}/cxx/main.cpp", "solver.o", "vtu.o", "-o", "heat", *libs, "-lm"]),
        "Fortran (gfortran)": (["mpifort.openmpi", "gfortran"], shared,
                               ["gfortran", "-O1", "-c", *module],
                               ["mpifort.openmpi", "-O1", "-Wall", "-Wno-c-binding-type", "-Werror", "-fcheck=all",
                                "graft.o", *fortran, "vtu.o", "-o", "heat", "-ldl"]),
        "Fortran (flang)": (["mpifort.openmpi", "flang-new-19"], shared,
                            ["env", "OMPI_FC=flang-new-19", "mpifort.openmpi", "-O1", *module, *fortran, "vtu.o", "-o",
                             "heat", "-ldl"])}
    if petsc is None:
        tap.skip("PETSc: the program", "petsc-dev is not installed")
    else:
        system = [word.replace("-I", "-isystem") for word in petsc]
        found["PETSc"] = (["mpicc.openmpi"], shared,
                          ["mpicc.openmpi", "-DOMPI_SKIP_MPICXX", *STRICT, *system,
                           f"{sources}/petsc/main.c", "solver.o", "vtu.o", "-o", "heat", *petsc_libs, "-lm"])
    return found


def built(lib, sources, folder):
    """The hosts that can be built here, as {name: program}."""
    programs = {}
    for number, (name, (needed, *commands)) in enumerate(hosts(lib, sources).items()):
        missing = [program for program in needed if shutil.which(program) is None]
        if missing:
            tap.skip(f"{name}: the program", f"{missing[0]} is not installed")
            continue
        place = f"{folder}/build{number}"
        os.mkdir(place)
        results = [run(*command, cwd=place) for command in commands]
        worst = max(results, key=lambda result: abs(result.returncode))
        if fine(f"{name}: the program is compiled without a warning", worst):
            programs[name] = f"{place}/heat"
    return programs


def simulated(name, program, library, ranks, folder):
    """Run a program that writes its files to the folder. The result is its table of errors and its loss."""
    os.mkdir(folder)
    more = ["-malloc_debug", "-malloc_dump", "-objects_dump"] if name == "PETSc" else []
    result = run(LAUNCHER, "-n", str(ranks), program, library, folder, *SIZES, *more, GRAFT_THREADS="1",
                 OMPI_MCA_mpi_yield_when_idle="1")
    table = {int(step): (float(error), float(change)) for step, error, change in LINE.findall(result.stdout)}
    tap.ok(result.returncode == 0 and set(table) == {1, 10} and LOSS.search(result.stdout) and not result.stderr,
           f"{name}, {ranks} ranks: it trains and compares, and leaves nothing", result.stdout, result.stderr)
    return table, LOSS.search(result.stdout)


def check_bits(name, folder, expected):
    """Compare all files byte by byte, because the arithmetic has the same order as in C."""
    names = sorted(os.listdir(expected))
    same, other, missing = filecmp.cmpfiles(expected, folder, names, shallow=False)
    tap.ok(len(same) == len(names) > 3, f"{name}: files have the bytes of those in C", other, missing)


def check_near(name, folder, expected):
    """Compare files approximately, because PETSc adds the products of an assembled operator in another order. States
    are of size 1, so a rounding error is 1e-16, and 10 steps add a few rounding errors. The network computes in f32.
    If such an error moves an input to the next f32 number, the input differs by 1e-7, and 55 training steps may
    amplify this difference a thousand times."""
    for file in sorted(os.listdir(expected)):
        if not file.endswith(".vtu"):
            continue
        (a, _), (b, _) = vtu.read(f"{expected}/{file}"), vtu.read(f"{folder}/{file}")
        apart = [max(abs(a[point][field] - b[point][field]) for point in a) for field in (0, 1)]
        tap.ok(set(a) == set(b) and apart[0] < 1e-14 and apart[1] < 1e-4, f"{name}: {file} is that in C", *apart)


def compare(programs, library, ranks, folder):
    tables = {}
    for name, program in programs.items():
        place = f"{folder}/{name}{ranks}"
        tables[name] = simulated(name, program, library, ranks, place)
        if name == "C":
            continue
        (table, loss), (expected, loss_in_c) = tables[name], tables["C"]
        near = all(abs(x - y) <= 1e-3 * y for k in expected for x, y in zip(table[k], expected[k]))
        tap.ok((table == expected if name != "PETSc" else near) and loss[1] == loss_in_c[1] and
               abs(float(loss[2]) - float(loss_in_c[2])) <= 0.006 * float(loss_in_c[2]),
               f"{name}, {ranks} ranks: the table of the program in C", table, expected, loss, loss_in_c)
        (check_near if name == "PETSc" else check_bits)(f"{name}, {ranks} ranks", place, f"{folder}/C{ranks}")


def main(folder):
    with kept_log(BUILD):
        tree = installed_and_moved(BUILD, folder)
    if tree is None:
        return
    lib = os.path.join(tree, option(BUILD, "libdir"))
    programs = built(lib, f"{tree}/share/doc/graft/examples/heat", folder)
    for ranks in 1, 2:
        compare(programs, f"{lib}/libgraft.so.1", ranks, folder)
    for name, program in programs.items():
        result = run(LAUNCHER, "-n", "2", program, "/nowhere/libgraft.so")
        tap.ok(result.returncode > 0 and "/nowhere/libgraft.so" in result.stdout + result.stderr,
               f"{name}: without the library it says so", result.stdout, result.stderr)


if shutil.which("pkg-config") is None or shutil.which("mpicc.openmpi") is None:
    tap.skip("the hosts", "pkg-config or mpicc.openmpi is not installed")
else:
    with tempfile.TemporaryDirectory(prefix="graft-heat-") as base:
        main(os.path.realpath(base))
tap.done()
