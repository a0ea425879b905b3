# SPDX-License-Identifier: Apache-2.0
"""Checks a wheel of this build: its record must be right, and its contents must work without the build."""
import base64
import csv
import hashlib
import os
import re
import subprocess
import sys
import zipfile

import pytest

BACKEND = os.path.join(os.path.dirname(__file__), *[os.pardir] * 2, "adapters", "python", "build_backend.py")
EXAMPLE = os.path.join(os.path.dirname(__file__), *[os.pardir] * 2, "examples", "aggregate.py")
BUILD = os.path.dirname(os.environ.get("GRAFT_LIBRARY", ""))

USE = """
import os, graft, numpy
print(graft.grb_library())
from graft import _library
with graft.Context() as context:
    a = (numpy.array([0, 2, 3]), numpy.array([0, 1, 1]), None, (2, 2))
    print(_library.find(), graft.aggregate(a, numpy.eye(2, dtype="float32"), context=context).tolist())
    print(sorted(os.path.dirname(one["path"]) for one in context.modules() if one["path"]))
"""


def test_a_wheel_is_whole_and_works(tmp_path):
    if not os.path.exists(os.path.join(BUILD, "adapters", "python", "graft", "_abi.py")):
        pytest.skip("GRAFT_LIBRARY is in no build with the Python package")
    name = subprocess.run([sys.executable, BACKEND, str(tmp_path), BUILD], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()
    assert name.startswith("graft_gnn-") and "-py3-none-linux_" in name
    with zipfile.ZipFile(tmp_path / name) as archive:
        files = archive.namelist()
        record = next(one for one in files if one.endswith("/RECORD"))
        for path, digest, size in csv.reader(archive.read(record).decode().splitlines()):
            data = archive.read(path)
            if path != record:
                hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                assert (digest, int(size)) == ("sha256=" + hashed, len(data)), path
            files.remove(path)
        assert not files, "every file has a line in the record"
        archive.extractall(tmp_path / "site")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GRAFT_")}
    environment["PYTHONPATH"] = str(tmp_path / "site")
    told = subprocess.run([sys.executable, "-c", USE], check=True, stdout=subprocess.PIPE, text=True, env=environment,
                          cwd=tmp_path).stdout.splitlines()
    lib = str(tmp_path / "site" / "graft" / "lib")
    assert told[0] == f"{lib}/libgraft-grb.so" and os.path.exists(told[0])
    assert os.path.exists(f"{lib}/libgraft-grb-products.so")
    assert told[1] == f"{lib}/libgraft.so.1 [[1.0, 1.0], [0.0, 1.0]]"
    assert set(eval(told[2])) <= {lib}
    example = subprocess.run([sys.executable, EXAMPLE], check=True, stdout=subprocess.PIPE, text=True, env=environment,
                             cwd=tmp_path).stdout
    mlp, sage = (float(re.search(rf"^{model}: test accuracy (\S+)", example, re.MULTILINE)[1])
                 for model in ("mlp", "sage"))
    assert sage > max(mlp, 0.9) and "ERR_ARG: shapes do not fit" in example, example
