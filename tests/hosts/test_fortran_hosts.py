# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs hosts in Fortran with adapters/fortran, by gfortran and flang: test_fortran_hosts.py ROOT LIBRARY
[LAUNCHER...]. A launcher is mpiexec.openmpi or mpiexec.mpich."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import small_data
import tap

ROOT, LIBRARY = sys.argv[1:3]
MODULE = f"{ROOT}/adapters/fortran/graft.f90"
GFORTRAN = ["-std=f2018", "-Wall", "-Wno-c-binding-type", "-Werror", "-ffpe-trap=invalid,zero,overflow"]


def output(command, folder, **variables):
    result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=100, check=False, env=os.environ | variables)
    return result.returncode, result.stdout


def forward(name, code, text):
    """Print the lines of a program as checks of this test."""
    lines = re.findall(r"^(not ok|ok) \d+ - (.*)$((?:\n#.*)*)", text, re.MULTILINE)
    for state, what, details in lines:
        tap.ok(state == "ok", f"{name}: {what}", details)
    tap.ok(code == 0 and lines, f"{name}: the program ends, and leaves no memory", code, text)


def compiled(name, folder, command, *sources, **variables):
    """Compile a program `host` in a folder that has the module. The result is whether that succeeded."""
    files = [f"{ROOT}/{source}" for source in sources]
    code, text = output([*command, "graft.o", *files, "-o", "host", "-ldl"], folder, **variables)
    return tap.ok(code == 0, f"{name} is compiled without a warning", text)


def module(base, name, command):
    """Make a folder with the module as this compiler makes it."""
    folder = f"{base}/{name}"
    os.mkdir(folder)
    code, text = output([*command, "-c", MODULE, "-o", "graft.o"], folder)
    tap.ok(code == 0, f"{name}: the module is compiled without a warning", text)
    return folder


def test_one_process(name, command, folder):
    if compiled(f"{name}: a host", folder, command, "tests/hosts/fortran_host.f90"):
        forward(name, *output(["./host", LIBRARY], folder))
        code, text = output(["./host", "/nowhere"], folder)
        tap.ok(code != 0 and "status -5: cannot use '/nowhere'" in text,
               f"{name}: without ierr a failure is printed and ends the program", code, text)
        code, text = output(["./host", ""], folder, LD_LIBRARY_PATH="")
        tap.ok(code == 0 or ("cannot use 'libgraft.so.1'" in text and "link the program with a run path" in text),
               f"{name}: a blank path is the name of the library, and if it is not found, a sentence says what to do",
               code, text)


def test_ranks(name, command, launcher, folder, **variables):
    if not compiled(f"{name}: a host over ranks", folder, command, "tests/hosts/fortran_ranks.f90", **variables):
        return
    for ranks in "1", "3":
        code, text = output([launcher, "-n", ranks, "./host", LIBRARY], folder)
        for line in "the sums are right", "the mesh is right", "the network learns", "the network learns online":
            tap.ok(code == 0 and line + "\n" in text, f"{name}, {ranks} ranks: {line}", code, text)
    for _ in range(5):  # on a busy machine a launcher may lose the output of ranks that abort
        code, text = output([launcher, "-n", "3", "./host", LIBRARY, "fail"], folder)
        if text:
            break
    tap.ok(code != 0 and "status -6: " in text and "did not end" not in text,
           f"{name}: without ierr a failure ends the communicator", code, text)


def test_layouts(name, command, launcher, folder):
    if compiled(f"{name}: a host with few nodes", folder, command, "tests/hosts/fortran_layouts.f90"):
        code, text = output([launcher, "-n", "3", "./host", LIBRARY], folder)
        for line in ("meshes and refusals: 24 21", "meshes are right in both layouts",
                     "wrong layouts are refused on all ranks", "states are right in both layouts",
                     "states in the wrong layout are refused on all ranks"):
            tap.ok(code == 0 and line + "\n" in text, f"{name}, 3 ranks: {line}", code, text)


def test_learning(name, command, launcher, folder):
    if not compiled(f"{name}: a host that trains", folder, command, "tests/hosts/fortran_learn.f90"):
        return
    small_data.make_dataset(f"{folder}/data")
    for ranks in "1", "3":
        code, text = output([launcher, "-n", ranks, "./host", LIBRARY, f"{folder}/data", folder], folder)
        for line in ("products in one call are right", "halos are right",
                     "plans have the new values of their graph",
                     "what one rank does wrong is refused on all in the same words",
                     "an array that does not fit on one rank is refused on all", "a model learns arrays",
                     "resumed from a file it is bitwise identical", "a model learns numbers", "a model learns files"):
            tap.ok(code == 0 and line + "\n" in text, f"{name}, {ranks} ranks: {line}", code, text)


def test_f08(name, command, launcher, folder):
    if compiled(f"{name}: a host of mpi_f08", folder, command, "adapters/fortran/graft_f08.f90",
                "tests/hosts/fortran_f08.f90"):
        code, text = output([launcher, "-n", "2", "./host", LIBRARY], folder)
        tap.ok(code == 0 and "the ranks are right" in text, f"{name}: its communicator is taken", code, text)


def main(base):
    folders = {}
    for name, command in {"gfortran": ["gfortran", *GFORTRAN, "-fcheck=all", "-fsanitize=address"],
                          "flang": ["flang-new-19"]}.items():
        if shutil.which(command[0]) is None:
            tap.skip(f"{name}: hosts in Fortran", f"{command[0]} is not installed")
            continue
        folders[name] = module(base, name, command)
        test_one_process(name, command, folders[name])
        if name == "gfortran":
            command = ["gfortran", "-w", "-fdefault-integer-8", "-fcheck=all", "-fsanitize=address"]
            test_one_process("64-bit integers", command, module(base, "64-bit integers", command))
    if "gfortran" in folders:
        folders["gfortran"] = module(base, "gfortran for MPI", ["gfortran", "-fcheck=bounds,do,mem,pointer,recursion"])
    for launcher in sys.argv[3:]:
        mpi = launcher.rpartition(".")[2]
        if shutil.which("mpifort." + mpi) is None or "gfortran" not in folders:
            tap.skip(f"{mpi}: hosts in Fortran", f"gfortran or mpifort.{mpi} is not installed")
            continue
        command = ["mpifort." + mpi, *GFORTRAN[1:-1]]
        test_ranks(f"{mpi}, gfortran", command, launcher, folders["gfortran"])
        test_f08(mpi, command, launcher, folders["gfortran"])
        if launcher == sys.argv[3]:
            test_layouts(mpi, command, launcher, folders["gfortran"])
            test_learning(mpi, command, launcher, folders["gfortran"])
        if mpi == "openmpi" and "flang" in folders:
            test_ranks("openmpi, flang", ["mpifort.openmpi"], launcher, folders["flang"], OMPI_FC="flang-new-19")


with tempfile.TemporaryDirectory(prefix="graft-fortran-") as scratch:
    main(scratch)
tap.done()
