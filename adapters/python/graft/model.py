# SPDX-License-Identifier: Apache-2.0
"""Models without a trainer: in files, and for predictions."""
from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

from . import arrays
from ._abi import ffi
from .context import Collective, Context, default_context, new, path_bytes, text_of
from .data import as_dataset
from .errors import ArgumentError, NotFoundError
from .ranks import before_graph

if TYPE_CHECKING:
    import numpy as np

    from .ranks import Ranks
    from .training import Trainer

_WHAT = {name: ffi.integer_const("GRAFT_MODEL_" + name.upper()) for name in ("last", "best", "state")}
_GIVES = ("labels", "logits", "probabilities")


def _read_vertices(vertices: Any, n: int) -> np.ndarray:
    """Read the numbers of vertices from a list of numbers or a mask."""
    import numpy as np
    vertices = arrays.as_array(vertices, "vertices")
    if vertices.dtype != bool:
        return arrays.read_ids(vertices.reshape(-1), "vertices")
    if vertices.shape != (n,):
        raise ArgumentError(f"vertices has type bool and shape {vertices.shape}, expected ({n},)")
    return np.flatnonzero(vertices)


class Model:
    """Kind, options and weights of a trained model, and optionally the whole state of its training. Made by
    Trainer.model() or Model.load()."""

    def __init__(self, context: Context, handle: Any) -> None:
        self.context, self._handle = context, handle
        self._models = context.interface("graft_model_api")
        self._destroy = context.owner(self, self._models.destroy, handle)
        info = new("graft_model_info")
        context.call(self._models.info, handle, info)
        self.kind: str = text_of(info.kind)
        self.widths: list[int] = list(info.widths[0:info.n_layers + 1])
        self.n_features, self.n_classes, self.epoch = info.n_features, info.n_classes, info.epoch
        self.has_state = bool(info.has_state)

    @classmethod
    def _of_trainer(cls, trainer: Trainer, what: str) -> Model:
        if what not in _WHAT:
            raise ArgumentError(f"model is given '{what}', expected one of {', '.join(_WHAT)}")
        out = ffi.new("graft_model **")
        trainer.context.call(trainer.context.interface("graft_model_api").create, trainer._handle, _WHAT[what], out)
        return cls(trainer.context, out[0])

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, context: Context | None = None, ranks: Ranks | None = None) -> Model:
        """Read a model from a safetensors file. Over ranks, rank 0 reads it for all."""
        context = ranks.context if ranks is not None else context or default_context()
        out = ffi.new("graft_model **")
        over = context.handle, ranks.transport if ranks is not None else ffi.NULL
        with Collective(context, context.interface("graft_model_api").load, *over, ffi.NULL, ffi.NULL) as call:
            call(*over, path_bytes(path), out)
        return cls(context, out[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file. It is written completely or not at all. An existing file is kept as
        PATH.previous. Over ranks, one rank writes it."""
        self.context.call(self._models.save, self._handle, path_bytes(path))

    def predict(self, dataset: Any, gives: str = "labels", *, vertices: Any = None, best: bool = True,
                ranks: Ranks | None = None) -> np.ndarray:
        """Predict the vertices of a data set, which needs a graph and features: [n] classes, or [n, n_classes] "logits"
        (the outputs of the model, also of a regression) or "probabilities".

        `vertices` is a list of vertices, in any order, or an array of bool [n]. In one process only its receptive field
        is computed. `best` chooses among the weights of a model with a whole state. Over ranks each rank has its slice
        and its list."""
        with before_graph(ranks):
            if gives not in _GIVES:
                raise ArgumentError(f"predict is asked for '{gives}', expected one of {', '.join(_GIVES)}")
        data, graph = as_dataset(dataset, self.context, ranks), None
        struct = data._struct
        if ranks is not None:
            struct, graph = ranks.distribute(data)
        try:
            refused = new("graft_prediction", dataset=struct, n=-1)
            with Collective(self.context, self._models.predict_vertices, self._handle, refused) as call:
                return self._predict(call, data.n_rows, struct, gives, vertices, best)
        finally:
            if graph is not None:
                graph.close()

    def _predict(self, call: Collective, n: int, struct: Any, gives: str, vertices: Any, best: bool) -> np.ndarray:
        import numpy as np
        chosen = ffi.NULL
        if vertices is not None:
            vertices = _read_vertices(vertices, n)
            n, chosen = len(vertices), ffi.cast("int64_t *", arrays.pointer(vertices))
        asked = new("graft_prediction", weights=int(best), dataset=struct, vertices=chosen, n=n)
        if gives == "labels":
            out = np.empty(n, np.int32)
            asked.labels = ffi.cast("int32_t *", arrays.pointer(out))
        else:
            out = arrays.new_matrix(n, self.n_classes, "float32")
            view = arrays.view_dense(out)
            setattr(asked, gives, view)
        call(self._handle, asked)
        return out

    def apply(self, trainer: Trainer) -> None:
        """Copy weights, or the whole state, into a trainer, which may have another graph and another context."""
        if trainer.context is self.context:
            self.context.call(self._models.apply, self._handle, trainer._handle)
            return
        with tempfile.TemporaryDirectory(prefix="graft-") as folder:  # an object belongs to one context
            path = os.path.join(folder, "model.safetensors")
            self.save(path)
            Model.load(path, context=trainer.context).apply(trainer)

    def metadata(self) -> dict[str, str]:
        """The texts in the file: options of the model, epoch, shapes."""
        found: dict[str, str] = {}
        key, value = ffi.new("const char **"), ffi.new("const char **")
        while True:
            try:
                self.context.call(self._models.metadata, self._handle, len(found), key, value)
            except NotFoundError:
                return found
            found[text_of(key[0])] = text_of(value[0])

    def weights(self) -> dict[str, np.ndarray]:
        """Copies of the arrays of the model, as {name: array}."""
        from .training import read_item
        return {text_of(item.name): read_item(item)
                for item in self.context.enumerate(self._models.item, "graft_state_item", self._handle)}

    def close(self) -> None:
        """Free the model now."""
        self._destroy()

    def __repr__(self) -> str:
        return f"<graft.Model {self.kind} {'-'.join(map(str, self.widths))}, epoch {self.epoch}>"
