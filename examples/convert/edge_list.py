# SPDX-License-Identifier: Apache-2.0
"""Reads lists of edges as text. Each line has a source, a destination, and optionally a weight."""
import os

import numpy

import text
from problem import Problem
from source import Source

EXPECTED = "a file *.txt, *.csv, *.tsv, *.edges or *.el, also with .gz: a source and a destination in each line"
ENDINGS = (".txt", ".csv", ".tsv", ".edges", ".el")
SEPARATORS = {"comma": b",", "semicolon": b";", "blank": None}


def detect(path):
    return os.path.isfile(path) and path.removesuffix(".gz").endswith(ENDINGS)


def find_separator(path):
    line = text.first_line(path)
    return b"," if b"," in line else b";" if b";" in line else None


def read(path, options):
    separator = SEPARATORS[options.separator] if options.separator else find_separator(path)
    source = Source("list of edges", None, options.vertices, weighted=options.weights)
    reader = Reader(path, separator, options)
    source.edges = reader.edges
    source.end_check = lambda: source.left_out.extend(reader.left_out())
    return source


class Reader:
    def __init__(self, path, separator, options):
        self.path, self.separator, self.options = path, separator, options
        self.used, self.columns, self.first = 3 if options.weights else 2, None, ""

    def edges(self, _):
        options = self.options
        for block in text.blocks(self.path, options.text_bytes, self.separator, options.skip):
            rows = numpy.flatnonzero(block.counts)
            if not len(rows):
                continue
            self.check_columns(block, rows)
            first = (numpy.cumsum(block.counts) - block.counts)[rows]
            values = self.block_values(block)
            source, destination = values[first], values[first + 1]
            weight = values[first + 2] if options.weights else None
            yield (self.vertices(block, source, first), self.vertices(block, destination, first + 1), weight,
                   lambda i, side, block=block, first=first: block.place(first[i] + side))

    def check_columns(self, block, rows):
        """All lines have as many columns as the first one."""
        if self.columns is None:
            self.columns, self.first = int(block.counts[rows[0]]), block.line_of(rows[0])
        if self.columns < self.used:
            raise Problem(f"{self.first}: found {self.columns} columns, expected {self.used}: source, destination"
                          + (", weight" if self.used == 3 else ""))
        wrong = rows[block.counts[rows] != self.columns]
        if len(wrong):
            raise Problem(f"{block.line_of(wrong[0])}: found {block.counts[wrong[0]]} columns, expected {self.columns} "
                          f"as in {self.first}. Lists of the neighbours of each vertex are --layout adjacency")

    def left_out(self):
        unused = range(self.used + 1, (self.columns or 0) + 1)
        if unused:
            yield (f"column {unused[0]}" if len(unused) == 1 else f"columns {unused[0]} to {unused[-1]}") + (
                "" if self.options.weights else " (--weights keeps the third)")

    def block_values(self, block):
        """Read a block with values. Numbers after the two vertices may have a fraction."""
        first = block.first_line == 1 + self.options.skip
        return block.values(numpy.int64 if block.counts.max(initial=0) <= 2 else numpy.float64,
                            " (--skip leaves out lines at the top)" if first else "")

    def vertices(self, block, values, fields):
        if values.dtype == numpy.float64:
            wrong = numpy.flatnonzero(~(numpy.abs(values) < 2**53) | (values != numpy.floor(values)))
            if len(wrong):
                block.refuse(int(fields[wrong[0]]), "a whole number")
            values = values.astype(numpy.int64)
        return values - self.options.first_vertex
