# SPDX-License-Identifier: Apache-2.0
"""Writes the folder of a data set, one block at a time. The folder has another name until it is complete."""
import os
import shutil
import tempfile

import numpy

from edge_sort import Sums, join, split
from problem import Problem
from source import as_f32
from text import blocks as text_blocks

HEADER = 128
MTX_HEADER = 160
MOST_CLASSES = 65536  # or as many as vertices; graft-train takes no more


def npy_header(descr, shape):
    """Make a header of 128 bytes for any shape, so that it can be written last."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11) + b"\n"


class Folder:
    """A context manager for the folder. The folder appears only if the context ends without an exception."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        if os.path.lexists(self.path):
            raise Problem(f"'{path}' exists already")
        if not os.path.isdir(os.path.dirname(self.path)):
            raise Problem(f"'{path}' cannot be made: there is no folder '{os.path.dirname(self.path)}'")

    def __enter__(self):
        parent, name = os.path.split(self.path)
        self.partial = tempfile.mkdtemp(prefix=f".{name}.partial-", dir=parent)
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                os.chmod(self.partial, 0o777 & ~current_umask())
                os.rename(self.partial, self.path)
        finally:
            shutil.rmtree(self.partial, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.partial, name)


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class NpyWriter:
    """Writes an array whose number of rows is known only when it is closed."""

    def __init__(self, path, descr, columns=None):
        self.file, self.descr, self.columns, self.n_rows = open(path, "wb"), descr, columns, 0
        self.file.write(bytes(HEADER))

    def add(self, rows):
        self.file.write(numpy.ascontiguousarray(rows, self.descr).data)
        self.n_rows += len(rows)

    def close(self):
        shape = (self.n_rows,) if self.columns is None else (self.n_rows, self.columns)
        finish(self.file, npy_header(self.descr, shape))


def finish(file, header):
    file.flush()
    file.seek(0)
    file.write(header)
    file.flush()
    os.fsync(file.fileno())
    file.close()


class EdgeWriter:
    """Writes edges.npy: all sources, and then all destinations, which are kept in a temporary file until then."""

    def __init__(self, folder, temporary):
        self.path, self.waiting = folder.file("edges.npy"), os.path.join(temporary, "destinations")
        self.sources, self.destinations = open(self.path, "wb"), open(self.waiting, "wb+")
        self.sources.write(bytes(HEADER))
        self.count = 0

    def add(self, edges, _):
        for file, ends in zip((self.sources, self.destinations), split(edges)):
            file.write(ends.astype("<i4").data)
        self.count += len(edges)

    def close(self):
        self.destinations.seek(0)
        shutil.copyfileobj(self.destinations, self.sources, 2**20)
        self.destinations.close()
        os.remove(self.waiting)
        finish(self.sources, npy_header("<i4", (2, self.count)))

    def read_again(self, block):
        found = Sums()
        with open(self.path, "rb") as sources, open(self.path, "rb") as destinations:
            sources.seek(HEADER)
            destinations.seek(HEADER + 4 * self.count)
            for first in range(0, self.count, block):
                take = min(block, self.count - first)
                found.add(join(numpy.fromfile(sources, "<i4", take), numpy.fromfile(destinations, "<i4", take)))
        return found


class WeightedEdgeWriter:
    """Writes graph.mtx, the only format for graphs with weights. Entry (i, j) means that i gathers from j."""

    def __init__(self, folder, n_vertices):
        self.path, self.n, self.count = folder.file("graph.mtx"), n_vertices, 0
        self.file = open(self.path, "wb")
        self.file.write(bytes(MTX_HEADER))

    def add(self, edges, weights):
        ends = split(edges)
        weights = as_f32(weights, lambda i: f"the sum of the weights of edge ({ends[0][i]}, {ends[1][i]})")
        lines = (f"{edge[1] + 1} {edge[0] + 1} {weight:.9g}\n"
                 for edge, weight in zip(zip(*(ends.tolist() for ends in split(edges))), weights.tolist()))
        self.file.write("".join(lines).encode())
        self.count += len(edges)

    def close(self):
        banner = b"%%MatrixMarket matrix coordinate real general\n"
        size = f"{self.n} {self.n} {self.count}\n".encode()
        comment = b"%".ljust(MTX_HEADER - len(banner) - len(size) - 1) + b"\n"
        finish(self.file, banner + comment + size)

    def read_again(self, block):
        found, header = Sums(), 1
        for lines in text_blocks(self.path, 16 * block):
            rows = lines.values(numpy.float64).reshape(-1, 3)[header:, :2].astype(numpy.int64) - 1
            found.add(join(rows[:, 1], rows[:, 0]))
            header = 0
        return found


