# SPDX-License-Identifier: Apache-2.0
"""Networks on the meshes of simulations. They are trained while the solver runs, and called within its time step."""
from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import arrays
from ._abi import ffi
from .context import Collective, Context, new, path_bytes, text_of, to_dict
from .errors import ArgumentError
from .training import read_item, write_item

if TYPE_CHECKING:
    import numpy as np

    from .ranks import Ranks

_KINDS = {name: ffi.integer_const("GRAFT_MESH_" + name.upper()) for name in ("ghosts", "shared")}
_CELLS = {name: ffi.integer_const("GRAFT_CELL_" + name.upper()) for name in
          ("line", "triangle", "quad", "tetra", "hexahedron", "wedge", "pyramid")}
_CORNERS = {"line": 2, "triangle": 3, "quad": 4, "tetra": 4, "hexahedron": 8, "wedge": 6, "pyramid": 5}
_PREDICTS = {name: ffi.integer_const("GRAFT_PREDICTS_" + name.upper()) for name in ("value", "change")}
_FIRST = ffi.integer_const("GRAFT_STREAM_FIRST")
_REASONS = {ffi.integer_const("GRAFT_STREAM_" + name.upper()): name for name in
            ("budget_used", "no_pairs", "budget_small", "steps_done")}


def _word(words: dict[str, int], word: str, name: str) -> int:
    if word not in words:
        raise ArgumentError(f"{name} is '{word}', expected one of {', '.join(words)}")
    return words[word]


def _types(cell_types: Any) -> np.ndarray:
    """The numbers of cell types, each of which is given by a word or by its number."""
    import numpy as np
    types = np.asarray(cell_types)
    if types.ndim != 1 or types.dtype.kind not in "iuUS" + "f" * (types.size == 0):
        raise ArgumentError(f"cell_types has type {types.dtype} and shape {types.shape}, expected a word or a number "
                            "for each cell")
    if types.dtype.kind in "US":
        words, places = np.unique(types.astype(str), return_inverse=True)
        return np.array([_word(_CELLS, str(word), "cell_types") for word in words], np.uint8)[places]
    wrong = np.flatnonzero(~np.isin(types, list(_CELLS.values())))
    if len(wrong) > 0:
        legal = ", ".join(f"{number} ({word})" for word, number in _CELLS.items())
        raise ArgumentError(f"cell_types[{wrong[0]}] is {types[wrong[0]]}, expected one of {legal}")
    return np.ascontiguousarray(types, np.uint8)


def _integers(x: Any, name: str, *shape: int | None) -> np.ndarray:
    """Read a contiguous array of 32- or 64-bit integers of this shape. None stands for any number."""
    import numpy as np
    x = np.asarray(x)
    if x.dtype.kind not in "iu":
        raise ArgumentError(f"{name} has type {x.dtype}, expected integers")
    if x.ndim != len(shape) or any(wanted not in (None, n) for wanted, n in zip(shape, x.shape)):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ArgumentError(f"{name} has shape {x.shape}, expected [{wanted}]")
    return np.ascontiguousarray(x, x.dtype if x.dtype.name in arrays._INTEGERS and x.dtype.isnative else np.int64)


