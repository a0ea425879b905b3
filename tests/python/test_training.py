# SPDX-License-Identifier: Apache-2.0
"""Checks data sets, training and models from Python. Losses are compared with plain NumPy."""
import os
import signal
import threading

import graft
import numpy as np
import pytest

N, WIDTH, CLASSES = 240, 6, 3
OPTIONS = {"model": "sage", "layers": 2, "hidden": 8, "lr": 0.02, "dropout": 0.0, "epochs": 12}


def arrays_of(seed=2, index="int32"):
    """Make communities: the graph as (indptr, indices, None, shape), features, labels and split."""
    draw = np.random.default_rng(seed)
    labels = np.arange(N) % CLASSES
    near = draw.integers(0, N // CLASSES, (N, 4)) * CLASSES + labels[:, None]
    indices = np.where(draw.random((N, 4)) < 0.9, near, draw.integers(0, N, (N, 4))).reshape(-1).astype(index)
    features = (draw.normal(size=(N, WIDTH)) + 1.5 * (labels[:, None] == np.arange(WIDTH))).astype(np.float32)
    split = draw.permutation(np.repeat([1, 2, 3], N // 3)).astype(np.uint8)
    return (np.arange(0, 4 * N + 1, 4).astype(index), indices, None, (N, N)), features, labels, split


@pytest.fixture
def data():
    return graft.Dataset(*arrays_of())


def logits_of(state, graph, features, prefix=""):
    """Compute the logits of a model of two sage layers with LayerNorm and means."""
    h, means = features.astype(float), np.zeros((N, N))
    np.add.at(means, (np.repeat(np.arange(N), 4), graph[1]), 0.25)
    for layer in (0, 1):
        w = {name.split(".")[-1]: value for name, value in state.items()
             if name.startswith(f"{prefix}layers.{layer}.") and ".norm." not in name}
        h = h @ w["weight_self"] + means @ h @ w["weight_neigh"] + w["bias"]
        if layer == 0:
            h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
            h = np.maximum(h * state[f"{prefix}layers.0.norm.gain"] + state[f"{prefix}layers.0.norm.shift"], 0)
    return h


def loss_of(logits, labels, chosen):
    z = logits[chosen] - logits[chosen].max(1, keepdims=True)
    return np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), labels[chosen]])


def test_losses_and_predictions_are_those_of_numpy(data):
    graph, features, labels, split = arrays_of()
    trainer = graft.Trainer(data, OPTIONS, norm="layer")
    for _ in range(3):
        expected = loss_of(logits_of(trainer.state(), graph, features), labels, split == 1)
        assert trainer.epoch()["loss"] == pytest.approx(expected, rel=1e-4)
    logits = logits_of(trainer.state(), graph, features)
    np.testing.assert_allclose(trainer.predict(best=False, logits=True), logits, rtol=1e-3, atol=1e-4)
    predicted = trainer.predict(best=False)
    np.testing.assert_array_equal(predicted, logits.argmax(1))
    assert trainer.evaluate(best=False)["test_accuracy"] == pytest.approx((predicted == labels)[split == 3].mean())


def test_train_with_callbacks_and_history(data):
    seen = []
    run = graft.train(data, OPTIONS, progress=False, callbacks=[lambda trainer, record: seen.append(record["epoch"])])
    assert seen == run.history.column("epoch") == list(range(1, 13))
    assert run.history[-1]["done"] is True and run.history[-1]["loss"] < run.history[0]["loss"]
    assert run.evaluate()["test_accuracy"] > 0.8
    assert "sage" in run.explain() and sum(item["bytes"] for item in run.memory()) > 0

    def stop_at_three(trainer, record):
        if record["epoch"] == 3:
            trainer.stop()

    assert len(graft.train(data, OPTIONS, progress=False, callbacks=[stop_at_three]).history) == 3


def test_a_callback_that_raises_ends_the_training(data):
    def fail(trainer, record):
        raise KeyError("mine")
    trainer = graft.Trainer(data, OPTIONS)
    with pytest.raises(KeyError, match="mine"):
        trainer.fit([fail])
    assert len(trainer.fit(progress=False).history) == 12


