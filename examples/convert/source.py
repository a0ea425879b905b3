# SPDX-License-Identifier: Apache-2.0
"""A reader of a layout returns these objects before any of the data is read completely."""
import dataclasses
import typing

import numpy

from problem import Problem


PARTS = ("none", "training", "validation", "test")


@dataclasses.dataclass
class Rows:
    """One row of numbers for each vertex. `blocks(bytes)` yields two-dimensional arrays with a few rows each."""
    name: str
    columns: int
    blocks: typing.Callable
    n_rows: typing.Optional[int] = None


@dataclasses.dataclass
class Source:
    """A source graph. `edges(block)` yields (sources, destinations, weights or None, place), where place(i, side)
    says where the source (0) or destination (1) of edge i was read. `split(members)` fills an array with 1 for
    training, 2 for validation and 3 for test."""
    layout: str
    edges: typing.Callable
    n_vertices: typing.Optional[int] = None
    n_edges: typing.Optional[int] = None
    features: typing.Optional[Rows] = None
    sparse: typing.Optional[object] = None
    labels: typing.Optional[Rows] = None
    split: typing.Optional[typing.Callable] = None
    weighted: bool = False
    end_check: typing.Callable = lambda: None
    left_out: list = dataclasses.field(default_factory=list)


def as_f32(values, place):
    """The values as floats of 4 bytes. `place(i)` says where the element of index i was read, if it is not finite."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        floats = values.astype("<f4")
    if not numpy.isfinite(floats).all():
        index = tuple(int(i[0]) for i in numpy.nonzero(~numpy.isfinite(floats)))
        raise Problem(f"{place(*index)}: found {values[index]:g}, expected a finite number of 4 bytes, at most 3.4e38")
    return floats


def expect_whole(*arrays):
    for array in arrays:
        if array.dtype.kind not in "iu":
            raise Problem(f"{array.name} has type {array.dtype}, expected whole numbers")


def array_rows(array):
    """Make rows from a stored array [n] or [n, columns]."""
    if len(array.shape) not in (1, 2):
        raise Problem(f"{array.name} has shape {list(array.shape)}, expected [n] or [n, columns]")
    width = array.row_items

    def blocks(size):
        for rows in array.rows(size):
            yield rows.reshape(-1, width)
    return Rows(array.name, width, blocks, array.n_rows)


def array_edges(array, by_row):
    """Make the edges from a stored array [2, edges] or [edges, 2]."""
    def edges(block):
        for number, (source, destination) in enumerate(array.pairs(block, by_row)):
            yield source, destination, None, lambda i, _, first=number * block: f"{array.name}, edge {first + i}"
    return edges


def index_split(name, blocks, number, n):
    """Make one part of a split from lists of vertices."""
    def fill(members):
        for block in blocks():
            wrong = numpy.flatnonzero((block < 0) | (block >= n))
            if len(wrong):
                raise Problem(f"{name} has vertex {block[wrong[0]]}, expected 0 to {n - 1}")
            assign(members, block, number, name)
    return fill


def assign(members, vertices, number, name):
    """Put vertices into a part of the split. A vertex has one part."""
    taken = numpy.flatnonzero((members[vertices] != 0) & (members[vertices] != number))
    if len(taken):
        vertex = vertices[taken[0]]
        raise Problem(f"{name} has vertex {vertex}, which is among those for {PARTS[members[vertex]]} already; "
                      "expected one part for each vertex")
    members[vertices] = number


def share_split(train, validation, labelled=None):
    """Make a split by position: the first vertices are for training, the following ones for validation, and the
    other labelled ones for test."""
    def fill(members):
        n = len(members) if labelled is None else labelled
        first, second = int(n * train), int(n * train) + int(n * validation)
        members[:first], members[first:second], members[second:n] = 1, 2, 3
    return fill


def random_split(train, validation, seed=0, block=2**20):
    """Make a random split. It is the same for the same number of vertices."""
    def fill(members):
        draw = numpy.random.Generator(numpy.random.PCG64(seed))
        for begin in range(0, len(members), block):
            part = members[begin:begin + block]
            part[:] = 1 + numpy.searchsorted([train, train + validation], draw.random(len(part)), side="right")
    return fill
