# SPDX-License-Identifier: Apache-2.0
"""Adjacency lists as text: each line has a vertex and its neighbours."""
import os

import numpy

import text
from edge_list import Reader as EdgeReader, SEPARATORS, find_separator
from source import Source

EXPECTED = "a file *.adjlist, also with .gz: a vertex in each line, and the destinations of its edges"


def detect(path):
    return os.path.isfile(path) and path.removesuffix(".gz").endswith(".adjlist")


def read(path, options):
    separator = SEPARATORS[options.separator] if options.separator else find_separator(path)
    source = Source("adjacency lists", None, options.vertices)
    reader = Reader(path, separator, options)
    source.edges = reader.edges
    source.end_check = lambda: reader.count_vertices(source)
    return source


class Reader(EdgeReader):
    largest = -1

    def count_vertices(self, source):
        """The last vertices may have no edges."""
        if source.n_vertices is None:
            source.n_vertices = self.largest + 1

    def edges(self, _):
        for block in text.blocks(self.path, self.options.text_bytes, self.separator, self.options.skip):
            rows = numpy.flatnonzero(block.counts)
            counts = block.counts[rows]
            values = self.vertices(block, self.block_values(block), numpy.arange(counts.sum()))
            first = numpy.cumsum(counts) - counts
            self.largest = max(self.largest, int(values.max(initial=-1)))
            destination = numpy.delete(numpy.arange(len(values)), first)
            source = numpy.repeat(first, counts - 1)
            yield values[source], values[destination], None, (
                lambda i, side, block=block, ends=(source, destination): block.place(ends[side][i]))
