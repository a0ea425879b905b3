# SPDX-License-Identifier: Apache-2.0
"""Training of graph neural networks on the whole graph or by minibatch."""
from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterable

from . import arrays
from ._abi import ffi
from .context import Collective, Context, new, text_of, to_dict
from .data import Dataset, as_dataset
from .errors import ArgumentError
from .history import History
from .ranks import before_graph

if TYPE_CHECKING:
    import numpy as np

    from .model import Model
    from .ranks import Ranks

_DTYPES = {ffi.integer_const("GRAFT_" + code): name for code, name in
           (("F32", "float32"), ("F64", "float64"), ("I64", "int64"))}
_UPDATES = {name: ffi.integer_const("GRAFT_UPDATE_" + name.upper()) for name in
            ("features", "labels", "targets", "split", "edge_values", "edge_features")}
_BOOLEANS = ("done", "evaluated", "best", "should_stop", "synchronous")

Callback = Callable[["Trainer", dict[str, Any]], object]


def read_item(item: Any) -> np.ndarray:
    """Copy a graft_state_item to an array."""
    import numpy as np
    shape = tuple(item.shape[0:item.n_dims])
    dtype = np.dtype(_DTYPES[item.dtype])
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(ffi.buffer(item.data, size), dtype).reshape(shape).copy()


def write_item(context: Context, function: Any, handle: Any, name: str, value: Any) -> None:
    """Pass an array to a function that takes a graft_state_item."""
    import numpy as np
    codes = {name: code for code, name in _DTYPES.items()}
    value = np.ascontiguousarray(value)
    if value.dtype.name not in codes:
        raise ArgumentError(f"{name} has type {value.dtype.name}, expected one of {', '.join(codes)}")
    text = ffi.new("char[]", name.encode())
    item = new("graft_state_item", dtype=codes[value.dtype.name], name=text, n_dims=value.ndim,
               shape=list(value.shape), data=arrays.pointer(value))
    context.call(function, handle, item)


def _refuse_unused_weights(context: Context) -> None:
    """Refuse the edge weights of a Data of PyTorch Geometric if the model does not read them, instead of dropping them
    silently."""
    options = context.options()
    needed = {"sage": ("aggregator", ("mean", "sum")), "gat": ("edge_features", ("values",))}
    model = options["model"]["value"]
    if model in needed:
        key, words = needed[model]
        if options[key]["value"] not in words:
            raise ArgumentError(f"the Data has an edge_weight, which model={model} with {key}={options[key]['value']} "
                                f"does not use: expected {key}={' or '.join(words)}, or a Data without edge_weight")


def _read_callbacks(callbacks: Any) -> list[Callback]:
    found = list(callbacks) if hasattr(callbacks, "__iter__") else [None]
    if not all(map(callable, found)):
        raise ArgumentError(f"callbacks is {callbacks!r}, expected a list of functions of (trainer, record)")
    return found


