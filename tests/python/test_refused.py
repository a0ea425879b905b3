# SPDX-License-Identifier: Apache-2.0
"""Checks collective calls in which one of three ranks passes an illegal argument. All ranks must raise at once: this
rank with its own message, and the others with its number. The next call must be bitwise identical to one without the
mistake."""
import functools
import re
import threading
import time
from types import SimpleNamespace

import graft
import numpy as np
import pytest

RANKS, WRONG, AT_ONCE, TIMEOUT = 3, 1, 3.0, 20  # in seconds; TIMEOUT is option halo.timeout
N, SIDE, WIDTH = 60, 7, 2
MODEL = {"model": "sage", "layers": 2, "hidden": 4, "epochs": 2}
NETWORK = {"hidden": 8, "layers": 2}
INTEGERS = np.zeros((N, WIDTH), int)


class Interrupted:
    """An array that raises KeyboardInterrupt while it is read, as after Ctrl-C."""

    def __array__(self, *_, **__):
        raise KeyboardInterrupt("Ctrl-C")


# ---- the data of a rank ----

def graph_of(s):
    """Make a ring with additional edges, of which each rank has a third, and a row for each vertex that the rank
    owns."""
    first, end = N * s.ranks.rank // RANKS, N * (s.ranks.rank + 1) // RANKS
    indices = (np.arange(first, end)[:, None] + [1, 5, 22]).reshape(-1) % N
    s.first, s.values = first, np.sin(np.arange(3.0 * (end - first)))
    s.rows = np.arange(0, 3 * (end - first) + 1, 3), indices, s.values, (end - first, N)
    s.graph = graft.Graph(s.ranks, s.rows, first_row=first)
    s.x = np.cos(np.add.outer(np.arange(end - first), np.arange(WIDTH)) + s.ranks.rank)
    s.slice = np.arange(end - first)


def plan_of(s):
    graph_of(s)
    s.plan, s.halo = graft.Plan(s.graph), graft.Halo(s.graph)
    s.of_halo = np.ones((len(s.halo.info()["vertex"]), WIDTH))


def stale_of(s):
    s.ranks.context["halo.staleness"] = 1
    plan_of(s)


