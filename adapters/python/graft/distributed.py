# SPDX-License-Identifier: Apache-2.0
"""Graphs over ranks, for programs that aggregate, or compute with rows of neighbours, themselves.

>>> graph = graft.Graph(ranks, rows, first_row=first)   # rows [n_slice, n] of this rank
>>> plan = graft.Plan(graph)
>>> sums = plan(x)                                      # x [n_owned, width]: the rows of graph.owned()"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import arrays
from ._abi import ffi
from .context import Collective, Context, default_context, new, text_of, to_dict
from .data import TRAIN, Dataset
from .errors import ArgumentError, StateError
from .product import SEMIRINGS

if TYPE_CHECKING:
    import numpy as np

    from .ranks import Ranks

_TRANSPOSED = ffi.integer_const("GRAFT_PLAN_TRANSPOSED")
_FLAGS = {name: ffi.integer_const("GRAFT_AGGREGATE_" + name.upper())
          for name in ("transpose", "accumulate", "exact", "stateless", "synchronous")}
_SUM, _EXACT = ffi.integer_const("GRAFT_HALO_SUM"), ffi.integer_const("GRAFT_HALO_EXACT")
_DIRECTIONS = {name: ffi.integer_const("GRAFT_TO_" + name.upper()) for name in ("owners", "slices")}


class Graph:
    """A graph in which each vertex has an owner, made from the slices of all ranks. Collective.

    ranks      None: one process
    rows       [n_slice, n] whatever Matrix takes: row v holds the vertices from which vertex first_row + v gathers; or
               a Dataset
    owner      [n_slice] the rank that will own each vertex; else option "partition" decides
    dtype      of the values, "float32" or "float64"
    """

    def __init__(self, ranks: Ranks | None, rows: Any, *, first_row: int = 0, owner: Any = None,
                 dtype: str | None = None, context: Context | None = None) -> None:
        self.ranks, self.context = ranks, ranks.context if ranks is not None else context or default_context()
        self._graphs, out = self.context.interface("graft_graph_api"), ffi.new("graft_graph **")
        over = self.context.handle, ranks.transport if ranks is not None else ffi.NULL
        with Collective(self.context, self._graphs.create, *over, ffi.NULL, out) as call:
            part, kept = self._read_dataset(rows) if isinstance(rows, Dataset) else self._read(rows, first_row, dtype)
            if owner is not None:
                owner = arrays.read_vector(owner, "owner", part.rows.n_rows, "int32")
                part.owner = ffi.cast("int32_t *", arrays.pointer(owner))
            call(*over, part, out)
        self._handle = out[0]
        self.rank, self.n_slice = ranks.rank if ranks is not None else 0, part.rows.n_rows
        self._destroy = self.context.owner(self, self._graphs.destroy, self._handle)
        self.n_owned: int = self.info(self.rank)["n_owned"]
        del kept

    def _read_dataset(self, data: Dataset) -> tuple[Any, Any]:
        """Make a graft_slice, and return it with the objects to which it points."""
        struct, split = data._struct, data.split
        self.dtype = "float32" if struct.graph.values else None
        part = new("graft_slice", n_vertices=struct.n_vertices, first_row=struct.first_vertex, rows=struct.graph)
        if split is not None:
            split = ffi.from_buffer("uint8_t[]", (split == TRAIN).view("uint8"))
            part.train_mask = split
        return part, split

    def _read(self, rows: Any, first_row: int, dtype: str | None) -> tuple[Any, Any]:
        kept = arrays.read_csr(rows, "rows", arrays.read_dtype(dtype))
        self.dtype, view = kept.dtype_name, kept.view()
        return new("graft_slice", n_vertices=kept.shape[1], first_row=first_row, rows=view), (kept, view)

    def info(self, rank: int = -1) -> dict[str, Any]:
        """Vertices, edges and cut edges of a rank, or of all ranks."""
        out = new("graft_graph_info")
        self.context.call(self._graphs.info, self._handle, rank, out)
        return to_dict(out)

    def owned(self) -> np.ndarray:
        """[n_owned] the vertices of this rank, ascending: the rows of its arrays. A copy."""
        return arrays.copy(self._graphs.owned(self._handle), self.n_owned, "int64")

    def redistribute(self, x: Any, to: str = "owners") -> np.ndarray:
        """Rows of any type from the order of slices to the order of owners, or with "slices" back. Collective."""
        import numpy as np
        with Collective(self.context, self._graphs.redistribute, self._handle, ffi.NULL) as call:
            x = np.ascontiguousarray(arrays.as_array(x, "x"))
            if to not in _DIRECTIONS:
                raise ArgumentError(f"to is '{to}', expected one of {', '.join(_DIRECTIONS)}")
            n_from, n_to = (self.n_slice, self.n_owned) if to == "owners" else (self.n_owned, self.n_slice)
            if x.ndim == 0 or len(x) != n_from or x.dtype.hasobject:
                raise ArgumentError(f"x has shape {x.shape} and type {x.dtype}, expected {n_from} rows without objects")
            out = np.empty((n_to, *x.shape[1:]), x.dtype)
            bytes = x.dtype.itemsize * int(np.prod(x.shape[1:], dtype=np.int64))
            args = new("graft_redistribution", direction=_DIRECTIONS[to], row_bytes=bytes, from_stride=bytes,
                       to_stride=bytes, to=arrays.pointer(out))
            setattr(args, "from", arrays.pointer(x))
            call(self._handle, args)
        return out

    def update_values(self, values: Any) -> None:
        """New values for the edges of this rank's slice, in their order; plans and halos use them from then on.
        Collective."""
        with Collective(self.context, self._graphs.update_values, self._handle, ffi.new("graft_dense *")) as call:
            if self.dtype is None:
                raise ArgumentError("this graph was made without values, and takes none")
            values = arrays.as_array(values, "values")
            values = arrays.read_vector(values, "values", values.size, self.dtype)
            call(self._handle, new("graft_dense", dtype=arrays._FLOATS[self.dtype], n_rows=len(values), n_cols=1,
                                   stride=1, data=arrays.pointer(values)))

    def explain(self) -> str:
        text = ffi.new("char[]", 16384)
        self.context.call(self._graphs.explain, self._handle, text, 16384)
        return text_of(text)

    def close(self) -> None:
        self._destroy()


def _rows(x: Any, name: str, n_rows: int, writes: bool = False) -> np.ndarray:
    """Describe a matrix with a row for each vertex, as the library reads or writes it."""
    x = arrays.as_array(x, name) if writes else arrays.read_dense(x, name)
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2:
        raise ArgumentError(f"{name} has {x.ndim} dimensions, expected 2, or 1 for a single column")
    if x.shape[0] != n_rows:
        raise ArgumentError(f"{name} has {x.shape[0]} rows, expected {n_rows}, one for each vertex")
    return arrays.check_output(x, name, x.shape, ("float32", "float64")) if writes else x


def _end(of: Plan | Halo, function: Any) -> Any:
    """End a pass and return the result. Afterwards its arrays are no longer borrowed."""
    begun, of._begun = of._begun, None
    try:
        of._pass.end(of.context.call, function, of._handle)
    except StateError:  # for example because another call runs in the context; then the pass is not ended
        of._begun = begun
        raise
    return begun[0]


class Plan:
    """Products of a graph with rows of its vertices: ``plan(x)``, or begin() and end() with other work between them.
    Collective. With transposed=True also products with the transpose. `layers`: with stale rows or adaptive bits, the
    number of layers of a model."""

    def __init__(self, graph: Graph, *, transposed: bool = False, width: int = 0, dtype: str | None = None,
                 layers: int = 0) -> None:
        self.graph, self.context = graph, graph.context
        self._aggregate = self.context.interface("graft_aggregate_api")
        out = ffi.new("graft_plan **")
        with Collective(self.context, self._aggregate.create, graph._handle, ffi.NULL, ffi.NULL) as call:
            dtype = graph.dtype or arrays.read_dtype(dtype)
            call(graph._handle, new("graft_plan_args", flags=_TRANSPOSED if transposed else 0, width=width,
                                    layers=layers, dtype=0 if dtype is None else arrays._FLOATS[dtype]), out)
        self._handle, self._begun = out[0], None
        self._refused = new("graft_aggregate_args")  # arguments without x and out, which the library refuses
        self._pass = Collective(self.context, self._aggregate.begin, self._handle, self._refused,
                                ending=(self._aggregate.end, self._handle))
        self._destroy = self.context.owner(self, self._aggregate.destroy, self._handle)

    def begin(self, x: Any, out: Any = None, semiring: str = "plus_times", *, row_scale: Any = None, layer: int = 0,
              epoch: int = 0, threads: int = 0, **flags: bool) -> None:
        """Send rows, and compute with the rows of this rank. `x` and `out` [n_owned, width] are borrowed until end().
        Flags: transpose, accumulate, exact (not quantized), stateless, synchronous."""
        self._refused.flags = 0
        with self._pass as call:
            # The flags are set also in a pass that is refused, because they say whether begin() waits: see
            # graft_aggregate_api.
            self._refused.flags = sum(_FLAGS.get(name, 0) for name, is_set in flags.items() if is_set)
            if semiring not in SEMIRINGS:
                raise ArgumentError(f"semiring is '{semiring}', expected one of {', '.join(SEMIRINGS)}")
            for name in flags:
                if name not in _FLAGS:
                    raise ArgumentError(f"flag '{name}' is unknown, expected some of {', '.join(_FLAGS)}")
            is_vector = getattr(x, "ndim", 2) == 1
            x = _rows(x, "x", self.graph.n_owned)
            dtype = "float32" if x.dtype.name == "bfloat16" else x.dtype.name
            if out is None:
                out = arrays.new_matrix(*x.shape, dtype)
                out = out[:, 0] if is_vector else out
            written = _rows(out, "out", self.graph.n_owned, writes=True)
            args = new("graft_aggregate_args", semiring=SEMIRINGS[semiring], layer=layer, epoch=epoch, threads=threads,
                       flags=self._refused.flags)
            views = [arrays.view_dense(x), arrays.view_dense(written)]
            args.x, args.out = views
            if row_scale is not None:
                row_scale = arrays.read_vector(row_scale, "row_scale", self.graph.n_owned, dtype)
                args.row_scale = arrays.pointer(row_scale)
            call(self._handle, args)
            self._begun = out, (x, written, row_scale)

    def end(self) -> np.ndarray:
        """Wait for the rows of other ranks, and return the result."""
        return _end(self, self._aggregate.end)

    def __call__(self, x: Any, out: Any = None, semiring: str = "plus_times", **more: Any) -> np.ndarray:
        self.begin(x, out, semiring, **more)
        return self.end()

    def progress(self) -> bool:
        """Whether all messages have arrived, so that end() does not wait."""
        arrived = ffi.new("int32_t *")
        self.context.call(self._aggregate.progress, self._handle, arrived)
        return bool(arrived[0])

    def assign_bits(self) -> None:
        """Choose new bit widths of rows, with option "halo.codec": "adaptive". Collective."""
        self.context.call(self._aggregate.assign_bits, self._handle)

    def info(self, rank: int = -1) -> dict[str, Any]:
        """Rows, messages, bytes and seconds of a rank, or of all ranks."""
        out = new("graft_plan_info")
        self.context.call(self._aggregate.info, self._handle, rank, out)
        return to_dict(out)

    def explain(self) -> str:
        text = ffi.new("char[]", 16384)
        self.context.call(self._aggregate.explain, self._handle, text, 16384)
        return text_of(text)

    def close(self) -> None:
        self._destroy()


class Halo:
    """The rows of other ranks from which a rank's vertices gather. Collective."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.context = graph, graph.context
        self._halos = self.context.interface("graft_halo_api")
        out = ffi.new("graft_halo **")
        self.context.call(self._halos.create, graph._handle, out)
        self._handle, self._begun = out[0], None
        self._pass = Collective(self.context, self._halos.begin, self._handle, ffi.NULL,
                                ending=(self._halos.end, self._handle))
        self._destroy = self.context.owner(self, self._halos.destroy, self._handle)

    def _info(self) -> Any:
        raw = new("graft_halo_info")
        self.context.call(self._halos.info, self._handle, raw)
        return raw

    def info(self) -> dict[str, Any]:
        """Copies of the arrays: `vertex` has the vertex of each row. Rows receive_start[i] to receive_start[i + 1] -
        1 are received from rank neighbour[i]. `send_row` has in the same way the numbers of owned vertices that are
        sent to that rank. `bytes` and `passes` are counters."""
        raw = self._info()
        n = raw.n_neighbours
        return {"vertex": arrays.copy(raw.vertex, raw.n_halo, "int64"),
                "neighbour": arrays.copy(raw.neighbour, n, "int32"),
                "receive_start": arrays.copy(raw.receive_start, n + 1, "int64"),
                "send_start": arrays.copy(raw.send_start, n + 1, "int64"),
                "send_row": arrays.copy(raw.send_row, raw.n_sent, "int32"), "bytes": raw.bytes, "passes": raw.passes}

    def matrix(self) -> tuple[Any, ...]:
        """The rows of this rank for Matrix: (indptr, indices, values or None, shape), copies. The first n_owned columns
        are the owned vertices, and the others the rows of the halo."""
        raw = new("graft_csr")
        self.context.call(self._halos.matrix, self._handle, raw)
        indptr = arrays.copy(raw.row_ptr, raw.n_rows + 1, "int64")
        values = arrays.copy(raw.values, int(indptr[-1]), self.graph.dtype) if raw.values else None
        return indptr, arrays.copy(raw.col_idx, int(indptr[-1]), "int32"), values, (raw.n_rows, raw.n_cols)

    def begin(self, owned: Any, halo: Any = None, *, exact: bool = False) -> None:
        """Send rows of `owned` [n_owned, width]. end() returns the rows of the halo, in `halo` if it is given."""
        with self._pass as call:
            owned = _rows(owned, "owned", self.graph.n_owned)
            if halo is None:
                halo = arrays.new_matrix(self._info().n_halo, owned.shape[1], owned.dtype)
            self._begin(call, owned, _rows(halo, "halo", self._info().n_halo, writes=True), halo, 0, exact)

    def begin_sum(self, owned: Any, halo: Any, *, exact: bool = False) -> None:
        """Send rows of `halo` to their owners. end() adds them to rows of `owned`, in place, and returns `owned`."""
        with self._pass as call:
            written = _rows(owned, "owned", self.graph.n_owned, writes=True)
            self._begin(call, written, _rows(halo, "halo", self._info().n_halo), owned, _SUM, exact)

    def _begin(self, call: Collective, owned: np.ndarray, halo: np.ndarray, result: Any, flags: int,
               exact: bool) -> None:
        args = new("graft_halo_args", flags=flags | (_EXACT if exact else 0))
        views = [arrays.view_dense(owned), arrays.view_dense(halo)]
        args.owned, args.halo = views
        call(self._handle, args)
        self._begun = result, (owned, halo)

    def end(self) -> np.ndarray:
        return _end(self, self._halos.end)

    def exchange(self, owned: Any, halo: Any = None, *, exact: bool = False) -> np.ndarray:
        """Call begin() and end()."""
        self.begin(owned, halo, exact=exact)
        return self.end()

    def progress(self) -> bool:
        """Whether all messages have arrived, so that end() does not wait."""
        arrived = ffi.new("int32_t *")
        self.context.call(self._halos.progress, self._handle, arrived)
        return bool(arrived[0])

    def close(self) -> None:
        self._destroy()