def test_models_in_files(data, tmp_path):
    run = graft.train(data, OPTIONS, progress=False)
    path = tmp_path / "model.safetensors"
    run.model().save(path)
    model = graft.Model.load(path)
    assert (model.kind, model.widths, model.has_state) == ("sage", [WIDTH, 8, CLASSES], False)
    assert model.metadata()["model.hidden"] == "8"
    np.testing.assert_array_equal(model.predict(data), run.predict())
    logits = model.predict(data, "logits")
    np.testing.assert_allclose(logits, run.predict(logits=True), rtol=1e-5, atol=1e-6)
    exp = np.exp(logits - logits.max(1, keepdims=True))
    np.testing.assert_allclose(model.predict(data, "probabilities", vertices=[5, 200, 5]),
                               (exp / exp.sum(1, keepdims=True))[[5, 200, 5]], rtol=1e-4, atol=1e-5)
    chosen = np.arange(N) % 7 == 3
    np.testing.assert_array_equal(model.predict(data, vertices=chosen), run.predict()[chosen])
    assert len(model.predict(data, vertices=[])) == 0
    for vertices, sentence in (([1.9], "vertices has type float64"), (chosen[1:], "vertices has type bool and shape")):
        with pytest.raises(graft.ArgumentError, match=sentence):
            model.predict(data, vertices=vertices)
    with pytest.raises(graft.ArgumentError, match="has a byte 0"):
        run.model().save(str(tmp_path / "a\0b"))
    assert not (tmp_path / "a").exists()
    without = graft.Dataset(*arrays_of()[:2])
    np.testing.assert_array_equal(model.predict(without), run.predict())
    state = run.state()
    for name, value in model.weights().items():
        np.testing.assert_array_equal(value, state["best." + name] if "best." + name in state else state[name])
    with pytest.raises(graft.NotFoundError):
        graft.Model.load(tmp_path / "none")
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(graft.FormatError):
        graft.Model.load(path)


def test_a_state_goes_on_with_the_same_bits(data, tmp_path):
    whole = graft.train(data, OPTIONS, progress=False).history
    half = graft.Trainer(data, OPTIONS)
    for _ in range(6):
        half.epoch()
    half.model("state").save(tmp_path / "state")
    second = graft.Trainer(data, OPTIONS)
    context_model = graft.Model.load(tmp_path / "state", context=second.context)
    context_model.apply(second)
    second.fit(progress=False)
    assert second.history.column("loss") == whole.column("loss")[6:]
    resumed = graft.train(data, OPTIONS, resume=graft.Model.load(tmp_path / "state"), progress=False)
    assert resumed.history.column("loss") == whole.column("loss")[6:]
    resumed = graft.train(data, OPTIONS, resume=half.model("state"), progress=False)
    assert resumed.history.column("loss") == whole.column("loss")[6:]
    with pytest.raises(graft.FormatError, match=r"expected F32 \[6, 9\]"):
        graft.train(data, OPTIONS, hidden=9, resume=half.model("state"), progress=False)
    third = graft.Trainer(data, OPTIONS)
    third.set_state(half.state())
    assert third.epoch()["loss"] == whole[6]["loss"]
    with pytest.raises(graft.NotFoundError):
        third.set_state({"layers.9.bias": np.zeros(3, np.float32)})


@pytest.mark.parametrize("codec", ["f32", "q8"])
def test_tables_of_history_are_in_the_state(data, codec):
    options = dict(OPTIONS, batch_size=8, history="full", **{"hec.codec": codec})
    first = graft.Trainer(data, options)
    first.epoch()
    state = first.state()
    assert {"history.layout", "history.1.rows", "history.1.batches"} <= set(state)
    second, third = graft.Trainer(data, options), graft.Trainer(data, options)
    second.set_state(state)
    third.set_state({name: value for name, value in state.items() if not name.startswith("history.")})
    expected = first.epoch()["loss"]
    assert second.epoch()["loss"] == expected
    assert third.epoch()["loss"] != expected


def test_sparse_features_targets_and_new_arrays():
    graph, features, labels, split = arrays_of(index="int64")
    sparse = pytest.importorskip("scipy.sparse", reason="there is no SciPy (python3-scipy)")
    dense = np.where(features > 0, features, 0)
    losses = [graft.train(graft.Dataset(graph, x, labels, split), OPTIONS, progress=False).history.column("loss")
              for x in (dense, sparse.csr_matrix(dense))]
    np.testing.assert_allclose(*losses, rtol=1e-4)
    wanted = features @ np.ones((WIDTH, 1), np.float32)
    wanted[::5] = np.nan
    run = graft.train(graft.Dataset(graph, features, targets=wanted, split=split), OPTIONS, loss="mse", progress=False)
    assert run.predict().shape == (N, 1) and run.history[-1]["train_rmse"] < run.history[0]["train_rmse"]
    several = np.stack([labels == 0, labels != 1], 1)
    run = graft.train(graft.Dataset(graph, features, targets=several, split=split), OPTIONS, progress=False)
    assert run.predict(logits=True).shape == (N, 2)
    run.update(graft.Dataset(graph, -features, targets=several, split=split), "features")
    assert np.isfinite(run.evaluate(best=False)["test_loss"])


