# SPDX-License-Identifier: Apache-2.0
"""The reports of a training, one for each epoch."""
from __future__ import annotations

import os
from typing import Any


class History(list):  # a list of dicts
    """A dict for each epoch, with the fields of graft_epoch (abi/graft_train.h): "epoch", "loss", "seconds",
    "validation_accuracy", ... Metrics that were not measured are NaN. `pandas.DataFrame(history)` is a table of
    them."""

    def frame(self) -> Any:
        """A pandas.DataFrame with a row for each epoch."""
        import pandas
        return pandas.DataFrame(list(self)).set_index("epoch")

    def column(self, name: str) -> list[Any]:
        """The values of one field in all epochs."""
        return [record[name] for record in self]

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw losses, and accuracies or RMSE, over epochs, and save the figure if a path is given. Needs matplotlib,
        and changes none of its settings."""
        from matplotlib.figure import Figure
        figure = Figure(figsize=(8, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        measure = "accuracy" if any(one["train_accuracy"] == one["train_accuracy"] for one in self) else "rmse"
        self._draw(left, "loss", {"training": "loss", "validation": "validation_loss"})
        self._draw(right, measure, {"training": "train_" + measure, "validation": "validation_" + measure,
                                    "test": "test_" + measure})
        if path is not None:
            figure.savefig(path)
        return figure

    def _draw(self, axes: Any, title: str, lines: dict[str, str]) -> None:
        for label, name in lines.items():
            known = [(one["epoch"], one[name]) for one in self if one[name] == one[name]]
            if known:
                axes.plot(*zip(*known), label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel(title)
        if axes.lines:
            axes.legend()
