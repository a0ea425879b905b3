# SPDX-License-Identifier: Apache-2.0
"""Minibatches of sampled neighbours, as bipartite blocks for any framework.

>>> sampler = graft.Sampler(adjacency, seeds, fanout=[10, 5], layers=2, batch_size=1024)
>>> for batch in sampler:                       # one epoch; the next loop is the next epoch
...     h = features[batch.vertices]
...     for block in batch.blocks:
...         h = step(block, h)                  # [n_src, ...] to [n_dst, ...]
...     loss(h, labels[batch.seeds])"""
from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator

from . import arrays
from ._abi import ffi
from .context import Context, new, text_of
from .data import TRAIN, Dataset, as_dataset
from .errors import NotFoundError, StateError, new_error, raise_error

if TYPE_CHECKING:
    import numpy as np

_ALL = ffi.integer_const("GRAFT_SAMPLE_ALL")


@dataclass(frozen=True, eq=False)
class Block:
    """A bipartite graph in CSR format: row i < n_dst has the edges from which destination i gathers. Vertices have the
    numbers of the batch, and the destinations are the first n_dst of the n_src sources."""

    n_dst: int
    n_src: int
    indptr: np.ndarray
    """[n_dst + 1] int64"""
    indices: np.ndarray
    """[n_edges] int32, sources from 0 to n_src - 1"""
    entries: np.ndarray
    """[n_edges] int64, the position of each edge in the indices of the graph"""
    weights: np.ndarray | None
    """[n_edges] float32 of sampler="ladies"; 1 / alpha of sampler="saint" in an epoch; else None"""

    @property
    def n_edges(self) -> int:
        return len(self.indices)

    @property
    def csr(self) -> tuple[Any, ...]:
        """The matrix as (indptr, indices, weights, shape), which graft.Matrix accepts."""
        return self.indptr, self.indices, self.weights, (self.n_dst, self.n_src)

    def edge_index(self) -> np.ndarray:
        """The edges as [2, n_edges] int64, sources before destinations, as in PyTorch Geometric."""
        import numpy as np
        return np.stack([self.indices.astype(np.int64), np.repeat(np.arange(self.n_dst), np.diff(self.indptr))])


@dataclass(frozen=True, eq=False)
class Batch:
    """A minibatch: seeds, the vertices that a model reads for the seeds, and a block for each layer. All arrays are
    copies, which belong to the caller."""

    epoch: int
    index: int
    """The number of the batch in its epoch; -1 if it comes from Sampler.sample()."""
    n_seeds: int
    vertices: np.ndarray
    """[n] int64, the rows of the graph, in the order of the numbers in blocks: the sources of the first block"""
    weights: np.ndarray | None
    """[n] float32, 1 / p, of sampler="saint" in an epoch; else None"""
    blocks: list[Block]
    """The blocks of the layers in the order in which a model computes them. The sources of a block are the destinations
    of the block before it, and the destinations of the last one are the seeds."""

    @property
    def seeds(self) -> np.ndarray:
        """The seeds as [n_seeds] int64. They are the first vertices of the batch."""
        return self.vertices[:self.n_seeds]