def test_a_split_of_three_masks():
    graph, features, labels, split = arrays_of()
    masks = graft.Dataset(graph, features, labels, (split == 1, split == 2, split == 3))
    np.testing.assert_array_equal(masks.split, split)
    np.testing.assert_array_equal(masks.labels, labels)


def test_numbers_of_other_types_are_checked():
    graph, features, labels, split = arrays_of()
    several = np.stack([labels == 0, labels != 1], 1).astype(np.int64)
    for dtype in (np.int64, np.float64, np.float32, np.uint64, ">i4"):
        same = graft.Dataset(graph, features, labels.astype(dtype), split.astype(dtype))
        np.testing.assert_array_equal(same.labels, labels)
        np.testing.assert_array_equal(same.split, split)
    three = graft.Dataset(graph, features, labels, tuple((split == kind).astype(int) for kind in (1, 2, 3)))
    np.testing.assert_array_equal(three.split, split)

    def refused(sentence, **changed):
        with pytest.raises(graft.ArgumentError, match=sentence):
            graft.Dataset(graph, features, **{"labels": labels, "split": split, **changed})

    def with_one(array, value):
        array = array.astype(np.result_type(array.dtype, type(value), np.int64))
        array[17] = value
        return array

    for value in (2**32 + 1, -2, 1.7, np.nan, np.inf, 2.0**31):
        refused(f"labels: vertex 17 has {value}, expected a whole number from -1 to 2147483647".replace("+", r"\+"),
                labels=with_one(labels, value))
    refused("labels: vertex 17 has 2147483648.0", labels=with_one(labels, 2.0**31).astype(np.float32))
    for value in (257, -1, 1.5):
        refused(f"split: vertex 17 has {value}, expected a whole number from 0 to 3", split=with_one(split, value))
    refused("targets: vertex 17 has 256, expected a whole number from 0 to 1", targets=with_one(several, 256))
    refused("training part of split: vertex 17 has 2, expected a whole number from 0 to 1",
            split=(with_one((split == 1).astype(int), 2), None, None))
    refused("labels has type complex128", labels=labels.astype(complex))
    refused("labels has type str", labels=labels.astype(str))
    refused("labels is a builtins.list, of which NumPy makes no array", labels=[[1], [2, 3]])


def test_a_folder_of_files(tmp_path):
    graph, features, labels, split = arrays_of()
    np.save(tmp_path / "edges.npy", np.stack([graph[1], np.repeat(np.arange(N), 4).astype(np.int32)]))
    for name, array in (("features", features), ("labels", labels.astype(np.int32)), ("split", split)):
        np.save(tmp_path / f"{name}.npy", array)
    data = graft.Dataset.open(tmp_path)
    assert (data.n_vertices, data.n_features, data.n_classes) == (N, WIDTH, CLASSES)
    np.testing.assert_array_equal(data.labels, labels)
    assert len(graft.train(tmp_path, OPTIONS, progress=False).history) == 12
    with pytest.raises(graft.NotFoundError, match="no_such_folder"):
        graft.Dataset.open(tmp_path / "no_such_folder")


def test_what_is_refused(data):
    graph, features, labels, split = arrays_of()
    with pytest.raises(graft.ArgumentError, match="features has 239 rows, expected 240"):
        graft.Dataset(graph, features[:-1])
    with pytest.raises(graft.ArgumentError, match="labels has shape"):
        graft.Dataset(graph, features, labels[:-1])
    with pytest.raises(graft.OptionError, match="model"):
        graft.train(data, model="transformer")
    with pytest.raises(graft.ArgumentError, match="no data set"):
        graft.train(3)
    with pytest.raises(graft.Error):
        graft.train(graft.Dataset(graph, features, labels), OPTIONS, progress=False)  # the data set has no split
    trainer = graft.Trainer(data, OPTIONS)
    with pytest.raises(graft.StateError):
        trainer.context["hidden"] = 16
    broken = features.copy()
    broken[17, 2] = np.nan
    with pytest.raises(graft.FormatError, match="17"):
        graft.Trainer(graft.Dataset(graph, broken, labels, split), OPTIONS)


