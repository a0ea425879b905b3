# SPDX-License-Identifier: Apache-2.0
"""Hosts in Fortran by adapters/fortran, with gfortran and flang: test_fortran_hosts.py ROOT LIBRARY [LAUNCHER...], each
launcher being mpiexec.openmpi or mpiexec.mpich."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

ROOT, LIBRARY = sys.argv[1:3]
MODULE = f"{ROOT}/adapters/fortran/graft.f90"
GFORTRAN = ["-std=f2018", "-Wall", "-Wno-c-binding-type", "-Werror"]


def output(command, folder, **variables):
    result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=100, check=False, env=os.environ | variables)
    return result.returncode, result.stdout


def forward(name, code, text):
    """The lines of a program as checks of this test."""
    lines = re.findall(r"^(not ok|ok) \d+ - (.*)$((?:\n#.*)*)", text, re.MULTILINE)
    for state, what, details in lines:
        tap.ok(state == "ok", f"{name}: {what}", details)
    tap.ok(code == 0 and lines, f"{name}: the program ends, and leaves no memory", code, text)


def test_one_process(name, command, folder):
    code, text = output([*command, MODULE, f"{ROOT}/tests/hosts/fortran_host.f90", "-o", "host", "-ldl"], folder)
    if tap.ok(code == 0, f"{name}: module and host are compiled without a warning", text):
        forward(name, *output(["./host", LIBRARY], folder))
        code, text = output(["./host", "/nowhere"], folder)
        tap.ok(code != 0 and "status -5: cannot use '/nowhere'" in text,
               f"{name}: without ierr a failure is printed and ends the program", code, text)


def test_ranks(name, command, launcher, folder, **variables):
    code, text = output([*command, MODULE, f"{ROOT}/tests/hosts/fortran_ranks.f90", "-o", "ranks", "-ldl"], folder,
                        **variables)
    if not tap.ok(code == 0, f"{name}: a host over ranks is compiled", text):
        return
    for ranks in "1", "3":
        code, text = output([launcher, "-n", ranks, "./ranks", LIBRARY], folder)
        for line in "the sums are right", "the mesh is right", "the network learns", "the network learns on line":
            tap.ok(code == 0 and line + "\n" in text, f"{name}, {ranks} ranks: {line}", code, text)
    code, text = output([launcher, "-n", "3", "./ranks", LIBRARY, "fail"], folder)
    tap.ok(code != 0 and "status -6: " in text and "did not end" not in text,
           f"{name}: without ierr a failure ends the communicator", code, text)


def test_f08(name, command, launcher, folder):
    code, text = output([*command, MODULE, f"{ROOT}/adapters/fortran/graft_f08.f90",
                         f"{ROOT}/tests/hosts/fortran_f08.f90", "-o", "f08", "-ldl"], folder)
    if tap.ok(code == 0, f"{name}: a host of mpi_f08 is compiled", text):
        code, text = output([launcher, "-n", "2", "./f08", LIBRARY], folder)
        tap.ok(code == 0 and "the ranks are right" in text, f"{name}: its communicator is taken", code, text)


def main():
    compilers = {"gfortran": ["gfortran", *GFORTRAN, "-fcheck=all", "-fsanitize=address,undefined"],
                 "flang": ["flang-new-19"]}
    for name, command in compilers.items():
        if shutil.which(command[0]) is None:
            tap.skip(f"{name}: hosts in Fortran", f"{command[0]} is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="graft-fortran-") as folder:
            test_one_process(name, command, folder)
    for launcher in sys.argv[3:]:
        mpi = launcher.rpartition(".")[2]
        if shutil.which("mpifort." + mpi) is None or shutil.which("gfortran") is None:
            tap.skip(f"{mpi}: hosts in Fortran", f"gfortran or mpifort.{mpi} is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="graft-fortran-") as folder:
            command = ["mpifort." + mpi, *GFORTRAN[1:-1]]
            test_ranks(f"{mpi}, gfortran", command, launcher, folder)
            test_f08(mpi, command, launcher, folder)
            if mpi == "openmpi" and shutil.which("flang-new-19"):
                test_ranks("openmpi, flang", ["mpifort.openmpi"], launcher, folder, OMPI_FC="flang-new-19")


main()
tap.done()