class Trainer:
    """A model in training. Options of the library (see Context.options()) are passed as in Context; the data set
    is a Dataset, a path or a torch_geometric.data.Data.

    A trainer has its own context unless it is given one, because options that it has read cannot change while it lives.
    With `ranks` (see Ranks) all ranks make the same calls in the same order, each with its slice of the data."""

    def __init__(self, dataset: Any, options: dict[str, object] | None = None, *, context: Context | None = None,
                 ranks: Ranks | None = None, **more: object) -> None:
        self.ranks, self.context = ranks, ranks.context if ranks is not None else context or Context()
        with before_graph(ranks):
            if context not in (None, self.context):
                raise ArgumentError("context is not that of ranks")
            for key, value in {**(options or {}), **more}.items():
                self.context[key] = value
            if getattr(dataset, "edge_weight", None) is not None:
                _refuse_unused_weights(self.context)
        self.dataset: Dataset = as_dataset(dataset, self.context, ranks)
        self._history, self._report = History(), new("graft_epoch")
        self._stops = False
        self._train = self.context.interface("graft_train_api")
        self._reports = self.context.interface("graft_report_api")
        self._struct, self._graph = self.dataset._struct, None
        if ranks is not None:
            self._struct, self._graph = ranks.distribute(self.dataset)
        out = ffi.new("graft_trainer **")
        self._call_long = self.context.call_long if ranks is None else self.context.call
        self._call_long(self._train.create, self.context.handle, self._struct, out)
        self._handle = out[0]
        self._destroy = self.context.owner(self, self._train.destroy, self._handle)

    # ---- training ----

    def epoch(self) -> dict[str, Any]:
        """Train for one epoch, and return its report, which is also the last line of `history`."""
        self._take_report()
        self._report = new("graft_epoch")
        self._call_long(self._train.epoch, self._handle, self._report)
        return self._take_report()[-1]

    def _before_epoch(self) -> Collective:
        """Guard arguments that are read before all ranks call epoch()."""
        return Collective(self.context, self._train.epoch, self._handle, ffi.NULL)

    @property
    def history(self) -> History:
        """The reports of all epochs, one dict for each."""
        return self._take_report()

    def _take_report(self) -> History:
        """Add the report of the last epoch, unless it was already added. KeyboardInterrupt may be raised as soon as
        the library has trained, and between any two lines of this function."""
        history, report = self._history, self._report
        if report.epoch > 0 and (not history or [history[-1][name] for name in ("epoch", "seconds")] !=
                                 [report.epoch, report.seconds]):
            record = to_dict(report)
            record.update({name: bool(record[name]) for name in _BOOLEANS})
            history.append(record)
        return history

    def stop(self) -> None:
        """End fit() after this epoch. Callbacks may call this; over ranks all ranks must call it."""
        self._stops = True

    def fit(self, callbacks: Iterable[Callback] = (), progress: bool | None = None) -> Trainer:
        """Train until option "epochs" or "patience" ends the training, or stop() was called.

        callbacks  called with (trainer, record) after each epoch
        progress   a bar of tqdm; None: if tqdm is installed and standard error is a terminal
        """
        self._stops = False
        with self._before_epoch():
            callbacks = _read_callbacks(callbacks)
            bar = _progress_bar(progress, int(self.context["epochs"]), len(self.history))
        try:
            while not self._stops:
                record = self.epoch()
                self._stops = record["done"] or record["should_stop"]
                try:
                    for callback in callbacks:
                        callback(self, record)
                except BaseException:
                    # Other ranks call epoch() next, which fails on all, unless this was the last epoch.
                    with contextlib.nullcontext() if self._stops else self._before_epoch():
                        raise
                if bar is not None:
                    _advance(bar, record)
        finally:
            if bar is not None:
                bar.close()
        return self

    def evaluate(self, best: bool = True) -> dict[str, Any]:
        """Losses and accuracies on the three parts of the split, with the best or the last weights."""
        out = new("graft_metrics")
        with Collective(self.context, self._train.evaluate, self._handle, -1, out) as call:
            call(self._handle, int(best), out)
        return to_dict(out)

    def predict(self, best: bool = True, logits: bool = False) -> np.ndarray:
        """[n] the class of each vertex; or [n, n_classes] the outputs of the model, with `logits` and in a
        regression. Over ranks n are the vertices of the slice."""
        import numpy as np
        with Collective(self.context, self._train.predict, self._handle, -1, ffi.NULL, ffi.NULL) as call:
            if logits or self._struct.float_targets:
                out = arrays.new_matrix(self.dataset.n_rows, self.dataset.n_classes, "float32")
                call(self._handle, int(best), ffi.NULL, arrays.view_dense(out))
            else:
                out = np.empty(self.dataset.n_rows, np.int32)
                call(self._handle, int(best), ffi.cast("int32_t *", arrays.pointer(out)), ffi.NULL)
        return out

    def update(self, dataset: Dataset, *what: str) -> None:
        """Use new arrays of the same shapes: `what` names some of "features", "labels", "targets", "split",
        "edge_values" and "edge_features". Also after arrays of the same data set were changed in place."""
        flags = 0
        with Collective(self.context, self._train.update, self._handle, 0, ffi.NULL) as call:
            for name in what:
                if name not in _UPDATES:
                    raise ArgumentError(f"update is given '{name}', expected some of {', '.join(_UPDATES)}")
                flags |= _UPDATES[name]
            call(self._handle, flags, dataset._struct)
        self._updated = dataset  # its arrays are borrowed from now on

    # ---- the state, and reports ----

    def model(self, what: str = "best") -> Model:
        """The model without the trainer: the weights of the "best" or the "last" epoch, or the whole "state", from
        which a new trainer continues with the same bits."""
        from .model import Model
        return Model._of_trainer(self, what)

    def state(self) -> dict[str, np.ndarray]:
        """Copies of weights, moments and counters by name."""
        return {text_of(item.name): read_item(item)
                for item in self.context.enumerate(self._train.state_item, "graft_state_item", self._handle)}

    def set_state(self, items: dict[str, Any]) -> None:
        """Overwrite weights, moments, counters or rows of earlier batches by their names in state(). Items whose names
        begin with "history." or "caches." may be left out; a trainer that cannot use them refuses them."""
        for name, value in items.items():
            write_item(self.context, self._train.state_set, self._handle, name, value)

    def explain(self) -> str:
        """The trainer in a few lines: model, widths, graph, kernels, memory."""
        text = ffi.new("char[]", 16384)
        self.context.call(self._train.explain, self._handle, text, 16384)
        return text_of(text)

    def memory(self) -> list[dict[str, Any]]:
        """The memory in bytes by purpose."""
        return [to_dict(item) for item in
                self.context.enumerate(self._reports.memory_item, "graft_memory_item", self._handle)]

    def spans(self) -> list[dict[str, Any]]:
        """The time intervals of the last call, which need option "profile"."""
        return [to_dict(item) for item in self.context.enumerate(self._reports.span, "graft_span", self._handle)]

    def traffic(self, rank: int = -1) -> dict[str, Any]:
        """The messages that a rank receives, or those that all ranks receive."""
        out = new("graft_traffic")
        self.context.call(self._reports.traffic, self._handle, rank, out)
        return to_dict(out)

    def traffic_items(self, rank: int = -1) -> list[dict[str, Any]]:
        """The exchanges of a rank, or of all ranks, in the last step: a dict for each layer and direction.
        `rows_of_bits_8` and others count the sent rows by the bits of an element."""
        found = []
        for item in self.context.enumerate(self._reports.traffic_item, "graft_traffic_item", self._handle, rank):
            bits = {f"rows_of_bits_{1 << i}": rows for i, rows in enumerate(item.rows_by_bits)}
            found.append({**to_dict(item), **bits})
        return found

    def traffic_pairs(self) -> list[dict[str, Any]]:
        """The messages of this rank to each other rank in the last step: a dict for each peer, layer and direction."""
        peers = [0]  # without ranks the library refuses the call
        if self.ranks is not None:
            peers = [peer for peer in range(self.ranks.n_ranks) if peer != self.ranks.rank]
        return [to_dict(item) for peer in peers for item in
                self.context.enumerate(self._reports.traffic_pair, "graft_traffic_pair", self._handle, peer)]

    def caches(self, rank: int = -1) -> list[dict[str, Any]]:
        """Caches of rows, of a rank or of all ranks: a dict for each layer. Minibatches over ranks have caches (options
        hec.* and aep.*), and so has option history="full"."""
        return [to_dict(item) for item in
                self.context.enumerate(self._reports.cache_item, "graft_cache_item", self._handle, rank)]

    def close(self) -> None:
        """Free the trainer now, and over ranks also the graph."""
        self._destroy()
        if self._graph is not None:
            self._graph.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<graft.Trainer of {self.context['model']}, {len(self.history)} epochs>"


