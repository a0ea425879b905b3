# SPDX-License-Identifier: Apache-2.0
"""Sorts edges by destination and source without repetitions, in bounded memory. An edge is one number, destination *
2^32 + source. Edges are partitioned by ranges of this number into temporary files until a file fits into memory,
where it is sorted. The number of edges and the sum of their hashes are kept, so that the edges that are written can
be compared with those that were read."""
import os

import numpy

from problem import Problem

# `reversed`: the other direction of an edge of the source, which --undirected adds.
RECORD = numpy.dtype([("edge", "<i8"), ("weight", "<f4"), ("reversed", "?")])
ALL_EDGES = 2**63 - 1
MAX_FILES = 128
LEAST_BYTES = 2**20


def join(source, destination):
    return (destination.astype(numpy.int64) << 32) | source.astype(numpy.int64)


def split(edges):
    """Split numbers of edges into (sources, destinations)."""
    return edges & 0xffffffff, edges >> 32


def hash_sum(edges):
    """The sum of the hashes of all edges modulo 2^64 (finaliser of splitmix64). It does not depend on their order."""
    mixed = edges.astype(numpy.uint64)
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        mixed ^= mixed >> numpy.uint64(shift)
        mixed *= numpy.uint64(factor)
    mixed ^= mixed >> numpy.uint64(31)
    return int(numpy.add.reduce(mixed))


class Sums:
    """The number of edges, and the sum of their hashes."""

    def __init__(self):
        self.count = self.hash = 0

    def add(self, edges):
        self.count += len(edges)
        self.hash = (self.hash + hash_sum(edges)) % 2**64

    def __eq__(self, other):
        return (self.count, self.hash) == (other.count, other.hash)


