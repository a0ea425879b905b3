# SPDX-License-Identifier: Apache-2.0
"""Reads graphs in the format of METIS. The line of each vertex has its neighbours, counted from 1."""
import os

import numpy

import text
from edge_sort import hash_sum, join
from problem import MAX_VERTICES, Problem
from source import Source

EXPECTED = "a file *.graph: 'vertices edges [fmt [ncon]]', then a line of neighbours for each vertex"


def detect(path):
    return os.path.isfile(path) and path.endswith((".graph", ".graph.gz", ".metis", ".metis.gz"))


def read(path, options):
    header = Header(path)
    source = Source("METIS", None, header.n, 2 * header.m, weighted=header.edge_weights)
    reader = Reader(header, options.text_bytes)
    source.edges, source.end_check = reader.edges, reader.end_check
    if header.sizes:
        source.left_out.append("sizes of vertices")
    if header.vertex_weights:
        source.left_out.append("weights of vertices")
    return source


class Header:
    """The first line that is not a comment."""

    def __init__(self, path):
        self.path = path
        for block in text.blocks(path, 2**16):
            rows = numpy.flatnonzero(block.counts)
            if len(rows):
                self.parse(block, int(rows[0]))
                return
        raise Problem(f"'{path}' is empty, expected {EXPECTED}")

    def parse(self, block, row):
        self.line = block.first_line + row
        fields = [field.decode("latin-1") for field in block.data.split(b"\n")[row].split()]
        if not 2 <= len(fields) <= 4:
            raise Problem(f"{block.line_of(row)}: found {len(fields)} numbers, expected 2 to 4: vertices, edges, fmt "
                          "and ncon")
        for number, field in enumerate(fields):
            if not field.isdigit():
                block.refuse(number, "a whole number of at least 0")
        self.n, self.m = int(fields[0]), int(fields[1])
        if self.n > MAX_VERTICES:
            block.refuse(0, f"at most {MAX_VERTICES} vertices")
        flags = fields[2].zfill(3) if len(fields) > 2 else "000"
        if len(flags) != 3 or set(flags) - set("01"):
            block.refuse(2, "up to three digits 0 or 1")
        self.sizes, self.vertex_weights, self.edge_weights = (flag == "1" for flag in flags)
        if len(fields) > 3 and not self.vertex_weights:
            block.refuse(3, "no ncon, because fmt has no weights of vertices")
        self.skip = self.sizes + (int(fields[3]) if len(fields) > 3 else int(self.vertex_weights))


class Reader:
    def __init__(self, header, limit):
        self.header, self.limit = header, limit
        self.vertex = self.found = self.balance = 0

    def edges(self, _):
        header = self.header
        for block in text.blocks(header.path, self.limit):
            rows = numpy.ones(len(block.counts), bool)
            rows[block.comments] = False
            rows[:max(header.line + 1 - block.first_line, 0)] = False
            rows = numpy.flatnonzero(rows)
            if self.vertex + len(rows) > header.n:
                after = rows[header.n - self.vertex:]
                if block.counts[after].any():
                    raise Problem(f"{block.line_of(after[numpy.flatnonzero(block.counts[after])[0]])}: found a line "
                                  f"after those of the {header.n} vertices, expected the end of the file")
                rows = rows[:header.n - self.vertex]
            yield from self.block_edges(block, rows)

    def block_edges(self, block, rows):
        header, counts = self.header, block.counts
        values = block.values(numpy.int64)
        begins = (numpy.cumsum(counts) - counts)[rows]
        counts = counts[rows]
        self.check_lines(block, rows, counts)
        vertex = numpy.repeat(numpy.arange(self.vertex, self.vertex + len(rows)), counts)
        within = numpy.arange(len(vertex)) - numpy.repeat(numpy.cumsum(counts) - counts, counts) - header.skip
        field = within + header.skip + numpy.repeat(begins, counts)
        chosen = numpy.flatnonzero((within >= 0) & (within % 2 == 0) if header.edge_weights else within >= 0)
        vertex, field = vertex[chosen], field[chosen]
        neighbour = values[field]
        self.check_neighbours(block, vertex, neighbour, field)
        weight = values[field + 1] if header.edge_weights else None
        self.vertex += len(rows)
        self.found += len(vertex)
        self.add_balance(vertex, neighbour - 1, weight)
        yield vertex, neighbour - 1, weight, lambda i, _: block.place(field[i])

    def check_lines(self, block, rows, counts):
        header = self.header
        short = numpy.flatnonzero(counts < header.skip)
        if len(short):
            raise Problem(f"{block.line_of(rows[short[0]])}: found {counts[short[0]]} numbers, expected at least "
                          f"{header.skip}: sizes and weights of the vertex")
        odd = numpy.flatnonzero((counts - header.skip) % 2) if header.edge_weights else []
        if len(odd):
            raise Problem(f"{block.line_of(rows[odd[0]])}: the last neighbour has no weight, expected a weight after "
                          "each")

    def check_neighbours(self, block, vertex, neighbour, field):
        wrong = numpy.flatnonzero((neighbour < 1) | (neighbour > self.header.n))
        if len(wrong):
            block.refuse(int(field[wrong[0]]), f"a vertex from 1 to {self.header.n}")
        loops = numpy.flatnonzero(neighbour == vertex + 1)
        if len(loops):
            block.refuse(int(field[loops[0]]), "no edge from a vertex to itself in this format")

    def add_balance(self, vertex, neighbour, weight):
        """Update a sum that is 0 at the end if every edge is in the lines of both of its ends, with the same weight."""
        edge = join(numpy.minimum(vertex, neighbour), numpy.maximum(vertex, neighbour))
        if weight is not None:
            edge = edge + weight * 0x9e3779b1
        up = vertex < neighbour
        self.balance = (self.balance + hash_sum(edge[up]) - hash_sum(edge[~up])) % 2**64

    def end_check(self):
        header = self.header
        if self.vertex < header.n:
            raise Problem(f"'{header.path}' has lines of {self.vertex} vertices, expected {header.n} as its first line "
                          "says")
        if self.found != 2 * header.m:
            raise Problem(f"'{header.path}' has {self.found} neighbours, expected twice the {header.m} edges that its "
                          "first line says")
        if self.balance:
            raise Problem(f"'{header.path}' is not symmetric: an edge, or its weight, is in the line of only one "
                          "of its ends")