def _field(x: Any, name: str, writes: bool = False) -> tuple[Any, Any]:
    """Make a graft_field of an array of float32 or float64 with any strides, without a copy. The result is the field
    and the array."""
    import numpy as np
    x = np.asarray(x)
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or x.dtype.name not in ("float32", "float64") or not x.dtype.isnative:
        raise ArgumentError(f"{name} has type {x.dtype} and {x.ndim} dimensions, expected float32 or float64, and 2 "
                            "dimensions, or 1 for a single column")
    strides = [stride // x.itemsize if n > 1 else 1 for stride, n in zip(x.strides, x.shape)]
    if not all(n < 2 or (stride > 0 and stride % x.itemsize == 0) for stride, n in zip(x.strides, x.shape)):
        raise ArgumentError(f"{name} has strides of {x.strides} bytes, expected positive multiples of {x.itemsize}")
    if writes and not x.flags.writeable:
        raise ArgumentError(f"{name} is read-only")
    if x.shape[1] == 1:
        strides[1] = 1
    return new("graft_field", dtype=arrays._FLOATS[x.dtype.name], n_rows=x.shape[0], n_columns=x.shape[1],
               row_stride=strides[0], column_stride=strides[1], data=arrays.pointer(x)), x


class Mesh:
    """The mesh of a simulation, or its part on this rank.

    coordinates  [n, 1 to 3]
    cells        [m, k] nodes of cells of one type, with `cell_type`: "triangle" and so on; or of mixed cells the nodes
                 of one cell after the other, with `cell_types`: [m] words, or the numbers that VTK gives them; or
    edges        (sources, targets), directed edges
    ids          [n] global ids of the nodes; not needed in one process
    kind         "ghosts": each node has one owner, in `owners` or the lowest rank with the node; "shared": a node on
                 several ranks has a row on each of them
    period       of periodic coordinates, else 0
    """

    def __init__(self, coordinates: Any, cells: Any = None, cell_type: str = "triangle", *, cell_types: Any = None,
                 edges: Any = None, ids: Any = None, kind: str = "ghosts", owners: Any = None,
                 period: Sequence[float] = (), context: Context | None = None, ranks: Ranks | None = None,
                 **options: object) -> None:
        self.context = ranks.context if ranks is not None else context or Context()
        self._meshes, out = self.context.interface("graft_mesh_api"), ffi.new("graft_mesh **")
        over = self.context.handle, ranks.transport if ranks is not None else ffi.NULL
        with Collective(self.context, self._meshes.create, *over, ffi.NULL, out) as call:
            for key, value in options.items():
                self.context[key] = value
            field, coordinates = _field(coordinates, "coordinates")
            if len(period) > 3:
                raise ArgumentError(f"period has {len(period)} elements, expected one for each coordinate, 3 at most")
            args = new("graft_mesh_args", kind=_word(_KINDS, kind, "kind"), dim=coordinates.shape[1],
                       n_rows=len(coordinates), coordinates=field, period=list(period))
            kept = [field, coordinates, *self._connect(args, cells, cell_type, cell_types, edges),
                    *self._number(args, ids, owners)]
            call(*over, args, out)
            del kept
        self.n_rows, self._handle = len(coordinates), out[0]
        self.n_ranks = ranks.n_ranks if ranks is not None else 1
        self._destroy = self.context.owner(self, self._meshes.destroy, self._handle)

    @staticmethod
    def _connect(args: Any, cells: Any, cell_type: str, cell_types: Any, edges: Any) -> list[Any]:
        import numpy as np
        if (cells is None) == (edges is None) or (cells is None and cell_types is not None):
            raise ArgumentError("a mesh is given cells or edges, and not both")
        if cells is not None:
            args.cell_type = _word(_CELLS, cell_type, "cell_type")
            types = None if cell_types is None else _types(cell_types)
            cells = _integers(cells, "cells", *((None, _CORNERS[cell_type]) if types is None else (None,)))
            args.n_cells = len(cells)
            if types is not None:
                wanted = sum(int((types == number).sum()) * _CORNERS[word] for word, number in _CELLS.items())
                if wanted != len(cells):
                    raise ArgumentError(f"cells has {len(cells)} nodes, expected {wanted}, those of the {len(types)} "
                                        "cells of cell_types")
                args.n_cells, args.cell_types = len(types), ffi.cast("uint8_t *", arrays.pointer(types))
            args.index_type, args.cell_nodes = arrays._INTEGERS[cells.dtype.name], arrays.pointer(cells)
            return [cells, types]
        ends = [_integers(end, "edges", None) for end in edges]
        if len(ends) != 2 or len(ends[0]) != len(ends[1]):
            raise ArgumentError("edges are two arrays of the same length, sources and targets")
        if ends[0].dtype != ends[1].dtype:
            ends = [end.astype(np.int64) for end in ends]
        args.n_edges, args.index_type = len(ends[0]), arrays._INTEGERS[ends[0].dtype.name]
        args.edge_sources, args.edge_targets = (arrays.pointer(end) for end in ends)
        return ends

    @staticmethod
    def _number(args: Any, ids: Any, owners: Any) -> list[Any]:
        import numpy as np
        kept = []
        if ids is not None:
            ids = _integers(ids, "ids", args.n_rows)
            args.ids, args.id_type = arrays.pointer(ids), arrays._INTEGERS[ids.dtype.name]
            kept.append(ids)
        if owners is not None:
            owners = arrays.read_vector(owners, "owners", args.n_rows, np.int32)
            args.owners = ffi.cast("int32_t *", arrays.pointer(owners))
            kept.append(owners)
        return kept

    def info(self, rank: int = -1) -> dict[str, Any]:
        """Nodes, edges, halo and bytes of a rank, or of all ranks."""
        out = new("graft_mesh_info")
        self.context.call(self._meshes.info, self._handle, rank, out)
        return to_dict(out)

    def view(self) -> dict[str, np.ndarray]:
        """Copies of the arrays of this rank, for programs that check them or compute with them.

        node_of      [n_rows] the node of each row; -1: a ghost
        row_of       [n_nodes] the row of each node that is read
        id           [n_nodes]
        node_weight  [n_nodes] one over the number of ranks that have the node
        row_ptr      [n_nodes + 1] edges to node i are row_ptr[i] to row_ptr[i + 1] - 1
        source       [n_edges] nodes; from n_nodes on, row source - n_nodes of the halo
        edge_ranks   [n_edges] the number of ranks that have the edge
        position     [n_sources, dim] coordinates of nodes and of rows of the halo
        halo_start   [ranks + 1] rows of the halo from rank q are halo_start[q] to halo_start[q + 1] - 1
        halo_node    [n_halo] the number of each row of the halo among the nodes of its owner
        """
        raw = new("graft_mesh_view")
        self.context.call(self._meshes.view, self._handle, raw)
        of = {name: arrays.copy(getattr(raw, name), count, dtype) for name, count, dtype in (
            ("node_of", raw.n_rows, "int32"), ("row_of", raw.n_nodes, "int32"), ("id", raw.n_nodes, "int64"),
            ("node_weight", raw.n_nodes, "float64"), ("row_ptr", raw.n_nodes + 1, "int64"),
            ("source", raw.n_edges, "int32"), ("edge_ranks", raw.n_edges, "int32"),
            ("position", raw.n_sources * raw.dim, "float64"), ("halo_start", self.n_ranks + 1, "int64"),
            ("halo_node", raw.n_halo, "int32"))}
        for name in ("node_weight", "edge_ranks"):
            if not getattr(raw, name):
                of[name][:] = 1
        of["position"] = of["position"].reshape(raw.n_sources, raw.dim)
        return of

    def explain(self) -> str:
        text = ffi.new("char[]", 16384)
        self.context.call(self._meshes.explain, self._handle, text, 16384)
        return text_of(text)

    def close(self) -> None:
        self._destroy()


class Network:
    """Message passing with edge MLPs on a mesh (MeshGraphNets): ``Network(mesh, 2, 2, {"layers": 6})``.

    n_in, n_out  columns of the input state, and of the prediction: the "value" at the later time, or its "change" from
                 the first columns of the input
    constant     [n, any] more inputs, such as a one-hot type of node
    is_free      [n] False: a boundary node, which keeps its value and has no loss
    loss_weight  [n] of nodes in the loss
    """

    def __init__(self, mesh: Mesh, n_in: int, n_out: int, options: dict[str, object] | None = None, *,
                 predicts: str = "change", constant: Any = None, is_free: Any = None, loss_weight: Any = None,
                 **more: object) -> None:
        import numpy as np
        self.mesh, self.context, self.n_in, self.n_out = mesh, mesh.context, n_in, n_out
        self._networks, out = self.context.interface("graft_network_api"), ffi.new("graft_network **")
        with Collective(self.context, self._networks.create, mesh._handle, ffi.NULL, out) as call:
            for key, value in {**(options or {}), **more}.items():
                self.context[key] = value
            args = new("graft_network_args", predicts=_word(_PREDICTS, predicts, "predicts"), n_in=n_in, n_out=n_out)
            if constant is not None:
                field, constant = _field(constant, "constant")
                args.constant = field
            if is_free is not None:
                is_free = arrays.read_vector(is_free, "is_free", mesh.n_rows, np.uint8)
                args.is_free = ffi.cast("uint8_t *", arrays.pointer(is_free))
            if loss_weight is not None:
                loss_weight = arrays.read_vector(loss_weight, "loss_weight", mesh.n_rows, np.float64)
                args.loss_weight = ffi.cast("double *", arrays.pointer(loss_weight))
            call(mesh._handle, args, out)
        self._handle = out[0]
        self._inference = Collective(self.context, self._networks.begin, self._handle, ffi.NULL,
                                     ending=(self._networks.end, self._handle, ffi.NULL))
        self._destroy = self.context.owner(self, self._networks.destroy, self._handle)

    # ---- inference ----

    def begin(self, state: Any) -> None:
        """Begin an inference; the state may change afterwards."""
        with self._inference as call:
            field, _ = _field(state, "state")
            call(self._handle, field)

    def end(self, out: Any = None) -> np.ndarray:
        """End an inference. The result is [n, n_out] predicted values, in `out` if it is given. If `out` does not
        fit, the inference ends on all ranks."""
        return self._inference.end(self._end, out)

    def _end(self, out: Any) -> np.ndarray:
        import numpy as np
        with Collective(self.context, self._networks.end, self._handle, ffi.new("graft_field *")) as call:
            if out is None:
                out = np.zeros((self.mesh.n_rows, self.n_out))
            field, _ = _field(out, "out", writes=True)
            call(self._handle, field)
        return out

    def drop(self) -> None:
        """End an inference without a result."""
        self._inference.end(self.context.call, self._networks.end, self._handle, ffi.NULL)

    def __call__(self, state: Any, out: Any = None) -> np.ndarray:
        """Call begin() and end()."""
        self.begin(state)
        return self.end(out)

    def rollout(self, initial: Any, steps: int, after: Callable[[np.ndarray, int], object] | None = None) -> np.ndarray:
        """The state after `steps` predictions. after(state, step) may read and change the state; if it returns True,
        the rollout ends with CancelledError. An exception in it ends the rollout and is raised."""
        import numpy as np
        raised: list[BaseException] = []

        @ffi.callback("int32_t(void *, int32_t)")
        def step_done(_: Any, step: int) -> int:
            try:
                return int(after is not None and after(state, step) is True)
            except BaseException as error:
                raised.append(error)
                return 1

        with Collective(self.context, self._networks.rollout, self._handle, ffi.NULL) as call:
            first, initial = _field(initial, "initial")
            state = np.array(initial)
            last, _ = _field(state, "state", writes=True)
            try:
                call(self._handle, new("graft_rollout", steps=steps, initial=first, state=last, after=step_done))
            finally:
                if raised:
                    raise raised[0]
        return state

    @staticmethod
    def ensemble(networks: Sequence[Network], state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Compute the mean and the standard deviation [n, n_out] of the predictions of several networks on one mesh.
        Over ranks all ranks pass the networks in the same order."""
        import numpy as np
        if len(networks) == 0:
            raise ArgumentError("an ensemble has at least one network")
        first = networks[0]
        refused = ffi.new("graft_network *[]", [first._handle]), 1, ffi.NULL, ffi.NULL, ffi.NULL
        with Collective(first.context, first._networks.ensemble, *refused) as call:
            field, _ = _field(state, "state")
            found = [np.zeros((first.mesh.n_rows, first.n_out)) for _ in range(2)]
            fields = [_field(x, "out", writes=True)[0] for x in found]
            handles = ffi.new("graft_network *[]", [network._handle for network in networks])
            call(handles, len(networks), field, *fields)
        return found[0], found[1]

    # ---- training ----

    def _pairs(self, pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, list[Any]]:
        kept: list[Any] = []
        structs = ffi.new("graft_pair[]", len(pairs))
        for struct, (x, y) in zip(structs, pairs):
            fields = [_field(x, "input"), _field(y, "target")]
            struct.size, struct.input, struct.target = ffi.sizeof("graft_pair"), fields[0][0], fields[1][0]
            kept += fields
        return structs, kept

    def train(self, *pairs: tuple[Any, Any]) -> dict[str, Any]:
        """One training step with pairs (input, target)."""
        out = new("graft_network_step")
        with Collective(self.context, self._networks.train, self._handle, ffi.NULL, 1, ffi.NULL) as call:
            structs, kept = self._pairs(pairs)
            call(self._handle, structs, len(pairs), out)
            del kept
        return to_dict(out)

    def gradient(self, x: Any, y: Any) -> float:
        """Compute the loss of a pair. Afterwards state() has the gradient of each weight as "gradient.NAME"."""
        loss = ffi.new("double *")
        with Collective(self.context, self._networks.gradient, self._handle, ffi.NULL, loss) as call:
            structs, kept = self._pairs([(x, y)])
            call(self._handle, structs, loss)
            del kept
        return loss[0]

    # ---- state and reports ----

    def state(self) -> dict[str, np.ndarray]:
        """Copies of weights, statistics, moments and counters by name."""
        return {text_of(item.name): read_item(item)
                for item in self.context.enumerate(self._networks.state_item, "graft_state_item", self._handle)}

    def set_state(self, items: dict[str, Any]) -> None:
        """Overwrite items by their names in state()."""
        for name, value in items.items():
            write_item(self.context, self._networks.state_set, self._handle, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file. It is written completely or not at all."""
        with Collective(self.context, self._networks.save, self._handle, ffi.NULL) as call:
            call(self._handle, path_bytes(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read a file that save() has written, or weights that PyTorch has written under the same names."""
        with Collective(self.context, self._networks.load, self._handle, ffi.NULL) as call:
            call(self._handle, path_bytes(path))

    def info(self) -> dict[str, Any]:
        out = new("graft_network_info")
        self.context.call(self._networks.info, self._handle, out)
        return to_dict(out)

    def times(self, layer: int = -2, backward: bool = False) -> dict[str, object]:
        """The seconds of the phases of the last inference or training pair, with option "profile": "yes". `layer` is a
        layer of the network, -1: encoders and decoder, -2: all."""
        out = new("graft_network_times")
        self.context.call(self._networks.times, self._handle, layer, int(backward), out)
        return to_dict(out)

    def explain(self) -> str:
        text = ffi.new("char[]", 16384)
        self.context.call(self._networks.explain, self._handle, text, 16384)
        return text_of(text)

    def close(self) -> None:
        self._destroy()


class Stream:
    """Online training with pairs of states of a running simulation, under a limit of memory. Its options have
    "stream." in their names."""

    def __init__(self, network: Network, options: dict[str, object] | None = None) -> None:
        self.network, self.context = network, network.context
        self._streams, out = self.context.interface("graft_stream_api"), ffi.new("graft_stream **")
        with Collective(self.context, self._streams.create, network._handle, ffi.NULL) as call:
            for key, value in (options or {}).items():
                self.context[key] = value
            call(network._handle, out)
        self._handle = out[0]
        self._destroy = self.context.owner(self, self._streams.destroy, self._handle)

    def offer(self, state: Any, target: Any = None, *, time: float = 0.0, first: bool = False) -> None:
        """Offer a state, which may change afterwards. With `first` no pair connects it with an earlier state."""
        with Collective(self.context, self._streams.offer, self._handle, ffi.NULL) as call:
            field, _ = _field(state, "state")
            args = new("graft_sample_state", input=field, time=time, flags=_FIRST if first else 0)
            if target is not None:
                later, _ = _field(target, "target")
                args.target = later
            call(self._handle, args)

    def step(self, budget: float, max_steps: int = 0) -> dict[str, Any]:
        """Train for about `budget` milliseconds, in at most max_steps steps if it is not 0. "loss" of the status is the
        mean of the steps that changed weights, and NaN without any; "steps_now" counts steps."""
        with Collective(self.context, self._streams.step, self._handle, -1.0, 0, ffi.NULL) as call:
            return self._status(call, budget, max_steps)

    def validate(self) -> dict[str, Any]:
        """Measure the loss of the held-out pairs."""
        return self._status(functools.partial(self.context.call, self._streams.validate))

    def status(self) -> dict[str, Any]:
        """Counts, times and losses; "validation" and "best" are NaN before the first measurement."""
        return self._status(functools.partial(self.context.call, self._streams.status))

    def _status(self, call: Callable[..., int], *arguments: Any) -> dict[str, Any]:
        out = new("graft_stream_status")
        call(self._handle, *arguments, out)
        found = to_dict(out)
        found.update(reason=_REASONS[out.reason], should_stop=bool(out.should_stop))
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, which is one file for each rank."""
        with Collective(self.context, self._streams.save, self._handle, ffi.NULL) as call:
            call(self._handle, path_bytes(path))

    def load(self, path: str | os.PathLike[str]) -> None:
        with Collective(self.context, self._streams.load, self._handle, ffi.NULL) as call:
            call(self._handle, path_bytes(path))

    def close(self) -> None:
        self._destroy()
