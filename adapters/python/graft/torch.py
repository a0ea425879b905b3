# SPDX-License-Identifier: Apache-2.0
"""Sums over neighbours for PyTorch, with gradients, and in the layers of PyTorch Geometric.

>>> graft.torch.replace(model)                  # its SAGEConv, GCNConv, ... now aggregate with Graft
>>> h = graft.torch.aggregate(A, x)             # A: a graft.Matrix, x: a tensor on the CPU"""
from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor

from . import arrays
from .errors import ArgumentError
from .product import Matrix
from .product import aggregate as _aggregate

_FLOATS = (torch.float32, torch.float64)


def _readable(x: Tensor, name: str) -> Tensor:
    """Return the tensor in a form that the library reads: a matrix with contiguous rows."""
    if x.device.type != "cpu" or x.dtype not in _FLOATS or x.ndim != 2:
        raise ArgumentError(f"{name} is a {x.dtype} tensor of shape {tuple(x.shape)} on {x.device}, expected two "
                            "dimensions of float32 or float64 on the CPU")
    x = x.resolve_neg()
    fine = x.shape[1] <= 1 or x.stride(1) == 1
    return x if fine and (x.shape[0] <= 1 or x.stride(0) >= x.shape[1]) else x.contiguous()


def _product(matrix: Matrix, x: Tensor, semiring: str, scale: Tensor | None = None, winner: Any = None) -> Tensor:
    x = _readable(x.detach(), "x")
    out = torch.empty((matrix.shape[0], x.shape[1]), dtype=x.dtype)
    _aggregate(matrix, x.numpy(), semiring, out=out.numpy(), winner=winner, threads=torch.get_num_threads(),
               row_scale=None if scale is None else scale.numpy())
    return out


class _Sum(torch.autograd.Function):
    """Computes diag(scale) A x. Its gradient is A^T (diag(scale) g), which is the same function of the transpose."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Matrix, semiring: str, scale: Tensor | None) -> Tensor:
        ctx.matrix, ctx.semiring, ctx.scale = matrix, semiring, scale
        return _product(matrix, x, semiring, scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        if ctx.scale is not None:
            gradient = gradient * ctx.scale[:, None]
        return _Sum.apply(gradient, ctx.matrix.T, ctx.semiring, None), None, None, None


class _Extreme(torch.autograd.Function):
    """Computes the maximum or minimum of each column over neighbours. The gradient is passed to the neighbour with
    the extremum; if several are equal, to the first of them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Matrix, semiring: str) -> Tensor:
        winner = torch.empty((matrix.shape[0], x.shape[1]), dtype=getattr(torch, matrix.index_dtype))
        out = _product(matrix, x, semiring, winner=winner.numpy())
        ctx.save_for_backward(winner)
        ctx.n = x.shape[0]
        ctx.mark_non_differentiable(winner)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        winner, = ctx.saved_tensors
        target = gradient.new_zeros(ctx.n + 1, gradient.shape[1])  # the last row is for vertices without neighbours
        index = winner.long()
        target.scatter_add_(0, torch.where(index < 0, ctx.n, index), gradient)
        return target[:-1], None, None


def aggregate(A: Matrix, x: Tensor, semiring: str = "plus_times", *, row_scale: Any = None) -> Tensor:
    """graft.aggregate for tensors, with a gradient for `x`. For sums it can be differentiated again. The gradients of
    sums need the transpose of `A`, which is made at the first backward pass and kept.

    `row_scale` is "mean" or a factor for each row. Maxima and minima take "max_second" and "min_second" only."""
    if not isinstance(A, Matrix):
        raise ArgumentError(f"A is a {type(A).__name__}, expected a graft.Matrix, which is prepared once")
    if semiring.startswith("plus"):
        if isinstance(row_scale, str):
            if row_scale != "mean":
                raise ArgumentError(f"row_scale is '{row_scale}', expected 'mean', or a factor for each row")
            row_scale = _one_over_degrees(A, x.dtype)
        elif row_scale is not None:
            row_scale = _read_scale(row_scale, A, x.dtype)
        return _Sum.apply(x, A, semiring, row_scale)
    if row_scale is not None or semiring.endswith("times"):
        raise ArgumentError(f"semiring {semiring} with row_scale={row_scale}: the gradient is known for sums, and for "
                            "max_second and min_second without row_scale")
    return _Extreme.apply(x, A, semiring)


