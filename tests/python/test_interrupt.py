# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at random moments of training. GRAFT_TEST_INTERRUPTS is how many; 200 take a minute."""
import os
import signal
import threading
import time

import graft
import numpy as np

N, TRIES, EPOCHS = 3000, int(os.environ.get("GRAFT_TEST_INTERRUPTS", "12")), 24
OPTIONS = {"model": "sage", "layers": 3, "hidden": 64, "epochs": EPOCHS, "threads": 2}


def make_data():
    draw = np.random.default_rng(3)
    labels = np.arange(N) % 3
    features = (draw.normal(size=(N, 48)) + (labels[:, None] == np.arange(48))).astype(np.float32)
    graph = np.arange(0, 4 * N + 1, 4), draw.integers(0, N, 4 * N), None, (N, N)
    return graft.Dataset(graph, features, labels, draw.permutation(np.repeat([1, 2, 3], N // 3)).astype(np.uint8))


def interrupt(action, delay):
    """Begin an action, and send SIGINT after `delay` seconds, be it running or not: (the seconds from the signal to
    KeyboardInterrupt, whether the action had ended)."""
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
        # Nearly half of the moments are right after an epoch.
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
