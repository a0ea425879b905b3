# SPDX-License-Identifier: Apache-2.0
"""Finds the versions of SuiteSparse:GraphBLAS that tests can use besides the one with which they are linked: those
in packages of the Python in PATH, and those in variable GRAFT_GRAPHBLAS, which lists files and folders separated by
colons."""
import glob
import os
import re
import shutil
import subprocess

SITES = "import site, sysconfig; print(*site.getsitepackages(), *sysconfig.get_paths().values(), sep='\\n')"


def sites():
    """The package folders of the Python in PATH."""
    python = shutil.which("python3")
    if python is None:
        return []
    result = subprocess.run([python, "-c", SITES], capture_output=True, text=True, check=False)
    return result.stdout.splitlines()


def candidates():
    for folder in sites():
        yield from glob.glob(os.path.join(folder, "suitesparse_graphblas.libs", "libgraphblas*.so*"))
    for path in os.environ.get("GRAFT_GRAPHBLAS", "").split(":"):
        if os.path.isdir(path):
            yield from glob.glob(os.path.join(path, "libgraphblas*.so*"))
        elif path:
            yield path


def find():
    """Find all versions as [(path, major version)], and the reason if there are none."""
    found = {}
    for path in candidates():
        version = re.search(r"\.so\.(\d+)", os.path.realpath(path))
        if version is not None:
            found[os.path.realpath(path)] = int(version.group(1))
    return sorted(found.items()), "no Python package brings one, and GRAFT_GRAPHBLAS names none"