class Sampler:
    """Minibatches of a graph. A loop over it is an epoch: each seed is in one batch, in an order that differs between
    epochs. Batches have the same bits for any number of threads.

    graph   [n, n], whatever Dataset takes as a graph: row v holds the vertices from which v gathers. Or a Dataset, a
            path or a torch_geometric.data.Data. Its arrays are borrowed and must not change
    seeds   different vertices, or bool [n]. Default: the training vertices of a data set with a split, else all
            vertices. With an empty array batches come only from sample()

    Options are those of the library, the same way as in Context: `batch_size`, `layers`, `fanout` (a list has the first
    layer first; -1: all neighbours), `sampler` ("neighbour", "ladies", "cluster:PARTS", "saint:WALK:COVERAGE"),
    `drop_last`, `seed`, `threads`, and {"sampler": "neighbour:replace", "sample.weights": "edge", "sample.ahead": 4}.
    abi/graft_sample.h describes them. A sampler has its own context unless it is given
    one."""

    def __init__(self, graph: Any, seeds: Any = None, options: dict[str, object] | None = None, *,
                 context: Context | None = None, **more: object) -> None:
        self.context = context or Context()
        for key, value in {**(options or {}), **more}.items():
            self.context[key] = value
        is_data = isinstance(graph, (Dataset, str, os.PathLike)) or hasattr(graph, "edge_index")
        self._data = as_dataset(graph, self.context) if is_data else Dataset(graph)
        self._samples = self.context.interface("graft_sample_api")
        chosen = self._read_seeds(seeds)
        self.n_seeds: int = len(chosen)
        """Seeds of an epoch."""
        self._matrix = self._prepare()
        out = ffi.new("graft_sampler **")
        self.context.call(self._samples.create, self.context.handle, self._matrix, *_pointer(chosen), out)
        self._handle = out[0]
        self._destroy = self.context.owner(self, self._samples.destroy, self._handle)
        self._calls, self._n_prefetching = threading.Condition(), 0
        self._begun: object = None  # identifies the last epoch(); older iterators have ended
        self._next_epoch, self._n_batches = 0, self._begin(0, 0)

    def _prepare(self) -> Any:
        table, out = self.context.interface("graft_mxm_api"), ffi.new("graft_matrix **")
        self.context.call(table.matrix_create, self.context.handle, self._data._struct.graph, 0, out)
        self._destroy_matrix = self.context.owner(self, table.matrix_destroy, out[0])
        return out[0]

    def _read_seeds(self, seeds: Any) -> np.ndarray:
        import numpy as np
        n = self._data.n_vertices
        if seeds is None:
            split = self._data.split
            return np.arange(n) if split is None else np.flatnonzero(split == TRAIN)
        seeds = arrays.as_array(seeds, "seeds")
        if seeds.dtype == bool:
            return np.flatnonzero(arrays.read_vector(seeds, "seeds", n, bool))
        return arrays.read_ids(seeds, "seeds")

    # ---- epochs ----

    def _begin(self, number: int, first: int) -> int:
        n_batches = ffi.new("int64_t *")
        self.context.call(self._samples.begin, self._live(), number, first, n_batches)
        return n_batches[0]

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return self._n_batches

    def __iter__(self) -> Iterator[Batch]:
        return self.epoch()

    def epoch(self, number: int | None = None, first: int = 0, workers: int = 0) -> Iterator[Batch]:
        """Begin an epoch, and iterate over its batches.

        number   of the epoch; None: the next after the last begun epoch, from 0 on
        first    the first batch; other numbers than 0 continue an interrupted epoch
        workers  threads that make batches ahead while the program uses one; "sample.ahead" batches exist at a time, so
                 this option must be 2 or more

        Iterators of earlier epochs raise StateError from now on."""
        number = self._next_epoch if number is None else number
        with self.context._lock:
            self._begin(number, first)
            self._next_epoch, self._begun = number + 1, object()
            return self._batches(self._begun, workers)

    def _batches(self, begun: object, workers: int) -> Iterator[Batch]:
        if workers <= 0:
            yield from iter(lambda: self._next(begun), None)
            return
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(workers, "graft.Sampler") as pool:
            for batch in iter(lambda: self._next(begun), None):
                for _ in range(workers):
                    pool.submit(self.prefetch)  # next() reports failures of prefetch()
                yield batch

    def _next(self, begun: object) -> Batch | None:
        """The next batch, or None at the end."""
        with self.context._lock:
            if begun is not self._begun:
                raise StateError("another epoch of this sampler began: one loop at a time")
            out = new("graft_sample_batch")
            try:
                self.context.call(self._samples.next, self._live(), out)
            except NotFoundError:
                return None
            return self._read(out)

    def prefetch(self) -> bool:
        """Make one more batch in advance, on the calling thread and in parallel with any other call. Idle threads of
        the program may call it. Returns whether a batch was made, because at most "sample.ahead" batches exist at a
        time."""
        with self._calls:
            handle = self._live()
            self._n_prefetching += 1
        try:
            made, error = ffi.new("int32_t *"), new_error()
            status = self._samples.prefetch(handle, made, error)
        finally:
            with self._calls:
                self._n_prefetching -= 1
                self._calls.notify_all()
        if status < 0:
            raise_error(status, error)
        return bool(made[0])

    # ---- batches ----

    def sample(self, seeds: Any, all: bool = False) -> Batch:
        """Sample one batch for the given seeds. The epoch does not change. With `all` the blocks have all
        in-neighbours, and option "fanout" is ignored. The batch has no weights."""
        out = new("graft_sample_batch")
        with self.context._lock:
            self.context.call(self._samples.sample, self._live(), *_pointer(self._read_seeds(seeds)),
                              _ALL if all else 0, out)
            return self._read(out)

    def _read(self, batch: Any) -> Batch:
        n = batch.n_vertices
        return Batch(batch.epoch, batch.index, batch.n_seeds, arrays.copy(batch.vertex, n, "int64"),
                     arrays.copy(batch.weight, n, "float32") if batch.weight else None,
                     [self._read_block(layer) for layer in range(batch.n_layers)])

    def _read_block(self, layer: int) -> Block:
        one = new("graft_sample_block")
        self.context.call(self._samples.block, self._handle, layer, one)
        return Block(one.n_dst, one.n_src, arrays.copy(one.row_ptr, one.n_dst + 1, "int64"),
                     arrays.copy(one.col_idx, one.n_edges, "int32"), arrays.copy(one.entry, one.n_edges, "int64"),
                     arrays.copy(one.weight, one.n_edges, "float32") if one.weight else None)

    # ---- reports, and the end ----

    def explain(self) -> str:
        """The sampler in a few lines: batches, fan-outs, memory."""
        text = ffi.new("char[]", 4096)
        self.context.call(self._samples.explain, self._live(), text, 4096)
        return text_of(text)

    def _live(self) -> Any:
        if not self._destroy.alive:
            raise StateError("the sampler was closed")
        return self._handle

    def close(self) -> None:
        """Free the sampler now. Its batches stay valid."""
        with self.context._lock, self._calls:
            self._calls.wait_for(lambda: self._n_prefetching == 0)
            self._destroy()
            self._destroy_matrix()

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<graft.Sampler of {self.n_seeds} seeds in {self._n_batches} batches>"


def _pointer(seeds: np.ndarray) -> tuple[Any, int]:
    """The seeds for the library. The view keeps the array alive."""
    return ffi.from_buffer("int64_t[]", seeds) if len(seeds) else ffi.NULL, len(seeds)
