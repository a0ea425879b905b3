# SPDX-License-Identifier: Apache-2.0
"""What tests of graft-train share: the program, which is their first argument, a small data set, and a temporary
folder that is removed at the end."""
import atexit
import json
import os
import struct
import subprocess
import sys
import tempfile

from small_data import make_dataset
from tap import ok

MODEL = ["--set", "model=sage", "layers=2", "hidden=16", "lr=0.02"]
TIMEOUT = 120


def read_npy(path):
    """Read a .npy file of int32 or float32. The result is its type, shape and values."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    end = 10 + struct.unpack("<H", data[8:10])[0]
    assert end % 64 == 0 and data[end - 1:end] == b"\n"
    head = eval(data[10:end], {"__builtins__": {}})
    assert not head["fortran_order"]
    code = head["descr"][1].replace("f4", "f")
    return head["descr"], head["shape"], struct.unpack(f"<{(len(data) - end) // 4}{code}", data[end:])


def run(*args, env=None, **options):
    options.setdefault("stdout", subprocess.PIPE)
    environment = dict(os.environ, LC_ALL="C", **(env or {}))
    return subprocess.run([program, *args], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          timeout=TIMEOUT, env=environment, **options)


def refused(name, result, code, *words):
    """Check that graft-train ended with exit status `code` and printed a line "graft-train: ..." that contains all
    of the words. Warnings may precede that line, for example about a library without BLAS."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("graft-train: warning: ")]
    fine = result.returncode == code and len(lines) == 1 and lines[0].startswith("graft-train: ")
    fine = fine and all(word in lines[0] for word in words)
    return ok(fine, name, f"exit {result.returncode}, expected {code} with {words}", result.stderr)


def read_safetensors(path):
    """Read a model file by the description of its format alone. The result is its metadata, and the type, shape and
    bytes of each tensor."""
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    assert start % 8 == 0 and all(isinstance(v, str) for v in metadata.values())
    tensors, expected = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        size = {"F32": 4, "F64": 8, "I64": 8}[entry["dtype"]]
        for extent in entry["shape"]:
            size *= extent
        assert begin == expected and end - begin == size
        tensors[name] = (entry["dtype"], entry["shape"], data[start + begin:start + end])
        expected = end
    assert start + expected == len(data)
    return metadata, tensors


def differing_tensors(left, right):
    a, b = read_safetensors(left)[1], read_safetensors(right)[1]
    return [name for name in sorted(set(a) | set(b)) if a.get(name) != b.get(name)]


if len(sys.argv) != 2 or not os.access(sys.argv[1], os.X_OK):
    print("Bail out! the path of graft-train is expected")
    sys.exit(1)
program = os.path.abspath(sys.argv[1])
folder = tempfile.TemporaryDirectory(prefix="graft-train-")
atexit.register(folder.cleanup)
base = folder.name
data = f"{base}/data"
labels, split, n_edges = make_dataset(data)
