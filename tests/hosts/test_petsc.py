# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs hosts of PETSc, with 32- and 64-bit PetscInt: test_petsc.py ROOT LAUNCHER LIBRARY."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

ROOT, LAUNCHER, LIBRARY = sys.argv[1:]
COMPILER = "mpicc.openmpi"  # Debian's PETSc is built with it
LEFT = re.compile(r"^\[ *\d+\] *\d+ bytes |objects were never freed", re.MULTILINE)


def output(command, **more):
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                            check=False, **more)
    return result.returncode, result.stdout


def flags(package, kind):
    code, text = output(["pkg-config", kind, package])
    return text.replace("-I", "-isystem").split() if code == 0 else None


def compiled(source, package, binary, compiler=COMPILER, options=()):
    folders = [f"-I{ROOT}/{folder}" for folder in ("abi", "adapters/mpi", "adapters/petsc")]
    return output([compiler, "-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX", *options, *folders,
                   *flags(package, "--cflags"), source, "-o", binary, *flags(package, "--libs"), "-lm", "-ldl"])


def forward(name, code, text):
    """Print the lines of a program as checks of this test."""
    lines = re.findall(r"^(not ok|ok) \d+ - (.*)$((?:\n#.*)*)", text, re.MULTILINE)
    for state, what, details in lines:
        tap.ok(state == "ok", f"{name}: {what}", details)
    return tap.ok(code == 0 and lines, f"{name}: the program ends", code, text)


def test_example(folder):
    code, text = compiled(f"{ROOT}/adapters/petsc/example.c", "petsc", f"{folder}/example")
    if tap.ok(code == 0, "the example of the manual is compiled", text):
        code, text = output([LAUNCHER, "-n", "2", f"{folder}/example"],
                            env=os.environ | {"LD_LIBRARY_PATH": os.path.dirname(LIBRARY)})
        tap.ok(code == 0 and re.search(r"^\d+ iterations", text), "and runs", code, text)


def test_ts(package, folder):
    """Check meshes, and training while a TS runs."""
    binary = os.path.join(folder, "ts_" + package)
    code, text = compiled(f"{ROOT}/tests/hosts/test_petsc_ts.c", package, binary)
    if not tap.ok(code == 0, f"{package}: a host with a TS is compiled", text):
        return
    for ranks in "1", "3":
        code, text = output([LAUNCHER, "-n", ranks, binary, LIBRARY, "-malloc_debug", "-malloc_dump", "-log_view",
                             "-graft_threads", "1", "-graft_hidden", "16", "-graft_layers", "2",
                             "-graft_lr", "0.003"])
        name = f"{package}, {ranks} ranks"
        forward(name, code, text)
        tap.ok(not LEFT.search(text), f"{name}: PETSc finds nothing that was not freed", text)
        events = dict(re.findall(r"^(Graft\w+) +(\d+)", text, re.MULTILINE))
        tap.ok(int(events.get("GraftOffer", 0)) > 100 and int(events.get("GraftTrain", 0)) > 100 and
               "GraftInfer" in events, f"{name}: -log_view has offers, training and inference", events)


def test_matrices(package, folder):
    """Check types of matrices, null spaces, changes of values, and what is refused."""
    binary = os.path.join(folder, "mat_" + package)
    code, text = compiled(f"{ROOT}/tests/hosts/test_petsc_mat.c", package, binary)
    if not tap.ok(code == 0, f"{package}: a host with matrices of all types is compiled", text):
        return
    for ranks in "1", "3":
        code, text = output([LAUNCHER, "-n", ranks, binary, LIBRARY, "-malloc_debug", "-malloc_dump", "-objects_dump",
                             "-graft_threads", "1"])
        name = f"{package}, {ranks} ranks"
        forward(name, code, text)
        tap.ok(not LEFT.search(text), f"{name}: PETSc finds nothing that was not freed", text)


def test_package(package, folder):
    binary = os.path.join(folder, "host_" + package)
    code, text = compiled(f"{ROOT}/tests/hosts/test_petsc.c", package, binary)
    if not tap.ok(code == 0, f"{package}: a host is compiled", text):
        return
    for ranks in "1", "2", "4":
        command = [LAUNCHER, "-n", ranks, binary, LIBRARY, "-malloc_debug", "-malloc_dump", "-objects_dump",
                   "-graft_threads", "1"]
        code, text = output(command + (["-log_view"] if ranks == "2" else []))
        name = f"{package}, {ranks} ranks"
        if not forward(name, code, text):
            continue
        tap.ok(not LEFT.search(text), f"{name}: PETSc finds nothing that was not freed", text)
        if ranks == "1":
            tap.ok(LEFT.search(output(command + ["-leave", "7"])[1]), f"{name}: it finds what is left")
        if ranks == "2":
            events = re.findall(r"^(Graft\w+) +(\d+)", text, re.MULTILINE)
            tap.ok({name for name, count in events if int(count) > 0} >= {"GraftBuild", "GraftMult", "GraftMultTransp"},
                   f"{name}: -log_view has the events", events, text)


def test_header(folder):
    with open(os.path.join(folder, "header.c"), "w", encoding="utf-8") as file:
        file.write('#include "graft_petsc_ts.h"\nint main(void) { return 0; }\n')
    for package in filter(lambda name: flags(name, "--cflags"), ("petsc", "petsc64")):
        code, text = compiled(file.name, package, f"{folder}/header", "mpicxx.openmpi", ["-std=c++11", "-x", "c++"])
        tap.ok(code == 0, f"{package}: the headers are C++ too", text)
    code, text = compiled(file.name, "petsc", f"{folder}/header", options=["-DPETSC_USE_COMPLEX", "-fsyntax-only"])
    tap.ok(code != 0 and "real scalars: Graft has no complex numbers" in text,
           "complex scalars are refused with a sentence", text)


def main():
    if shutil.which(COMPILER) is None or flags("petsc", "--cflags") is None:
        tap.skip("hosts of PETSc", "petsc-dev, or Open MPI, is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="graft-petsc-") as folder:
        test_header(folder)
        test_example(folder)
        for package in "petsc", "petsc64":
            if flags(package, "--cflags") is None:
                tap.skip(f"hosts of {package}", f"{package}-dev is not installed")
            else:
                test_package(package, folder)
                test_matrices(package, folder)
                test_ts(package, folder)


main()
tap.done()
