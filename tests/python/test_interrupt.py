# SPDX-License-Identifier: Apache-2.0
"""Checks Ctrl-C at random moments of training. GRAFT_TEST_INTERRUPTS is the number of interrupts; 200 take a minute."""
import os
import signal
import threading
import time

import graft
import numpy as np
import pytest

N, TRIES, EPOCHS = 3000, int(os.environ.get("GRAFT_TEST_INTERRUPTS", "12")), 24
OPTIONS = {"model": "sage", "layers": 3, "hidden": 64, "epochs": EPOCHS, "threads": 2}


def make_data():
    draw = np.random.default_rng(3)
    labels = np.arange(N) % 3
    features = (draw.normal(size=(N, 48)) + (labels[:, None] == np.arange(48))).astype(np.float32)
    graph = np.arange(0, 4 * N + 1, 4), draw.integers(0, N, 4 * N), None, (N, N)
    return graft.Dataset(graph, features, labels, draw.permutation(np.repeat([1, 2, 3], N // 3)).astype(np.uint8))


def interrupt(action, delay):
    """Begin an action, and send SIGINT after `delay` seconds, whether it still runs or not. The result is the number
    of seconds between the signal and KeyboardInterrupt, and whether the action had ended."""
    sent, ended = [], False

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    try:
        timer.start()
        action()
        ended = True
        timer.join()
        time.sleep(5)
    except KeyboardInterrupt:
        return time.monotonic() - sent[0], ended
    return np.inf, ended


def test_an_interrupt_loses_nothing_and_training_goes_on():
    data, draw, worst, during = make_data(), np.random.default_rng(5), 0, 0
    begin = time.monotonic()
    expected = graft.train(data, OPTIONS, progress=False).history.column("loss")
    usual = time.monotonic() - begin
    for number in range(TRIES):
        trainer, delay = graft.Trainer(data, OPTIONS), usual * draw.random()
        # Nearly half of the interrupts are right after an epoch.
        action = trainer.fit if number % 2 else lambda: [trainer.epoch() for _ in range(EPOCHS)]
        seconds, ended = interrupt(action, delay)
        during, worst = during + (not ended), max(worst, seconds)
        assert trainer.history.column("epoch") == list(range(1, len(trainer.history) + 1))
        while len(trainer.history) < EPOCHS:
            trainer.epoch()
        assert trainer.history.column("loss") == expected and trainer.history[-1]["done"], number
        trainer.evaluate()
    assert worst < 1 and during > TRIES / 3, (worst, during)


def test_an_interrupt_ends_an_epoch_that_takes_long():
    trainer = graft.Trainer(make_data(), OPTIONS, hidden=256, layers=12, **{"dense.module": "reference"})
    seconds, ended = interrupt(trainer.epoch, 0.1)  # of several
    assert seconds < 1 and not ended and trainer.history == []


def test_ctrl_c_is_left_to_programs_that_handle_it():
    trainer, seen = graft.Trainer(make_data(), OPTIONS), []
    usual = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGINT]).start()
        assert len(trainer.fit(progress=False).history) == EPOCHS
        while not seen:
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGINT, usual)


def test_a_request_to_cancel_is_no_interrupt():
    trainer = graft.Trainer(make_data(), OPTIONS)
    trainer.context.cancel()
    try:
        trainer.epoch()
    except graft.CancelledError:
        assert trainer.history == [] and trainer.epoch()["epoch"] == 1
        return
    raise AssertionError("no call was cancelled")


def interrupt_late(context):
    """Press Ctrl-C after the last check of a call, which then succeeds."""
    def call(error):
        context._interrupt()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        context.call_long(call)


def test_a_late_interrupt_cancels_no_later_call(tmp_path):
    trainer = graft.Trainer(make_data(), OPTIONS)
    context = trainer.context
    trainer.epoch()
    expected = trainer.predict()
    interrupt_late(context)
    assert (trainer.predict() == expected).all()
    interrupt_late(context)
    trainer.model().save(tmp_path / "model")
    interrupt_late(context)
    model = graft.Model.load(tmp_path / "model", context=context)
    interrupt_late(context)
    assert (model.predict(make_data()) == expected).all()
    interrupt_late(context)
    assert trainer.epoch()["epoch"] == 2


def test_a_late_interrupt_cancels_no_stream():
    i, j = (axis.reshape(-1) for axis in np.meshgrid(np.arange(8), np.arange(8)))
    at = (i * 8 + j)[(i < 7) & (j < 7)]
    mesh = graft.Mesh(np.stack([i, j], 1) / 7.0, np.stack([at, at + 1, at + 8], 1).astype(np.int32))
    network = graft.Network(mesh, 2, 2, {"hidden": 8, "layers": 2, "mgn.linear": 2})
    interrupt_late(network.context)
    stream, states = graft.Stream(network), np.random.default_rng(2).normal(size=(9, 64, 2))
    for step, state in enumerate(states):
        interrupt_late(network.context)
        stream.offer(state, time=float(step), first=step == 0)
    interrupt_late(network.context)
    assert stream.step(1e4, max_steps=3)["steps_now"] == 3
    interrupt_late(network.context)
    assert network.train((states[0], states[1]))
    asked = []
    interrupt_late(network.context)
    with pytest.raises(graft.CancelledError, match="args.after"):
        network.rollout(states[0], 3, lambda state, step: asked.append(step) or True)
    assert len(asked) == 1


def test_a_late_interrupt_of_one_rank_cancels_no_call_of_all():
    found = {}

    def work(ranks):
        if ranks.rank == 1:
            ranks.context._interrupt()
        try:
            row_ptr = np.arange(5)
            first = 4 * ranks.rank
            graph = graft.Graph(ranks, (row_ptr, (first + row_ptr[1:]) % 8, None, (4, 8)), first_row=first)
            found[ranks.rank] = graph is not None
        except graft.Error as error:
            found[ranks.rank] = error

    threads = [threading.Thread(target=work, args=[one]) for one in graft.Ranks.threads(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: True, 1: True}


def test_a_request_to_cancel_after_a_late_interrupt_counts():
    trainer = graft.Trainer(make_data(), OPTIONS)
    interrupt_late(trainer.context)
    trainer.context.cancel()
    with pytest.raises(graft.CancelledError):
        trainer.epoch()
    interrupt_late(trainer.context)
    trainer.predict()
    trainer.context.cancel()
    with pytest.raises(graft.CancelledError):
        trainer.epoch()
    assert trainer.epoch()["epoch"] == 1