def _progress_bar(progress: bool | None, epochs: int, done: int) -> Any:
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        if progress:
            raise
        return None
    return tqdm(total=epochs, initial=done, unit="epoch", desc="graft")


def _advance(bar: Any, record: dict[str, Any]) -> None:
    shown = {"loss": f"{record['loss']:.4f}"}
    if record["evaluated"] and record["validation_accuracy"] == record["validation_accuracy"]:
        shown["validation"] = f"{record['validation_accuracy']:.4f}"
    bar.set_postfix(shown)
    bar.update()


def train(dataset: Any, options: dict[str, object] | None = None, *, callbacks: Iterable[Callback] = (),
          progress: bool | None = None, resume: Model | None = None, context: Context | None = None,
          ranks: Ranks | None = None, **more: object) -> Trainer:
    """Make a Trainer and train to the end: ``graft.train(data, model="sage", epochs=60, callbacks=[print])``.

    `dataset`, `options`, `context`, `ranks` and other keywords are arguments of Trainer; `callbacks` and `progress` are
    arguments of Trainer.fit(). The training continues from `resume`, a Model with a whole state or with weights.

    Returns the trainer: its history, evaluate(), predict() and model()."""
    trainer = Trainer(dataset, options, context=context, ranks=ranks, **more)
    if resume is not None:
        with trainer._before_epoch():
            resume.apply(trainer)
    return trainer.fit(callbacks, progress)