def test_tables_plots_and_progress(data, tmp_path, capsys):
    run = graft.train(data, OPTIONS, progress=False)
    pandas = pytest.importorskip("pandas", reason="there is no pandas")
    frame = run.history.frame()
    assert list(frame.index) == list(range(1, 13)) and list(frame["loss"]) == run.history.column("loss")
    assert len(pandas.DataFrame(run.history)) == 12
    pytest.importorskip("matplotlib", reason="there is no matplotlib")
    run.history.plot(tmp_path / "curve.png")
    assert os.path.getsize(tmp_path / "curve.png") > 1000
    pytest.importorskip("tqdm", reason="there is no tqdm")
    capsys.readouterr()
    graft.train(data, OPTIONS, progress=True)
    assert "12/12" in capsys.readouterr().err


def check_traffic(exchanged):
    """Check that the traffic by layers and directions, by peers, and over all ranks has the same sums."""
    for rank, (items, pairs, of_all) in enumerate(exchanged):
        assert [(item["layer"], item["pass"]) for item in items] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert [pair["peer"] for pair in pairs[::4]] == [peer for peer in range(3) if peer != rank]
        for item, total, *to_peers in zip(items, of_all, pairs[:4], pairs[4:]):
            assert item["rank"] == rank and total["rank"] == -1
            assert item["rows_sent"] == sum(pair["rows"] for pair in to_peers) == item["rows_of_bits_32"]
            assert total["rows"] == total["rows_sent"] == \
                sum(one[0][2 * item["layer"] + item["pass"]]["rows"] for one in exchanged)
    assert exchanged[0][2][2]["rows"] > 0


def test_caches(data):
    trainer = graft.train(data, OPTIONS, history="full", batch_size=40, progress=False)
    cache, = trainer.caches()
    assert (cache["layer"], cache["capacity"]) == (1, N)
    assert cache["width"] == CLASSES  # rows are transformed before they are gathered
    assert 0 < cache["found"] <= cache["searched"] and trainer.caches(0) == [{**cache, "rank": 0}]
    with pytest.raises(graft.ArgumentError):
        trainer.caches(1)
    without = graft.Trainer(data, OPTIONS)
    for report in (without.caches, without.traffic_items, without.traffic_pairs):
        with pytest.raises(graft.StateError):
            report()


def test_ranks_that_are_threads(data):
    graph, features, labels, split = arrays_of()
    alone = graft.train(data, OPTIONS, progress=False)
    cuts, results, exchanged = [0, 100, 150, N], [None] * 3, [None] * 3

    def work(ranks):
        rows = slice(cuts[ranks.rank], cuts[ranks.rank + 1])
        part = graft.Dataset((np.arange(0, 4 * (rows.stop - rows.start) + 1, 4), graph[1][4 * rows.start:4 * rows.stop],
                              None, (rows.stop - rows.start, N)), features[rows], labels[rows], split[rows],
                             first_vertex=rows.start, n_classes=CLASSES)
        with graft.Trainer(part, OPTIONS, ranks=ranks, threads=1, partition="hash") as trainer:
            trainer.fit(progress=False)
            results[ranks.rank] = trainer.history.column("loss"), trainer.predict(best=False, logits=True), \
                trainer.traffic()["halo_rows"]
            exchanged[ranks.rank] = trainer.traffic_items(ranks.rank), trainer.traffic_pairs(), trainer.traffic_items()
        ranks.close()

    workers = [threading.Thread(target=work, args=[ranks]) for ranks in graft.Ranks.threads(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    for losses, _, halo in results:
        np.testing.assert_allclose(losses, alone.history.column("loss"), rtol=1e-3)
        assert halo > 0
    check_traffic(exchanged)
    np.testing.assert_allclose(np.concatenate([logits for _, logits, _ in results]),
                               alone.predict(best=False, logits=True), rtol=1e-2, atol=1e-2)


def test_callbacks_that_are_refused(data):
    for callbacks in (print, [print, 3]):
        with pytest.raises(graft.ArgumentError, match="callbacks is .*, expected a list of functions"):
            graft.train(data, OPTIONS, callbacks=callbacks)


def test_a_child_process_trains(data):
    expected = [record["loss"] for record in graft.train(data, OPTIONS, threads=2).history]
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            trainer = graft.train(graft.Dataset(*arrays_of()), OPTIONS, threads=2)
            os._exit(int([record["loss"] for record in trainer.history] != expected))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
