# SPDX-License-Identifier: Apache-2.0
"""Data sets: a graph with features, labels and a split, from arrays or from files."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import arrays
from ._abi import ffi
from .context import Collective, Context, default_context, new, path_bytes
from .errors import ArgumentError
from .ranks import before_graph

if TYPE_CHECKING:
    import numpy as np

    from .ranks import Ranks

NONE, TRAIN, VALIDATION, TEST = range(4)
_LAST = 2**31 - 1  # the largest class that a label can name
_SLICE = ffi.integer_const("GRAFT_DATASET_SLICE")


class Dataset:
    """A graph with data of its vertices. The arrays are borrowed if their types allow it (float32, and int32 or int64
    for the graph): they must not change while a trainer uses them, see Trainer.update().

    graph          [n, n], whatever Matrix takes, or a Matrix: row v holds the vertices from which v gathers
    features       [n, f] float32; or a sparse matrix of scipy
    labels         [n] classes from 0 on, -1 where unknown
    targets        [n, c] 0 or 1, for several classes for each vertex; or float numbers, for a regression, NaN where
                   unknown
    split          [n] 0 none, 1 training, 2 validation, 3 test; or (train, validation, test), three arrays of bool
    n_classes      default: the number of classes in `labels` and `targets`
    edge_features  [edges, d] float32, in the order of the entries of the graph

    Over ranks a data set has the rows of a slice: `graph` is [n_slice, n] and begins with vertex `first_vertex`.
    """

    def __init__(self, graph: Any, features: Any = None, labels: Any = None, split: Any = None, *, targets: Any = None,
                 n_classes: int | None = None, edge_features: Any = None, first_vertex: int | None = None) -> None:
        csr = getattr(graph, "_arrays", None) or arrays.read_csr(graph, "graph", "float32")
        self.n_vertices, self.n_rows = csr.shape[1], csr.shape[0]
        self._keep: list[Any] = [csr]
        self._struct = new("graft_dataset", n_vertices=self.n_vertices, n_slice=self.n_rows)
        self._struct.graph = self._kept(csr.view())
        if first_vertex is not None:
            self._struct.flags, self._struct.first_vertex = _SLICE, first_vertex
        elif self.n_rows != self.n_vertices:
            raise ArgumentError(f"graph is {self.n_rows} x {self.n_vertices}, expected a square matrix, or "
                                "`first_vertex` of a slice")
        self._set_features(features)
        self._set_labels(labels, targets, n_classes)
        if split is not None:
            self._struct.split = ffi.cast("uint8_t *", arrays.pointer(self._kept(self._read_split(split))))
        if edge_features is not None:
            rows = self._kept(self._read_floats(edge_features, "edge_features", csr.indices.shape[0]))
            self._struct.edge_features = self._kept(arrays.view_dense(rows))

    def _kept(self, thing: Any) -> Any:
        self._keep.append(thing)
        return thing

    def _read_floats(self, x: Any, name: str, length: int) -> np.ndarray:
        x = arrays.read_dense(x, name)
        if x.dtype.name != "float32":
            arrays.warn_once(f"{name} has type {x.dtype.name} and is copied to float32")
            x = x.astype("float32")
        if x.shape[0] != length:
            raise ArgumentError(f"{name} has {x.shape[0]} rows, expected {length}")
        return x

    def _set_features(self, features: Any) -> None:
        if features is None:
            return
        if hasattr(features, "format") or str(getattr(features, "layout", "")) == "torch.sparse_csr":
            sparse = self._kept(arrays.read_csr(features, "features", "float32"))
            if sparse.shape[0] != self.n_rows:
                raise ArgumentError(f"features have {sparse.shape[0]} rows, expected {self.n_rows}")
            self._struct.sparse_features, self._struct.n_features = self._kept(sparse.view()), sparse.shape[1]
            return
        dense = self._kept(self._read_floats(features, "features", self.n_rows))
        self._struct.features, self._struct.n_features = self._kept(arrays.view_dense(dense)), dense.shape[1]

    def _set_labels(self, labels: Any, targets: Any, n_classes: int | None) -> None:
        import numpy as np
        if labels is not None:
            labels = self._kept(arrays.read_whole_vector(labels, "labels", self.n_rows, np.int32, -1, _LAST))
            self._struct.labels = ffi.cast("int32_t *", arrays.pointer(labels))
            self._struct.n_classes = int(labels.max(initial=-1)) + 1
        if targets is not None:
            targets = arrays.as_array(targets, "targets")
            if targets.dtype.kind == "f":
                targets = self._kept(self._read_floats(targets, "targets", self.n_rows))
                self._struct.float_targets = self._kept(arrays.view_dense(targets))
            else:
                if targets.ndim != 2 or targets.shape[0] != self.n_rows:
                    raise ArgumentError(f"targets have shape {targets.shape}, expected ({self.n_rows}, classes)")
                targets = self._kept(arrays.read_whole(targets, "targets", np.uint8, 0, 1))
                self._struct.targets = ffi.cast("uint8_t *", arrays.pointer(targets))
            self._struct.n_classes = targets.shape[1]
        if n_classes is not None:
            self._struct.n_classes = n_classes

    def _read_split(self, split: Any) -> np.ndarray:
        import numpy as np
        if not isinstance(split, tuple):
            return arrays.read_whole_vector(split, "split", self.n_rows, np.uint8, NONE, TEST)
        out = np.zeros(self.n_rows, np.uint8)
        for kind, name, mask in zip((TRAIN, VALIDATION, TEST), ("training", "validation", "test"), split):
            if mask is not None:
                out[arrays.read_whole_vector(mask, f"the {name} part of split", self.n_rows, bool, 0, 1)] = kind
        return out

    @classmethod
    def from_pyg(cls, data: Any) -> Dataset:
        """The arrays of a torch_geometric.data.Data, if present: x, edge_index, edge_weight as values of the graph, the
        three masks, and y: integers [n] or [n, 1] are labels, other arrays targets."""
        found = {name: _plain(getattr(data, name, None)) for name in (
            "x", "edge_index", "edge_weight", "y", "train_mask", "val_mask", "test_mask")}
        edges, weights, y = found["edge_index"], found["edge_weight"], found["y"]
        if edges is None or edges.ndim != 2 or edges.shape[0] != 2:
            what = "no edge_index" if edges is None else f"an edge_index of shape {tuple(edges.shape)}"
            raise ArgumentError(f"the Data has {what}, expected an edge_index of shape (2, edges)")
        n = int(data.num_nodes)
        if weights is not None and weights.ndim == 2 and weights.shape[1] == 1:
            weights = weights[:, 0]
        graph = arrays.csr_of_edges(edges[0], edges[1], (n, n), weights, "float32")
        if y is not None and y.ndim == 2 and y.shape[1] == 1 and not y.is_floating_point():
            y = y[:, 0]
        names = {"labels" if y is None or y.ndim == 1 and not y.is_floating_point() else "targets": y}
        split = tuple(found[name + "_mask"] for name in ("train", "val", "test"))
        return cls(graph, found["x"], **names, split=None if all(mask is None for mask in split) else split)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, context: Context | None = None,
             ranks: Ranks | None = None) -> Dataset:
        """Read a folder of .npy files or a Matrix Market file, described in abi/graft_data.h; over ranks each rank
        reads its slice."""
        context = ranks.context if ranks is not None else context or default_context()
        table, out = context.interface("graft_data_api"), ffi.new("graft_data **")
        transport = ranks.transport if ranks is not None else ffi.NULL
        with Collective(context, table.open_slice, context.handle, transport, ffi.NULL, ffi.NULL) as call:
            call(context.handle, transport, path_bytes(path), out)
        self = object.__new__(cls)
        self._struct = new("graft_dataset")
        ffi.memmove(self._struct, table.view(out[0]), ffi.sizeof("graft_dataset"))
        self.n_vertices = self._struct.n_vertices
        self.n_rows = self._struct.n_slice if self._struct.flags & _SLICE else self.n_vertices
        self._keep = [context]
        context.owner(self, table.close, out[0])
        return self

    @property
    def n_features(self) -> int:
        return self._struct.n_features

    @property
    def n_classes(self) -> int:
        """The number of classes, or the number of columns of float targets."""
        return self._struct.n_classes

    def _copy(self, data: Any, dtype: str) -> np.ndarray | None:
        import numpy as np
        if not data:
            return None
        return np.frombuffer(ffi.buffer(data, self.n_rows * np.dtype(dtype).itemsize), dtype).copy()

    @property
    def labels(self) -> np.ndarray | None:
        """[n] the classes, or None: a copy."""
        return self._copy(self._struct.labels, "int32")

    @property
    def split(self) -> np.ndarray | None:
        """[n] 0 none, 1 training, 2 validation, 3 test; or None: a copy."""
        return self._copy(self._struct.split, "uint8")

    def __repr__(self) -> str:
        return (f"<graft.Dataset {self.n_vertices} vertices, {self.n_features} features, {self.n_classes} classes"
                f"{f', {self.n_rows} rows here' if self.n_rows != self.n_vertices else ''}>")


def _plain(x: Any) -> Any:
    """Detach a tensor from its history. Other objects are returned unchanged."""
    return x.detach() if hasattr(x, "detach") else x


def as_dataset(data: Any, context: Context | None = None, ranks: Ranks | None = None) -> Dataset:
    """Make a Dataset from a Dataset, a path, or a torch_geometric.data.Data."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        return Dataset.open(data, context=context, ranks=ranks)
    with before_graph(ranks):
        if hasattr(data, "edge_index"):
            return Dataset.from_pyg(data)
        raise ArgumentError(f"a {type(data).__name__} is no data set: expected a graft.Dataset, a path or a "
                            "torch_geometric.data.Data")
