# SPDX-License-Identifier: Apache-2.0
"""Reads arrays of NumPy's files as a stream: .npy files, members of an .npz archive, and bare numbers without a
header."""
import math
import os
import zipfile
import zlib

import numpy

from problem import Problem

DISCARD = 2**20
MOST_BYTES = 2**62


class Array:
    """A stored array, of which at most one block is in memory. `open_file` opens the file at the first byte of the
    array."""

    def __init__(self, name, open_file, size=None):
        self.name, self.open_file = name, open_file
        with self.reading() as file:
            self.shape, self.fortran, self.dtype = read_header(name, file)
            self.start = file.tell()
        if self.dtype.hasobject or self.dtype.kind not in "biuf":
            raise Problem(f"{name} has type {self.dtype}, expected numbers")
        expected = self.start + self.dtype.itemsize * int(numpy.prod(self.shape, dtype=numpy.int64))
        if size is not None and size != expected:
            raise Problem(f"{name} has {size:,} bytes, its header says {expected:,}"
                          + (": it is cut off" if size < expected else ""))

    @property
    def n_rows(self):
        return self.shape[0] if self.shape else 1

    @property
    def row_items(self):
        return int(numpy.prod(self.shape[1:], dtype=numpy.int64))

    def reading(self):
        try:
            return self.open_file()
        except (zipfile.BadZipFile, OSError) as error:
            raise Problem(f"{self.name} cannot be read: {error}") from None

    def items(self, first, count, block):
        """Yield the numbers from `first` on, in the order of the file, in arrays of `block` numbers."""
        with self.reading() as file:
            try:
                skip_to(file, self.start + first * self.dtype.itemsize)
                while count:
                    take = min(block, count)
                    data = read_fully(file, take * self.dtype.itemsize)
                    if len(data) < take * self.dtype.itemsize:
                        raise Problem(f"{self.name} is cut off: {count:,} of its numbers are missing")
                    yield numpy.frombuffer(data, self.dtype)
                    count -= take
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise Problem(f"{self.name} is damaged: {error}") from None

    def rows(self, block_bytes):
        """Yield all rows, in blocks [rows, ...]."""
        if self.fortran and len(self.shape) > 1 and self.row_items > 1:
            raise Problem(f"{self.name} is stored by columns (Fortran order), expected rows: save "
                          "numpy.ascontiguousarray() of it")
        width = max(self.row_items, 1)
        rows = max(block_bytes // (width * 8), 1)
        if self.row_items:
            for data in self.items(0, self.n_rows * width, rows * width):
                yield data.reshape(-1, *self.shape[1:])

    def whole(self):
        """Read a small array completely."""
        found = list(self.items(0, self.n_rows * self.row_items, DISCARD)) or [numpy.empty(0, self.dtype)]
        return numpy.concatenate(found)

    def pairs(self, block, by_row):
        """Yield the sources and destinations of an array [2, edges] (by_row) or [edges, 2]."""
        if len(self.shape) != 2 or self.shape[0 if by_row else 1] != 2 or self.dtype.kind not in "iu":
            raise Problem(f"{self.name} is {self.dtype} {list(self.shape)}, expected whole numbers "
                          + ("[2, edges]" if by_row else "[edges, 2]"))
        count = self.shape[1 if by_row else 0]
        if by_row == self.fortran:
            for data in self.items(0, 2 * count, 2 * block):
                yield data[0::2], data[1::2]
        else:
            yield from zip(self.items(0, count, block), self.items(count, count, block))


def read_header(name, file):
    """Read the header of an .npy file: (shape, whether the order is Fortran's, type)."""
    try:
        version = numpy.lib.format.read_magic(file)
        reader = {(1, 0): numpy.lib.format.read_array_header_1_0, (2, 0): numpy.lib.format.read_array_header_2_0}
        if version not in reader:
            raise Problem(f"{name} has version {version[0]}.{version[1]} of the .npy format, expected 1.0 or 2.0")
        shape, fortran, dtype = reader[version](file)
        if any(extent < 0 for extent in shape) or math.prod(shape) * dtype.itemsize > MOST_BYTES:
            raise Problem(f"{name} has the shape {list(shape)}, expected sizes of at least 0 and a file that can exist")
        return shape, fortran, dtype
    except Problem:
        raise
    except Exception as error:  # a damaged header can make NumPy raise exceptions of any kind
        raise Problem(f"{name} is no .npy array: {error or type(error).__name__}") from None


def read_fully(file, size):
    parts = []
    while size:
        data = file.read(size)
        if not data:
            break
        parts.append(data)
        size -= len(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def skip_to(file, offset):
    if isinstance(file, zipfile.ZipExtFile):
        left = offset
        while left > 0:
            left -= len(file.read(min(left, DISCARD))) or left
    else:
        file.seek(offset)


def npy(path):
    return Array(f"'{path}'", lambda: open(path, "rb"), os.path.getsize(path))


def bare(path, dtype, columns):
    """An array of numbers without a header, as numpy.memmap writes them."""
    size, row = os.path.getsize(path), columns * numpy.dtype(dtype).itemsize
    if size % row:
        raise Problem(f"'{path}' has {size:,} bytes, expected a multiple of {row}: rows of {columns} numbers {dtype}")
    array = Array.__new__(Array)
    array.name, array.open_file, array.start = f"'{path}'", lambda: open(path, "rb"), 0
    array.shape, array.fortran, array.dtype = (size // row, columns), False, numpy.dtype(dtype)
    return array


class Archive:
    """An .npz archive. It knows the names of its arrays, each of which is read on request."""

    def __init__(self, path):
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.sizes = {info.filename[:-4]: info.file_size for info in archive.infolist()
                              if info.filename.endswith(".npy")}
        except zipfile.BadZipFile:
            raise Problem(f"'{path}' is no complete .npz archive: the list at its end is missing; perhaps it is cut "
                          "off") from None

    def __contains__(self, name):
        return name in self.sizes

    def __getitem__(self, name):
        if name not in self.sizes:
            raise Problem(f"'{self.path}' has no array '{name}', but {self.listing()}")
        return Array(f"'{name}' of '{self.path}'", lambda: zipfile.ZipFile(self.path).open(name + ".npy"),
                     self.sizes[name])

    def listing(self):
        return ", ".join(sorted(self.sizes)) or "none"