def _read_scale(factors: Any, matrix: Matrix, dtype: torch.dtype) -> Tensor:
    if getattr(factors, "requires_grad", False):
        raise ArgumentError("row_scale requires a gradient, which only x gets: expected factors without one; multiply "
                            "the result by them instead, or detach() them")
    name = "float64" if dtype == torch.float64 else "float32"
    return torch.from_numpy(arrays.read_vector(factors, "row_scale", matrix.shape[0], name))


def _one_over_degrees(matrix: Matrix, dtype: torch.dtype) -> Tensor:
    kept = matrix.__dict__.setdefault("_torch_scale", {})
    if dtype not in kept:
        with torch.inference_mode(False):  # because it may be saved for a gradient later
            kept[dtype] = 1 / torch.from_numpy(matrix.degrees()).clamp(min=1).to(dtype)
    return kept[dtype]


# ---- layers of PyTorch Geometric ----

class _Prepared:
    """A cache of objects made from tensors, kept as long as the tensors live and their versions do not change."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Any, ...]] = {}

    def get(self, tensors: tuple[Tensor | None, ...], more: tuple[Any, ...], make: Any) -> Any:
        if any(one is not None and one.is_inference() for one in tensors):
            return make()  # tensors of inference mode have no version
        key = (*(id(one) for one in tensors), *more)
        versions = tuple(None if one is None else one._version for one in tensors)
        found = self._kept.get(key)
        if found is not None and found[1] == versions:
            return found[2]
        with torch.inference_mode(False):  # because it may be used outside of inference mode later
            made = make()
        watched = [weakref.ref(one, lambda _: self._kept.pop(key, None)) for one in tensors if one is not None]
        self._kept[key] = watched, versions, made
        return made

    def forget(self, tensor: Tensor) -> None:
        for key, (watched, *_) in list(self._kept.items()):
            if any(one() is tensor for one in watched):
                self._kept.pop(key, None)


_matrices, _norms = _Prepared(), _Prepared()
_REDUCE = {"sum": ("plus_times", None), "add": ("plus_times", None), "mean": ("plus_times", "mean"),
           "max": ("max_second", None), "min": ("min_second", None)}
_HOOKS = [f"_{name}_forward_{when}" for name in ("propagate", "message", "aggregate", "message_and_aggregate")
          for when in ("pre_hooks", "hooks")]


def _make_matrix(edges: Tensor, weights: Tensor | None, shape: tuple[int, int], flow: str) -> Matrix:
    if edges.layout == torch.sparse_csr:
        values = edges.values()
        return Matrix((edges.crow_indices().numpy(), edges.col_indices().numpy(),
                       None if bool((values == 1).all()) else values.detach().numpy(), shape))
    ends = edges.detach().numpy() if flow == "source_to_target" else edges.detach().numpy()[::-1]
    return Matrix.from_edges(ends[0], ends[1], shape, None if weights is None else weights.detach().numpy())


class _Propagate:
    """Replaces MessagePassing.propagate() of one layer, whose message is x_j or edge_weight * x_j."""

    def __init__(self, conv: Any) -> None:
        self.conv = conv

    def __call__(self, edge_index: Any, size: Any = None, **arguments: Any) -> Tensor:
        known = self._understand(edge_index, size, arguments)
        if known is None:
            return type(self.conv).propagate(self.conv, edge_index, size=size, **arguments)
        x, weights, shape = known
        matrix = _matrices.get((edge_index, weights), (shape, self.conv.flow, x.dtype),
                               lambda: _make_matrix(edge_index, weights, shape, self.conv.flow))
        semiring, scale = _REDUCE[self.conv.aggr]
        return aggregate(matrix, x, semiring, row_scale=scale)

    def _understand(self, edges: Any, size: Any, arguments: dict[str, Any]) -> Any:
        """Read the arguments as (features, weights, shape of the matrix). The result is None if PyTorch Geometric
        must compute the call."""
        x, weights = arguments.get("x"), arguments.get("edge_weight")
        source, target = (x, x) if isinstance(x, Tensor) else x if isinstance(x, tuple) else (None, None)
        if not isinstance(edges, Tensor) or not isinstance(source, Tensor) or set(arguments) - {"x", "edge_weight"}:
            return None
        if source.device.type != "cpu" or source.dtype not in _FLOATS or source.ndim != 2 or \
                source.layout != torch.strided:
            return None
        if edges.layout not in (torch.strided, torch.sparse_csr) or edges.device.type != "cpu":
            return None
        if weights is not None and (weights.requires_grad or weights.dtype != source.dtype or weights.ndim != 1 or
                                    edges.layout != torch.strided or self.conv.aggr not in ("sum", "add", "mean")):
            return None
        if self.conv.explain or self.conv.node_dim != -2 or any(getattr(self.conv, name, None) for name in _HOOKS):
            return None
        if edges.layout == torch.sparse_csr:
            values = edges.values()
            if values.requires_grad or values.dtype != source.dtype or self.conv.flow != "source_to_target" or \
                    edges.shape[1] != source.shape[0] or (self.conv.aggr in ("max", "min")):
                return None
            return source, None, tuple(edges.shape)
        n_targets = target.shape[0] if isinstance(target, Tensor) else None
        if size is not None:
            n_targets = size[1] if self.conv.flow == "source_to_target" else size[0]
        return None if n_targets is None else (source, weights, (n_targets, source.shape[0]))


class _Forward:
    """Replaces forward() of one GCNConv. The normalized edges are cached for each pair of input tensors. A call runs on
    a stand-in object with the cached edges, which shares all other data with the layer. So several threads can call the
    layer, and an exception leaves it unchanged."""

    def __init__(self, conv: Any) -> None:
        self.conv = conv

    def __call__(self, x: Any, edge_index: Any, edge_weight: Any = None, **more: Any) -> Any:
        kind, conv = type(self.conv), self.conv
        if isinstance(x, Tensor) and isinstance(edge_index, Tensor) and edge_index.layout == torch.strided and \
                (edge_weight is None or not edge_weight.requires_grad):
            from torch_geometric.nn.conv.gcn_conv import gcn_norm
            how = (x.size(conv.node_dim), conv.improved, conv.add_self_loops, conv.flow, x.dtype)
            conv = object.__new__(kind)
            conv.__dict__.update(self.conv.__dict__)
            conv.__dict__["_cached_edge_index"] = _norms.get(
                (edge_index, edge_weight), how, lambda: gcn_norm(edge_index, edge_weight, *how))
        return kind.forward(conv, x, edge_index, edge_weight, **more)


def _kinds() -> dict[str, Any]:
    """The layers that can be replaced: their messages are x_j or edge_weight * x_j."""
    from torch_geometric import nn
    return {name: getattr(nn, name) for name in ("SAGEConv", "GCNConv", "GINConv", "GraphConv", "SimpleConv",
                                                 "ClusterGCNConv") if hasattr(nn, name)}


def _can_replace(module: Any, kinds: tuple[Any, ...]) -> bool:
    kind = next((one for one in kinds if isinstance(module, one)), None)
    if kind is None or not isinstance(module.aggr, str) or module.aggr not in _REDUCE:
        return False
    return all(getattr(type(module), name) is getattr(kind, name)
               for name in ("message", "aggregate", "update", "message_and_aggregate"))


def replace(model: torch.nn.Module) -> list[str]:
    """Let the layers of a model of PyTorch Geometric aggregate with Graft, in place: SAGEConv, GCNConv, GINConv,
    GraphConv, SimpleConv and ClusterGCNConv with aggr sum, mean, max or min. Results and gradients are the same up to
    rounding; of equal maxima the first gets the gradient. Weights, state_dict() and calls stay as they are.

    Edges may be an `edge_index` or a CSR tensor. A graph is prepared at its first use, and kept as long as the tensor
    lives and is not changed; see forget() for changes that PyTorch does not count. Tensors of inference_mode() are
    prepared at each use. PyTorch Geometric still computes all other cases: other layers and subclasses with other
    messages, other devices and types, gradients for weights of edges, hooks, explanations.

    Returns the names of the replaced layers; restore() undoes it."""
    kinds = tuple(_kinds().values())
    replaced = []
    for name, module in model.named_modules():
        if not _can_replace(module, kinds) or isinstance(module.__dict__.get("propagate"), _Propagate):
            continue
        module.propagate = _Propagate(module)
        if hasattr(module, "_cached_edge_index") and module.normalize and not module.cached:
            module.forward = _Forward(module)
        replaced.append(name)
    return replaced


def restore(model: torch.nn.Module) -> None:
    """Undo replace()."""
    for module in model.modules():
        if isinstance(module.__dict__.get("propagate"), _Propagate):
            del module.propagate
        if isinstance(module.__dict__.get("forward"), _Forward):
            del module.forward


def forget(tensor: Tensor) -> None:
    """Prepare the graph of this tensor, which is an edge_index or weights, again when it is next used. This is
    needed after a change that PyTorch does not count: through .data or .numpy(), or by a program that shares the
    memory."""
    for kept in (_norms, _matrices):
        kept.forget(tensor)