def strip_of(s):
    """Make the triangles of a square, which is divided into strips."""
    i, j = (axis.reshape(-1) for axis in np.meshgrid(np.arange(SIDE - 1), np.arange(SIDE - 1)))
    at = j * SIDE + i
    cells = np.concatenate([np.stack([at, at + 1, at + SIDE + 1], 1), np.stack([at, at + SIDE + 1, at + SIDE], 1)])
    cells = cells[cells.min(1) // SIDE * RANKS // (SIDE - 1) == s.ranks.rank]
    s.ids, cells = np.unique(cells, return_inverse=True)
    s.cells, s.points = cells.reshape(-1, 3), np.stack([s.ids % SIDE, s.ids // SIDE], 1) / 7.0


def mesh_of(s, **more):
    return graft.Mesh(**{**dict(coordinates=s.points, cells=s.cells, ids=s.ids, kind="shared", ranks=s.ranks), **more})


def network_of(s):
    strip_of(s)
    s.mesh = mesh_of(s)
    s.network = graft.Network(s.mesh, WIDTH, WIDTH, NETWORK)
    s.state = np.sin(s.points @ [[1.0, 2.0], [3.0, 4.0]])
    s.later = s.state + 0.1 * s.points
    s.path = s.folder / f"{s.name}.safetensors"


def checked_of(s):
    s.ranks.context["check"] = "full"
    network_of(s)


def stream_of(s):
    network_of(s)
    s.stream = graft.Stream(s.network, {"stream.lag": 1})
    s.stream.offer(s.state, first=True)
    s.stream.offer(s.later)


def slice_of(s):
    graph_of(s)
    s.data = graft.Dataset((*s.rows[:2], None, s.rows[3]), s.x.astype(np.float32), s.slice % 3, s.slice % 4,
                           first_vertex=s.first, n_classes=3)


def trainer_of(s):
    slice_of(s)
    s.trainer = graft.Trainer(s.data, MODEL, ranks=s.ranks)


def model_of(s):
    trainer_of(s)
    s.model = s.trainer.model("last")
    s.path = s.folder / f"{s.name}.safetensors"
    if s.ranks.rank == 0:
        s.model.save(s.path)


def folder_of(s):
    graph_of(s)
    s.path = s.folder / s.name
    s.data = s.path
    if s.ranks.rank == 0:
        s.path.mkdir()
        np.save(s.path / "edges.npy", np.stack([np.arange(N), (np.arange(N) + 1) % N]).astype(np.int32))
        np.save(s.path / "features.npy", np.ones((N, 2), np.float32))
        np.save(s.path / "labels.npy", np.arange(N, dtype=np.int32) % 3)
        np.save(s.path / "split.npy", np.arange(N).astype(np.uint8) % 4)
    s.barrier.wait()


# ---- calls: `wrong` has the wrong arguments; it is empty on ranks and at times without a mistake ----

def make_graph(s, **wrong):
    return graft.Graph(s.ranks, **{**dict(rows=s.rows, first_row=s.first), **wrong}).owned()


def redistribute(s, **wrong):
    return s.graph.redistribute(**{**dict(x=s.x), **wrong})


def update_values(s, **wrong):
    s.graph.update_values(**{**dict(values=2 * s.values), **wrong})
    return graft.Plan(s.graph)(s.x)


def make_plan(s, **wrong):
    return graft.Plan(s.graph, **wrong)(s.x)


def begin(s, owner, in_end=True, **arguments):
    """Make a begin() and an end(). The end() of all ranks must raise, so that no rank waits in between; or begin()
    must raise, and then no end() may be called."""
    s.right_call = not in_end
    owner.begin(**arguments)
    s.right_call = in_end
    try:
        return owner.end()
    finally:
        assert getattr(owner, "_begun", None) is None  # arrays are no longer borrowed


def run_plan(s, **wrong):
    return begin(s, s.plan, **{**dict(x=s.x), **wrong})


def run_stateless(s, **wrong):
    return run_plan(s, stateless=True, **wrong)


def run_step(s, **wrong):
    return run_plan(s, in_end=False, **wrong)


def infer_checked(s, **wrong):
    return infer(s, in_end=False, **wrong)


def interrupt_plan(s, **wrong):
    return run_plan(s, in_end=s.ranks.rank != WRONG, **wrong)


def interrupt_halo(s, **wrong):
    return begin(s, s.halo, **{**dict(owned=s.x, in_end=s.ranks.rank != WRONG), **wrong})


def interrupt_network(s, **wrong):
    return begin(s, s.network, **{**dict(state=s.state, in_end=s.ranks.rank != WRONG), **wrong})


def call_plan(s, **wrong):
    return s.plan(**{**dict(x=s.x), **wrong})


def run_halo(s, **wrong):
    return begin(s, s.halo, **{**dict(owned=s.x), **wrong})


def sum_halo(s, **wrong):
    s.halo.begin_sum(**{**dict(owned=s.x.copy(), halo=s.of_halo), **wrong})
    return s.halo.end()


def exchange(s, **wrong):
    return s.halo.exchange(**{**dict(owned=s.x), **wrong})


def make_mesh(s, **wrong):
    return mesh_of(s, **wrong).view()["id"]


def make_network(s, **wrong):
    return graft.Network(s.mesh, **{**dict(n_in=WIDTH, n_out=WIDTH, options=NETWORK), **wrong})(s.state)


def infer(s, **wrong):
    return begin(s, s.network, **{**dict(state=s.state), **wrong})


def drop(s, **wrong):
    s.network.begin(**{**dict(state=s.state), **wrong})
    s.network.drop()


def call_network(s, **wrong):
    return s.network(**{**dict(state=s.state), **wrong})


def rollout(s, **wrong):
    return s.network.rollout(**{**dict(initial=s.state, steps=2), **wrong})


def ensemble(s, state=None, others=()):
    return graft.Network.ensemble([s.network, *others], s.state if state is None else state)


def train_network(s, pair=None):
    s.network.train((s.state, s.later) if pair is None else pair)
    return s.network(s.state)


def gradient(s, **wrong):
    return s.network.gradient(**{**dict(x=s.state, y=s.later), **wrong})


def save_and_load(s, save=None, load=None):
    s.network.save(s.path if save is None else save)
    s.network.load(s.path if load is None else load)


def make_stream(s, **wrong):
    return graft.Stream(s.network, **wrong).status()["capacity"]


def offer(s, **wrong):
    s.stream.offer(**{**dict(state=s.state, target=s.later), **wrong})
    return s.stream.status()["pairs"]


def step(s, **wrong):
    s.stream.step(**{**dict(budget=1e5, max_steps=2), **wrong})
    return s.network(s.state)


def save_stream(s, save=None, load=None):
    s.stream.save(s.path if save is None else save)
    s.stream.load(s.path if load is None else load)


def make_trainer(s, **wrong):
    trainer = graft.Trainer(**{**dict(dataset=s.data, options=MODEL, ranks=s.ranks), **wrong})
    loss = trainer.epoch()["loss"]
    trainer.close()
    return loss


def train(s, **wrong):
    trainer = graft.train(**{**dict(dataset=s.data, options=MODEL, ranks=s.ranks, progress=False), **wrong})
    losses = trainer.history.column("loss")
    trainer.close()
    return losses


def fit(s, **wrong):
    return s.trainer.fit(**{**dict(progress=False), **wrong}).history.column("loss")


def fit_and_stop(s, last=len):
    """Stop on all ranks after the first epoch that this call trains, before the last callback."""
    callbacks = [lambda trainer, _: trainer.stop(), lambda trainer, _: last(trainer.history)]
    return s.trainer.fit(callbacks, progress=False).history.column("loss")


def evaluate(s, **wrong):
    return s.trainer.evaluate(**wrong)


def predict(s, **wrong):
    return s.trainer.predict(**{**dict(best=False, logits=True), **wrong})


def update(s, dataset=None, what="features"):
    s.trainer.update(s.data if dataset is None else dataset, what)
    return s.trainer.epoch()["loss"]


def predict_model(s, **wrong):
    return s.model.predict(**{**dict(dataset=s.data, gives="logits", ranks=s.ranks), **wrong})


def load_model(s, **wrong):
    return graft.Model.load(**{**dict(path=s.path, ranks=s.ranks), **wrong}).widths


def open_dataset(s, **wrong):
    return graft.Dataset.open(**{**dict(path=s.path, ranks=s.ranks), **wrong}).labels


# ---- the table: the data, the call, the mistake, and words of the message ----

CASES = [
    (graph_of, make_graph, dict(rows=3), "rows is a builtins.int"),
    (graph_of, make_graph, dict(owner=[0, 1]), r"owner has shape \(2,\)"),
    (graph_of, make_graph, dict(dtype="int8"), "dtype is int8"),
    (graph_of, redistribute, dict(x=INTEGERS), r"x has shape \(60, 2\)"),
    (graph_of, redistribute, dict(to="ranks"), "to is 'ranks'"),
    (graph_of, redistribute, dict(x=Interrupted()), "Ctrl-C"),
    (graph_of, update_values, dict(values=[1j]), "values has type complex128"),
    (graph_of, make_plan, dict(width=2 ** 70), "width is"),
    (plan_of, run_plan, dict(x=INTEGERS), "x has type int64"),
    (plan_of, run_plan, dict(semiring="plus"), "semiring is 'plus'"),
    (plan_of, run_plan, dict(transposed=True), "flag 'transposed' is unknown"),
    (plan_of, run_plan, dict(row_scale=[1.0]), "row_scale has shape"),
    (plan_of, call_plan, dict(out=INTEGERS), "out has 60 rows"),
    (plan_of, call_plan, dict(out=3.0), "out has 0 dimensions"),
    (plan_of, interrupt_plan, dict(x=Interrupted()), "Ctrl-C"),
    (plan_of, interrupt_halo, dict(owned=Interrupted()), "Ctrl-C"),
    (plan_of, run_halo, dict(owned=INTEGERS), "owned has type int64"),
    (plan_of, run_halo, dict(halo=[1.0]), "halo has 1 rows"),
    (plan_of, sum_halo, dict(owned=np.ones((3, 2))), "owned has 3 rows"),
    (plan_of, exchange, dict(owned=np.ones(3)), "owned has 3 rows"),
    (stale_of, run_step, dict(x=INTEGERS), "x has type int64"),
    (stale_of, run_step, dict(x=Interrupted()), "Ctrl-C"),
    (stale_of, run_step, dict(semiring="plus"), "semiring is 'plus'"),
    (stale_of, run_stateless, dict(x=INTEGERS), "x has type int64"),
    (stale_of, run_stateless, dict(row_scale=[1.0]), "row_scale has shape"),
    (stale_of, run_stateless, dict(transposed=True), "flag 'transposed' is unknown"),
    (strip_of, make_mesh, dict(cells=np.ones((2, 3))), "expected integers"),
    (strip_of, make_mesh, dict(kind="own"), "kind is 'own'"),
    (strip_of, make_mesh, dict(threads="many"), "threads"),
    (network_of, make_network, dict(predicts="all"), "predicts is 'all'"),
    (network_of, make_network, dict(is_free=[1]), "is_free has shape"),
    (network_of, make_network, dict(options={"hidden": "wide"}), "hidden"),
    (network_of, infer, dict(state=INTEGERS), "state has type int64"),
    (network_of, interrupt_network, dict(state=Interrupted()), "Ctrl-C"),
    (checked_of, infer_checked, dict(state=INTEGERS), "state has type int64"),
    (network_of, drop, dict(state="u"), "state has type"),
    (network_of, call_network, dict(out=INTEGERS), "out has type int64"),
    (network_of, call_network, dict(state=INTEGERS, out=INTEGERS), "state has type int64"),
    (network_of, rollout, dict(initial=INTEGERS), "initial has type int64"),
    (network_of, rollout, dict(steps=2 ** 40), "steps is"),
    (network_of, ensemble, dict(state=INTEGERS), "state has type int64"),
    (network_of, ensemble, dict(others=[None]), "_handle"),
    (network_of, train_network, dict(pair=(INTEGERS, INTEGERS)), "input has type int64"),
    (network_of, train_network, dict(pair=(1, 2, 3)), "too many values"),
    (network_of, gradient, dict(y=INTEGERS), "target has type int64"),
    (network_of, save_and_load, dict(save="a\0b"), "has a byte 0"),
    (network_of, save_and_load, dict(load=3), "os.PathLike"),
    (network_of, make_stream, dict(options={"stream.lag": "long"}), "stream.lag"),
    (stream_of, offer, dict(state=INTEGERS), "state has type int64"),
    (stream_of, offer, dict(time="now"), "time is 'now'"),
    (stream_of, step, dict(budget="long"), "must be real number"),
    (stream_of, step, dict(max_steps=2 ** 40), "32"),
    (stream_of, save_stream, dict(save=3), "os.PathLike"),
    (stream_of, save_stream, dict(load="a\0b"), "has a byte 0"),
    (slice_of, make_trainer, dict(dataset=[]), "a list is no data set"),
    (slice_of, make_trainer, dict(dataset=SimpleNamespace(edge_index=None)), "the Data has no edge_index"),
    (slice_of, make_trainer, dict(options={"hiden": 3}), "hiden"),
    (slice_of, make_trainer, dict(context=3), "context is not that of ranks"),
    (slice_of, train, dict(callbacks=[3]), "expected a list of functions"),
    (slice_of, train, dict(resume=3), "apply"),
    (trainer_of, fit, dict(callbacks=print), "expected a list of functions"),
    (trainer_of, fit, dict(callbacks=[lambda trainer, record: 1 / 0]), "division by zero"),
    (trainer_of, evaluate, dict(best="all"), "all"),
    (trainer_of, predict, dict(best=2 ** 40), "32"),
    (trainer_of, update, dict(what="colours"), "update is given 'colours'"),
    (trainer_of, update, dict(dataset=3), "_struct"),
    (model_of, predict_model, dict(gives="all"), "predict is asked for 'all'"),
    (model_of, predict_model, dict(dataset=3), "a int is no data set"),
    (model_of, predict_model, dict(vertices=[0.5]), "vertices has type float64"),
    (model_of, load_model, dict(path="a\0b"), "has a byte 0"),
    (folder_of, open_dataset, dict(path=3), "os.PathLike"),
    (folder_of, train, dict(dataset="a\0b"), "has a byte 0"),
    (folder_of, train, dict(options={"hiden": 3}), "hiden"),
    (folder_of, train, dict(dataset=3), "a int is no data set")]


@functools.cache
def without_mistakes(folder, make, call):
    return [result for _, _, result, _ in over_ranks(folder, call.__name__, make, call, None)]


def over_ranks(folder, name, make, call, wrong):
    """Make the call with `wrong` on one of the ranks. The results are what each rank raises, after how many seconds,
    and what a correct call() returns afterwards."""
    barrier, found = threading.Barrier(RANKS), [None] * RANKS

    def run(ranks):
        s = SimpleNamespace(ranks=ranks, barrier=barrier, folder=folder, name=name, right_call=True)
        ranks.context["threads"], ranks.context["halo.timeout"] = 1, TIMEOUT
        raised, seconds, right_call = None, 0.0, True
        try:
            make(s)
            barrier.wait()
            if wrong is not None:
                begun = time.monotonic()
                try:
                    call(s, **(wrong if ranks.rank == WRONG else {}))
                except BaseException as error:
                    raised, seconds, right_call = error, time.monotonic() - begun, s.right_call
            found[ranks.rank] = raised, seconds, call(s), right_call
        except BaseException as error:
            found[ranks.rank] = error, seconds, None, False

    threads = [threading.Thread(target=run, args=[ranks], daemon=True) for ranks in graft.Ranks.threads(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * TIMEOUT)
    assert None not in found, "a rank does not return"
    return found


@pytest.mark.parametrize("make, call, wrong, words", CASES,
                         ids=[f"{call.__name__}-{'-'.join(wrong)}-{i}" for i, (_, call, wrong, _) in enumerate(CASES)])
def test_one_rank_refuses(make, call, wrong, words, tmp_path, tmp_path_factory):
    found = over_ranks(tmp_path, "wrong", make, call, wrong)
    for rank, (error, seconds, _, right_call) in enumerate(found):
        assert error is not None and seconds < AT_ONCE and right_call, f"{rank}: {error!r}, {seconds} s"
        if rank == WRONG:
            assert re.search(words, str(error)) and not isinstance(error, graft.PeerError), repr(error)
            assert isinstance(error, Exception) or words == "Ctrl-C", repr(error)
        else:
            assert isinstance(error, graft.ArgumentError) and error.rank == WRONG, repr(error)
            assert str(error).startswith(f"rank {WRONG}: "), repr(error)
    expected = without_mistakes(tmp_path_factory.getbasetemp(), make, call)
    np.testing.assert_equal([result for _, _, result, _ in found], expected)


def test_exception_after_stop(tmp_path):
    """After stop() no other rank calls epoch(). An exception of a later callback is therefore raised on its rank at
    once."""
    found = over_ranks(tmp_path, "stopped", trainer_of, fit_and_stop, dict(last=lambda _: 1 / 0))
    for rank, (error, seconds, losses, _) in enumerate(found):
        assert isinstance(error, ZeroDivisionError) if rank == WRONG else error is None, f"{rank}: {error!r}"
        assert seconds < AT_ONCE and len(losses) == 2 and losses == found[0][2]


def alone(refused, call):
    """Check the PeerError of a rank whose peers have ended, instead of the exception that `refused` names."""
    with pytest.raises(graft.PeerError) as raised:
        call()
    assert isinstance(raised.value.__cause__, graft.ArgumentError) and refused in str(raised.value.__cause__)


@pytest.mark.parametrize("in_end", [False, True])
def test_dead_transport_is_raised(in_end):
    def run(ranks):
        s = SimpleNamespace(ranks=ranks)
        ranks.context["threads"], ranks.context["halo.timeout"] = 1, 1
        plan_of(s)
        if ranks.rank == WRONG and in_end:
            s.plan.begin(INTEGERS)
            alone("x has type int64", s.plan.end)
            assert s.plan._begun is None
        elif ranks.rank == WRONG:
            alone("x has shape (60, 2)", lambda: s.graph.redistribute(INTEGERS))
        done[ranks.rank] = True
        barrier.wait()  # objects of a rank that has ended must exist until then

    done, barrier = [False] * RANKS, threading.Barrier(RANKS)
    threads = [threading.Thread(target=run, args=[ranks], daemon=True) for ranks in graft.Ranks.threads(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert all(done)