class EdgeSort:
    """Sorts edges. `memory` is the memory in bytes that one sort may use; `expected`, the number of edges, and
    `n_vertices` may be unknown."""

    def __init__(self, folder, memory, weighted, expected=None, n_vertices=None):
        self.folder, self.weighted = folder, weighted
        self.dtype = RECORD if weighted else numpy.dtype("<i8")
        self.leaf_bytes = max(memory // 5, LEAST_BYTES)
        self.block = max(memory // 512, 2**12)
        self.added, self.repeated = Sums(), Sums()
        self.largest = -1
        self.n_files = 0
        bytes_expected = None if expected is None else expected * self.dtype.itemsize
        end = ALL_EDGES if n_vertices is None else n_vertices << 32
        self.root = Partition(self, 0, end, 1 if n_vertices is None else self.parts(bytes_expected))

    def parts(self, size):
        """The number of files of a partition. It is rather too large, because hubs make the files unequal."""
        return MAX_FILES if size is None else min(2 * size // self.leaf_bytes + 1, MAX_FILES)

    def new_path(self):
        self.n_files += 1
        return os.path.join(self.folder, f"edges-{self.n_files}")

    def add(self, source, destination, weight=None, is_reversed=False):
        for first in range(0, len(source), self.block):
            chosen = slice(first, first + self.block)
            edges = join(source[chosen], destination[chosen])
            self.added.add(edges)
            self.largest = max(self.largest, int(source[chosen].max()), int(destination[chosen].max()))
            if self.weighted:
                records = numpy.empty(len(edges), RECORD)
                records["edge"], records["weight"], records["reversed"] = edges, weight[chosen], is_reversed
                edges = records
            self.root.add(edges)

    def sorted(self):
        """Yield (edges, weights or None) in ascending order, one block at a time. The files are removed meanwhile."""
        yield from self.drain(self.root)

    def drain(self, partition):
        """Sort a partition, file by file. A file that is too large is partitioned again."""
        for low, high, path, size in partition.close():
            if size <= self.leaf_bytes or high - low == 1:
                yield from self.sort_file(path, high - low == 1)
                os.remove(path)
                continue
            high = min(high, (self.largest + 1) << 32)
            finer = Partition(self, low, high, max(self.parts(size), 2))
            with open(path, "rb") as file:
                while len(records := numpy.fromfile(file, self.dtype, self.block)):
                    finer.add(records)
            os.remove(path)
            yield from self.drain(finer)

    def sort_file(self, path, one_edge):
        """Sort a file. A file that contains only one edge may exceed memory, so only its weights are added up."""
        if one_edge and os.path.getsize(path) > self.leaf_bytes:
            yield self.merge_one(path)
            return
        records = numpy.fromfile(path, self.dtype)
        if self.weighted:
            edges = records["edge"].copy()
            order = numpy.argsort(edges)
            edges, records = edges[order], records[order]
        else:
            edges = records
            edges.sort()
        first = numpy.empty(len(edges), bool)
        first[:1] = True
        numpy.not_equal(edges[1:], edges[:-1], out=first[1:])
        if not first.all():
            for begin in range(0, len(edges), self.block):
                chosen = slice(begin, begin + self.block)
                self.repeated.add(edges[chosen][~first[chosen]])
            edges = edges[first]
        weights = one_weight(edges, *weight_sums(records, numpy.flatnonzero(first))) if self.weighted else None
        for begin in range(0, len(edges), self.block):
            chosen = slice(begin, begin + self.block)
            yield edges[chosen], weights[chosen] if self.weighted else None

    def merge_one(self, path):
        totals, edge, rest = numpy.zeros((2, 2, 1)), None, 0
        with open(path, "rb") as file:
            while len(records := numpy.fromfile(file, self.dtype, self.block)):
                edge = (records["edge"] if self.weighted else records)[:1].copy()
                self.repeated.add(numpy.repeat(edge, len(records) - (rest == 0)))
                if self.weighted:
                    totals += weight_sums(records, [0])
                rest += len(records)
        return edge, one_weight(edge, *totals) if self.weighted else None


def weight_sums(records, first):
    """The sums of the weights of each edge, whose records begin at first[i], and how many records are in each sum: for
    records of the source, and for reversed ones. [sums or counts, source or reversed, edges]."""
    sides = [records["reversed"] == side for side in (False, True)]
    return numpy.array([[numpy.add.reduceat(numpy.where(side, records["weight"], 0), first, dtype=numpy.float64)
                         for side in sides], [numpy.add.reduceat(side, first, dtype=numpy.float64) for side in sides]])


def one_weight(edges, sums, counts):
    """The weight of an undirected edge is that of the direction in the source; two directions have the same one."""
    differ = (counts > 0).all(axis=0) & ~numpy.isclose(sums[0], sums[1], rtol=1e-6, atol=0)
    if differ.any():
        at = int(numpy.argmax(differ))
        source, destination = (int(end) for end in split(edges[at]))
        raise Problem(f"edge ({source}, {destination}) has weight {sums[0, at]:g}, but ({destination}, {source}) has "
                      f"{sums[1, at]:g}; expected equal weights of both directions with --undirected")
    return numpy.where(counts[0] > 0, sums[0], sums[1])


class Partition:
    """The files of a partition have equal ranges of edges, low <= edge < high. A file is created with its first
    edge."""

    def __init__(self, sort, low, high, parts):
        self.sort, self.low, self.high = sort, low, high
        self.width = max(-(-(high - low) // parts), 1)
        self.files = {}

    def add(self, records):
        edges = records["edge"] if self.sort.weighted else records
        part = ((edges - self.low) // self.width).astype(numpy.uint8)
        order = numpy.argsort(part, kind="stable")
        ordered, part = records[order], part[order]
        begins = numpy.concatenate(([0], numpy.flatnonzero(numpy.diff(part)) + 1, [len(part)]))
        for begin, end in zip(begins[:-1], begins[1:]):
            if begin < end:
                self.file(int(part[begin])).write(ordered[begin:end].tobytes())

    def file(self, part):
        if part not in self.files:
            self.files[part] = open(self.sort.new_path(), "wb", buffering=0)
        return self.files[part]

    def close(self):
        """Close the files. The result is (low, high, path, bytes) for each, in the order of their ranges."""
        found = []
        for part, file in sorted(self.files.items()):
            low = self.low + part * self.width
            found.append((low, min(low + self.width, self.high), file.name, file.tell()))
            file.close()
        return found