def write_features(folder, rows, n, size, progress):
    writer = NpyWriter(folder.file("features.npy"), "<f4", rows.columns)
    for block in rows.blocks(size):
        first = writer.n_rows
        writer.add(as_f32(block, lambda row, column: f"{rows.name}, row {first + row}, column {column}"))
        progress.show("vertices with features", writer.n_rows, n)
    writer.close()
    check_rows(rows, writer.n_rows, n)


def check_rows(rows, found, n):
    if found != n:
        raise Problem(f"{rows.name} has {found} rows, expected one for each of {n} vertices")


def write_sparse_features(folder, matrix, n, block):
    """Write sparse features as four files. The columns of each row are in ascending order."""
    if matrix.shape[0] != n:
        raise Problem(f"{matrix.indptr.name} is of {matrix.shape[0]} rows, expected one for each of {n} vertices")
    names = (("indptr", "<i8"), ("indices", "<i4"), ("data", "<f4"), ("shape", "<i8"))
    files = {name: NpyWriter(folder.file(f"features_csr_{name}.npy"), descr) for name, descr in names}
    for number, (_, pointers) in enumerate(matrix.pointers(block)):
        files["indptr"].add(pointers[number > 0:])
    last = -1
    for row, column, value in matrix.entries(block):
        wrong = numpy.flatnonzero((column < 0) | (column >= matrix.shape[1]))
        if len(wrong):
            raise Problem(f"{matrix.indices.name} has column {column[wrong[0]]} in row {row[wrong[0]]}, expected 0 to "
                          f"{matrix.shape[1] - 1}")
        place = numpy.concatenate(([last], (row << 32) | column.astype(numpy.int64)))
        wrong = numpy.flatnonzero(numpy.diff(place) <= 0)
        if len(wrong):
            raise Problem(f"{matrix.indices.name}: the columns of row {row[wrong[0]]} do not ascend; expected the "
                          "sum_duplicates() of scipy")
        last = place[-1]
        files["indices"].add(column)
        files["data"].add(as_f32(value, lambda i: f"{matrix.data.name}, row {row[i]}, column {column[i]}"))
    files["shape"].add(numpy.array(matrix.shape))
    for file in files.values():
        file.close()


def write_labels(folder, rows, n, size):
    """Write labels. The result is (number of classes, number of vertices without a label). The file has int32 [n],
    or uint8 [n, classes] if a vertex may have several classes."""
    single = rows.columns == 1
    writer = NpyWriter(folder.file("labels.npy"), "<i4" if single else "|u1", None if single else rows.columns)
    classes, unlabelled = (0, 0) if single else (rows.columns, 0)
    least, most = (-1, max(n, MOST_CLASSES) - 1) if single else (0, 1)
    for found in rows.blocks(size):
        known = ~numpy.isnan(found)
        wrong = ~known if not single else numpy.zeros(found.shape, bool)
        wrong |= known & ((found != numpy.floor(found)) | (found > most) | (found < least))
        if wrong.any():
            row, column = (int(i[0]) for i in numpy.nonzero(wrong))
            raise Problem(f"{rows.name}: vertex {writer.n_rows + row} has label {found[row, column]:g}"
                          + (f", expected a class from 0 to {most}, or NaN or -1 for none" if single else
                             f" in column {column}, expected 0 or 1"))
        labels = numpy.where(known, found, -1).astype("<i4")
        if single:
            classes = max(classes, int(labels.max(initial=-1)) + 1)
            unlabelled += int(numpy.count_nonzero(labels < 0))
        writer.add(labels[:, 0] if single else labels)
    writer.close()
    check_rows(rows, writer.n_rows, n)
    return classes, unlabelled


def write_split(folder, fill, n, labelled_only):
    """Write the split. The result is the number of vertices in training, validation and test."""
    members = numpy.zeros(n, numpy.uint8)
    fill(members)
    if labelled_only:
        leave_unlabelled(folder, members)
    if members.max(initial=0) > 3:
        vertex = int(numpy.argmax(members > 3))
        raise Problem(f"vertex {vertex} has {members[vertex]} as its part of the split, expected 0 to 3")
    writer = NpyWriter(folder.file("split.npy"), "|u1")
    writer.add(members)
    writer.close()
    return [int(numpy.count_nonzero(members == part)) for part in (1, 2, 3)]


def leave_unlabelled(folder, members, block=2**20):
    """Remove vertices without a label from the split. If a vertex may have several classes, all vertices have
    labels."""
    with open(folder.file("labels.npy"), "rb") as file:
        if b"<i4" in file.read(HEADER):
            for begin in range(0, len(members), block):
                part = members[begin:begin + block]
                part[numpy.fromfile(file, "<i4", len(part)) < 0] = 0
