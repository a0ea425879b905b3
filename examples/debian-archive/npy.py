# SPDX-License-Identifier: Apache-2.0
"""The part of the .npy format that this example needs, without NumPy: dense little-endian arrays, version 1.0."""
import array
import ast
import os
import sys

DESCR = {"i": "<i4", "f": "<f4", "B": "|u1"}


def write(path, shape, values):
    """Write an array.array of type i, f or B. The file gets its name when it is complete."""
    size = 1
    for extent in shape:
        size *= extent
    if size != len(values) or int(DESCR[values.typecode][2]) != values.itemsize:
        raise ValueError(f"{path}: {len(values)} values of {values.itemsize} bytes do not fill the shape {shape}")
    header = f"{{'descr': '{DESCR[values.typecode]}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    if sys.byteorder == "big":
        values = array.array(values.typecode, values)
        values.byteswap()
    partial = path + ".partial"
    with open(partial, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("ascii"))
        values.tofile(file)
    os.replace(partial, path)


def read(path):
    """Read what write() writes. Returns (shape, array)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x93NUMPY\x01\x00" or len(data) < 10:
        raise ValueError(f"{path}: not a .npy file of version 1.0")
    start = 10 + int.from_bytes(data[8:10], "little")
    try:
        header = ast.literal_eval(data[10:start].decode("latin-1").strip())
        descr, shape = header["descr"], header["shape"]
    except (SyntaxError, ValueError, KeyError, TypeError):
        raise ValueError(f"{path}: the header is not that of a .npy file") from None
    codes = [code for code in DESCR if DESCR[code] == descr]
    if not codes or header.get("fortran_order"):
        raise ValueError(f"{path}: expected rows of {' or '.join(DESCR.values())}, found {descr!r}")
    values = array.array(codes[0])
    size = values.itemsize
    for extent in shape:
        size *= extent
    if size != len(data) - start:
        raise ValueError(f"{path}: the shape {shape} needs {size} bytes of data, the file has {len(data) - start}")
    values.frombytes(data[start:])
    if sys.byteorder == "big":
        values.byteswap()
    return shape, values
