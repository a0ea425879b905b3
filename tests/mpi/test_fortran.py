# SPDX-License-Identifier: Apache-2.0
"""A host in Fortran with ranks over MPI, compiled by the MPI's own wrapper.

usage: test_fortran.py MPI LAUNCHER LIBRARY
"""
import os
import shutil
import subprocess
import sys
import tempfile

import tap

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def output(command, folder):
    return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main(mpi, launcher, library):
    compiler = shutil.which("mpifort." + mpi)
    if compiler is None or shutil.which("gfortran") is None:
        tap.skip("Fortran over " + mpi, "gfortran, or mpifort." + mpi + ", is not installed")
        return
    sources = [os.path.join(TESTS, *source) for source in (("harness", "graft.f90"), ("mpi", "host.f90"))]
    with tempfile.TemporaryDirectory(prefix="graft-fortran-") as folder:
        build = output([compiler, "-std=f2008", "-Wall", "-Wno-c-binding-type", *sources, "-o", "host", "-ldl"], folder)
        tap.ok(build.returncode == 0, "the host is compiled", build.stdout)
        for ranks in "1", "3":
            run = output([launcher, "-n", ranks, os.path.join(folder, "host"), library], folder)
            tap.ok(run.returncode == 0 and "the sums are right" in run.stdout,
                   f"{ranks} ranks sum through an integer communicator", run.returncode, run.stdout)
            tap.ok("address" in run.stdout and "Fortran" in run.stdout,
                   "passing a communicator by value is an error with a message", run.stdout)


main(*sys.argv[1:])
tap.done()
