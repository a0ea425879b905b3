#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks graft-train, the program for users without code of their own: options, output, checkpoints, reports and
errors: test_graft_train.py GRAFT-TRAIN. Prints TAP."""
import fcntl
import json
import math
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import termios
import time

from small_data import N, N_CLASSES, N_FEATURES, write_npy
from train_host import (MODEL, TIMEOUT, base, data, differing_tensors, labels, n_edges, program, read_npy,
                        read_safetensors, refused, run, split)
from model_file import pack, seal, unpack, unseal
from tap import done, ok, skip


def test_training():
    out = f"{base}/first"
    os.mkdir(out)
    result = run(data, *MODEL, "--set", "epochs=30", "--json", f"{out}/r.json", "--predict", f"{out}/p.npy")
    if not ok(result.returncode == 0, "training ends well", result.stdout, result.stderr):
        return
    with open(f"{out}/r.json") as file:
        report = json.load(file)
    ok(report["test_accuracy"] > 0.95, "the communities are learnt", report["test_accuracy"])
    types = dict(test_accuracy=float, val_accuracy=float, train_accuracy=float, epochs=int, best_epoch=int,
                 seconds_per_epoch=float, seconds_total=float, kernel=str, peak_rss_bytes=int, vertices=int,
                 edges=int, features=int, classes=int, options=dict, history=list)
    wrong = [key for key, kind in types.items() if not isinstance(report.get(key), kind)]
    ok(not wrong, "the report has every key with its type", wrong)
    facts = [report[key] for key in ("vertices", "edges", "features", "classes", "epochs")]
    ok(facts == [N, n_edges, N_FEATURES, N_CLASSES, 30], "the report describes the data set", facts)
    ok(report["kernel"] in ("simd", "graphblas", "reference") and
       re.search(rf"kernel +{report['kernel']}\n", result.stdout), "the report names the kernel that ran",
       report["kernel"])
    options = report["options"]
    ok(options.get("hidden") == "16" and "seed" in options and all(isinstance(v, str) for v in options.values()),
       "the report has options that were set and those that were not, as texts", options)
    history = report["history"]
    ok([e["epoch"] for e in history] == list(range(1, 31)), "the history has every epoch once")
    keys = {"epoch", "loss", "learning_rate", "train_accuracy", "val_accuracy", "test_accuracy", "seconds"}
    ok(all(set(e) == keys and isinstance(e["loss"], float) for e in history), "its entries have their keys")
    best = history[report["best_epoch"] - 1]
    ok(best["val_accuracy"] == max(e["val_accuracy"] for e in history) == report["val_accuracy"] and
       best["test_accuracy"] == report["test_accuracy"], "accuracies are those of the best validation", best)
    times = sorted(e["seconds"] for e in history)
    ok(abs(report["seconds_per_epoch"] - (times[14] + times[15]) / 2) < 1e-8, "seconds_per_epoch is the median")
    lines = [line for line in result.stdout.splitlines() if line.startswith("epoch ")]
    ok(len(lines) == 30 and "\r" not in result.stdout and "\033" not in result.stdout,
       "in a pipe there is one plain line per epoch", result.stdout)
    ok(re.search(r"test accuracy +[01]\.\d+", result.stdout) and "peak memory" in result.stdout and
       f"{out}/p.npy" in result.stdout, "the summary has accuracy, memory and files", result.stdout)
    descr, shape, predicted = read_npy(f"{out}/p.npy")
    ok(descr == "<i4" and shape == (N,) and len(predicted) == N, "predictions are int32, one per vertex")
    test = [v for v in range(N) if split[v] == 3]
    share = sum(predicted[v] == labels[v] for v in test) / len(test)
    ok(abs(share - report["test_accuracy"]) < 1e-6, "predictions have the accuracy that is reported", share)
    ok(sorted(os.listdir(out)) == ["p.npy", "r.json"], "no temporary file is left", os.listdir(out))


def test_regression():
    """A regression: the target is the mean of the features of the neighbours, and a tenth of the targets is unknown."""
    folder, out = f"{base}/numbers", f"{base}/numbers.out"
    shutil.copytree(data, folder)
    os.remove(f"{folder}/labels.npy")
    os.mkdir(out)
    with open(f"{folder}/features.npy", "rb") as file:
        x = struct.unpack(f"<{N * N_FEATURES}f", file.read()[-4 * N * N_FEATURES:])
    with open(f"{folder}/edges.npy", "rb") as file:
        ends = struct.unpack(f"<{2 * n_edges}i", file.read()[-8 * n_edges:])
    near = [[ends[i] for i in range(n_edges) if ends[n_edges + i] == v] for v in range(N)]
    values = []
    for v in range(N):
        values += [sum(x[u * N_FEATURES] for u in near[v]) / max(1, len(near[v])), x[v * N_FEATURES + 1] - 3]
    known = list(values)
    known[::10] = [math.nan] * len(known[::10])
    write_npy(f"{folder}/targets.npy", "<f4", "f", (N, 2), known)
    result = run(folder, "--set", "layers=1", "lr=0.05", "epochs=150", "--json", f"{out}/r.json", "--predict",
                 f"{out}/p.npy")
    if not ok(result.returncode == 0, "a regression ends well", result.stdout, result.stderr):
        return
    with open(f"{out}/r.json") as file:
        report = json.load(file)
    scores = {f"{split}_{score}" for split in ("train", "val", "test") for score in ("rmse", "r2")}
    ok(report["test_r2"] > 0.95 and "test_accuracy" not in report, "the report has R^2", report["test_r2"])
    keys = {"epoch", "loss", "learning_rate", "seconds"} | scores
    ok(all(set(e) == keys for e in report["history"]), "so has its history", report["history"][0])
    best = report["history"][report["best_epoch"] - 1]
    ok(best["val_rmse"] == min(e["val_rmse"] for e in report["history"]) and
       all(best[key] == report[key] for key in scores), "the best epoch has the lowest loss, the square of RMSE")
    ok(re.search(r"test RMSE +0\.\d+, validation", result.stdout) and
       re.search(r"test R\^2 +[01]\.\d+", result.stdout) and "by validation loss" in result.stdout and
       "accuracy" not in result.stdout and
       re.search(r"epoch 1/150  loss \S+  R\^2 train \S+  val \S+  test ", result.stdout),
       "progress and summary too", result.stdout)
    with open(f"{out}/p.npy", "rb") as file:
        raw = file.read()
    predicted = struct.unpack(f"<{2 * N}f", raw[-8 * N:])
    ok(b"'<f4'" in raw and f"({N}, 2)".encode() in raw and len(raw) % 64 == 8 * N % 64, "outputs are float32 [n, 2]")
    of_test = [i for i in range(2 * N) if split[i // 2] == 3 and not math.isnan(known[i])]
    rmse = math.sqrt(sum((predicted[i] - known[i]) ** 2 for i in of_test) / len(of_test))
    ok(abs(rmse - report["test_rmse"]) < 1e-5, "they have the RMSE that is reported", rmse)
    run(folder, "--set", "layers=1", "epochs=1", "--save", out)
    model = ["--model", f"{out}/checkpoint.safetensors"]
    refused("a regression has no probabilities", run(folder, *model, "--probabilities", f"{out}/l.npy"), 1,
            "float targets", "probabilities")
    write_npy(f"{out}/list.npy", "<i4", "i", (2,), [5, 0])
    result = run(folder, *model, "--vertices", f"{out}/list.npy", "--predict", f"{out}/l.npy")
    ok(result.returncode == 0 and read_npy(f"{out}/l.npy")[1] == (2, 2), "but outputs for a list", result.stderr)


def test_rare_evaluation():
    path = f"{base}/rare.json"
    result = run(data, *MODEL, "--set", "epochs=7", "eval_every=3", "--json", path, "--kernel",
                 "simd.generic")
    if not ok(result.returncode == 0, "training with eval_every ends well", result.stderr):
        return
    with open(path) as file:
        report = json.load(file)
    measured = [e["epoch"] for e in report["history"] if e["val_accuracy"] is not None]
    ok(measured[:2] == [3, 6] and 1 not in measured, "what was not measured is null", measured)
    ok(report["kernel"] == "simd.generic", "--kernel chooses the kernel, and its whole name is reported",
       report["kernel"])
    result = run(data, "--set", "model=mlp", "epochs=1", "--json", path)
    with open(path) as file:
        report = json.load(file)
    ok(result.returncode == 0 and report["kernel"] == "none", "a model without a graph runs no kernel",
       report["kernel"], result.stderr)


def test_usage():
    refused("an unknown option is refused with the nearest name", run(data, "--set", "hiden=3"), 2, "hiden", "hidden")
    refused("a value out of range is refused", run(data, "--set", "dropout=1.5"), 2, "dropout", "1.5")
    refused("a setting without = is refused", run(data, "--set", "hidden"), 2, "hidden")
    refused("a second data set is refused", run(data, "other"), 2, "other")
    refused("no data set is refused", run(), 2, "DATASET")
    for name, result in (("--kernel", run(f"{base}/nowhere", "--kernel", "simd.nonesuch")),
                         ("--set", run(f"{base}/nowhere", "--set", "mxm.kernel=simd.nonesuch")),
                         ("the environment", run(f"{base}/nowhere", env={"GRAFT_MXM_KERNEL": "simd.nonesuch"}))):
        refused(f"an unknown kernel in {name} is refused with those there are, before the data set is read", result, 2,
                "simd.nonesuch", "auto", "reference", "simd.generic")
    ok(run(data, "--nonesuch").returncode == 2, "an unknown argument is a usage error")
    refused("a missing data set is named", run(f"{base}/nowhere"), 1, f"{base}/nowhere")
    refused("a missing library is named", run(data, env={"GRAFT_LIBRARY": "/nowhere/libgraft.so"}), 1,
            "/nowhere/libgraft.so")
    text = run("--version")
    ok(text.returncode == 0 and re.fullmatch(r"graft-train: Graft \d+\.\d+\.\d+, contract 1, \S+\n", text.stdout),
       "--version", text.stdout)
    text = run("--help")
    ok(text.returncode == 0 and "--resume" in text.stdout, "--help", text.stdout)


def test_list_options():
    result = run("--list-options")
    keys = re.findall(r"^  ([a-z._]+)=", result.stdout, re.MULTILINE)
    wanted = ["model", "layers", "hidden", "epochs", "lr", "dropout", "input_dropout", "norm", "weight_decay",
              "optimizer", "seed", "threads", "eval_every", "mxm.kernel"]
    ok(result.returncode == 0 and not set(wanted) - set(keys), "--list-options lists the options", result.stdout)
    every = run("--list-options=all").stdout
    found = re.findall(r"^  ([a-z0-9._]+)=", every, re.MULTILINE)
    groups = re.findall(r"^(\w.*)$", every, re.MULTILINE)
    ok(found and len(set(found)) == len(found) and set(keys) < set(found) and "halo.rounding" not in keys and
       "halo.rounding" in found, "--list-options=all lists those for experts too", every)
    ok(len(set(groups)) == len(groups) > 4 and all(len(line) <= 100 for line in every.splitlines()),
       "each group stands together, in 100 columns", every)
    odd = [line for line in every.splitlines()
           if not re.match(r"(\w.*|  (?=[a-z0-9._]+=)(?=.{28}  \S)\S+ +\S.*| {32}\S.*|)$", line)]
    ok(not odd, "options stand in one column, and what is said of them in another", *odd)
    result = run("--list-options=none")
    ok(result.returncode == 2 and "found 'none'" in result.stderr, "another list is refused", result.stderr)


def test_resume():
    """Train, interrupt, and resume. The checkpoint base/straight after 10 epochs is for later tests."""
    folder = {name: f"{base}/{name}" for name in ("straight", "half", "resumed", "again")}
    steps = [run(data, *MODEL, "--set", "epochs=10", "--save", folder["straight"], "--predict", f"{base}/s.npy"),
             run(data, *MODEL, "--set", "epochs=5", "threads=2", "--save", folder["half"]),
             run(data, *MODEL, "--set", "epochs=10", "threads=1", "--resume", folder["half"],
                 "--save", folder["resumed"], "--predict", f"{base}/h.npy")]
    if not ok(all(step.returncode == 0 for step in steps), "saving and resuming end well", [s.stderr for s in steps]):
        return False
    file = "/checkpoint.safetensors"
    metadata, tensors = read_safetensors(folder["straight"] + file)
    ok(metadata["format"] == "graft.model/1" and metadata["model.hidden"] == "16" and metadata["content"] == "state" and
       metadata["n_features"] == str(N_FEATURES) and metadata["n_classes"] == str(N_CLASSES) and
       metadata["training.lr"] == "0.02" and re.match(r"\d", metadata["release"]),
       "the metadata say what made it", metadata)
    names = set(tensors)
    weights = {name for name in names if name.startswith("layers.")}
    ok(weights and {"best." + name for name in weights} <= names and
       {"optimizer.m." + name for name in weights} <= names and "progress.epoch" in names,
       "weights, best weights, moments and counters are in it", sorted(names))
    ok(struct.unpack("<q", tensors["progress.epoch"][2]) == (10,), "the epoch is in it")
    differing = differing_tensors(folder["straight"] + file, folder["half"] + file)
    ok(differing, "training goes on after 5 epochs")
    differing = differing_tensors(folder["straight"] + file, folder["resumed"] + file)
    ok(not differing, "5 epochs, saved, and 5 more give the bits of 10", differing)
    ok(read_npy(f"{base}/s.npy") == read_npy(f"{base}/h.npy"), "and the same predictions")
    lines = [line for line in steps[2].stdout.splitlines() if line.startswith("epoch ")]
    ok(len(lines) == 5 and lines[0].startswith("epoch 6/10 "), "it begins with epoch 6", lines)
    result = run(data, *MODEL, "--set", "epochs=10", "--resume", folder["resumed"], "--save", folder["again"],
                 "--json", f"{base}/again.json")
    with open(f"{base}/again.json") as stream:
        report = json.load(stream)
    ok(result.returncode == 0 and "nothing left to train" in result.stdout and report["history"] == [] and
       report["test_accuracy"] > 0 and report["seconds_per_epoch"] is None,
       "a finished run is only measured", result.stdout, result.stderr)
    ok(not differing_tensors(folder["straight"] + file, folder["again"] + file), "and its state stays the same")
    refused("another width is refused with tensor, shapes and option",
            run(data, "--set", "model=sage", "layers=2", "hidden=24", "--resume", folder["half"]), 1,
            folder["half"] + file, "layers.0", "16]", "24]", "hidden=16 (now 24)")
    result = run(data, *MODEL, "--set", "lr=0.5", "epochs=6", "--resume", folder["half"])
    ok(result.returncode == 0 and "warning" in result.stderr and "lr=0.02 (now 0.5)" in result.stderr,
       "another learning rate is a warning", result.stderr)
    return True


def test_bad_checkpoints():
    source = f"{base}/straight/checkpoint.safetensors"
    folder = f"{base}/bad"
    os.mkdir(folder)
    with open(source, "rb") as file:
        good = file.read()
    start = 8 + struct.unpack("<Q", good[:8])[0]
    header = json.loads(good[8:start])
    first = next(name for name in header if name.startswith("layers."))
    begin, end = header[first]["data_offsets"]
    ended = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")

    def edited(change, data=good[start:]):
        copy = unseal(json.loads(json.dumps(header)))
        change(copy)
        return pack(copy, data)

    def sealed(change):
        copy = json.loads(json.dumps(header))
        change(copy["__metadata__"])
        return pack(copy, good[start:])

    def flipped(offset):
        return good[:offset] + bytes([good[offset] ^ 0x41]) + good[offset + 1:]

    def rename(copy):
        copy["layers.9.surprise"] = copy.pop(first)

    two_names = json.dumps(header)[:-1] + f', "{first}": {json.dumps(header[first])}}}'
    cases = {
        "an empty file": (b"", "byte 0"),
        "a cut length": (good[:5], "byte 5"),
        "a cut header": (good[:start - 10], f"ends at byte {start - 10}", f"header ends at byte {start}"),
        "cut data": (good[:-4], f"ends at byte {len(good) - 4}", f"last tensor ends at byte {len(good)}"),
        "no data": (good[:start], f"ends at byte {start}", f"last tensor ends at byte {len(good)}"),
        "trailing data": (good + bytes(8), f"ends at byte {len(good) + 8}"),
        "a header beyond the file": (struct.pack("<Q", len(good)) + good[8:], "header"),
        "a header of 2^63 bytes": (struct.pack("<Q", 2 ** 63) + good[8:], "header"),
        "a flipped high byte of the length": (flipped(7), "header"),
        "a flipped first brace": (flipped(8), "byte 8", "JSON"),
        "a header that is a list": (struct.pack("<Q", 8) + b"[1, 2]  ", "byte 8", "JSON"),
        "broken JSON": (good[:start - 20] + b"\x00" * 20 + good[start:], "byte "),
        "a name twice": (struct.pack("<Q", len(two_names)) + two_names.encode() + good[start:], "gap or overlap"),
        "metadata that are no texts": (edited(lambda h: h["__metadata__"].update(format=1)), "byte ", "a text"),
        "an unknown type": (edited(lambda h: h[first].update(dtype="BF16")), "BF16", "byte "),
        "a negative extent": (edited(lambda h: h[first].update(shape=[-1, -1])), "byte ", "count"),
        "five dimensions": (edited(lambda h: h[first].update(shape=[1] * 5)), "byte ", "list of counts"),
        "an extent that is a text": (edited(lambda h: h[first].update(shape=["8", "16"])), "byte ", "count"),
        "extents whose product wraps": (edited(lambda h: h[first].update(shape=[2 ** 59, 2 ** 59, 16])), first),
        "a shape of another size": (edited(lambda h: h[first].update(shape=[3, 3])), first),
        "offsets in the wrong order": (edited(lambda h: h[first].update(data_offsets=[end, begin])),
                                       "byte ", "begin and the end"),
        "offsets beyond the file": (edited(lambda h: h[first].update(data_offsets=[begin, 2 ** 40])), first),
        "a last tensor of 2^62 bytes": (edited(lambda h: h.update(extra={"dtype": "F32", "shape": [2 ** 60],
                                                                         "data_offsets": [ended, ended + 2 ** 62]})),
                                        "byte ", "18 digits"),
        "offsets that are missing": (edited(lambda h: h[first].pop("data_offsets")), "byte ", "data_offsets"),
        "two tensors in one place": (edited(lambda h: h.update({"copy": h[first]})), "gap or overlap"),
        "an entry that is a number": (edited(lambda h: h.update({first: 3})), "byte ", "type, shape and place"),
        "a flipped bit of a weight": (flipped(start + begin + 1), first, f"byte {start + begin} to", "CRC32C"),
        "a flipped bit of an option": (good.replace(b'"model.hidden":"16"', b'"model.hidden":"17"'),
                                       f"from byte 8 to byte {start}", "crc32c.header"),
        "an aggregator of a later release": (edited(lambda h: h["__metadata__"].update({"model.aggregator": "median"})),
                                             "'aggregator' of the model is 'median'", "one of mean|sum|max|min"),
        "no checksum of the header": (sealed(lambda texts: texts.pop("crc32c.header")), "no 'crc32c.header'"),
        "no checksums of the tensors": (sealed(lambda texts: texts.pop("crc32c")), "no 'crc32c'"),
        "a missing tensor": (edited(rename), first),
        "an unknown tensor": (edited(lambda h: h.update(extra={"dtype": "F32", "shape": [2],
                                                               "data_offsets": [ended, ended + 8]}),
                                     good[start:] + bytes(8)), "extra"),
        "a type of the same size": (edited(lambda h: h["progress.epoch"].update(dtype="F64")), "progress.epoch"),
        "an epoch below zero": (edited(lambda h: None, b"".join(
            [good[start:][:header["progress.epoch"]["data_offsets"][0]], struct.pack("<q", -1),
             good[start:][header["progress.epoch"]["data_offsets"][1]:]])), "progress.epoch"),
    }
    for name, (content, *words) in cases.items():
        with open(f"{folder}/checkpoint.safetensors", "wb") as file:
            file.write(content)
        result = run(data, *MODEL, "--resume", folder, "--json", f"{base}/never.json")
        refused(f"a checkpoint with {name} is refused", result, 1, f"{folder}/checkpoint.safetensors", *words)
    ok(not os.path.exists(f"{base}/never.json"), "and nothing was written")
    refused("a missing checkpoint is named", run(data, "--resume", f"{base}/nowhere"), 1,
            f"{base}/nowhere/checkpoint.safetensors")
    with open(f"{folder}/checkpoint.safetensors", "wb") as file:
        file.write(edited(lambda h: h.pop("__metadata__")))
    result = run(data, *MODEL, "--set", "epochs=11", "--resume", folder)
    refused("one without metadata is refused", result, 1, "have no 'format'")


def rewrite_backwards(path, other):
    """Write the same model with its tensors in the opposite order, as another program may do."""
    metadata, tensors = read_safetensors(path)
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, shape, content) in reversed(tensors.items()):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    with open(other, "wb") as file:
        file.write(pack(header, data))


def test_saved_model():
    """A checkpoint is a model file that any host, and PyTorch, can read."""
    saved = f"{base}/straight/checkpoint.safetensors"
    result = run(data, "--model", saved, "--predict", f"{base}/m.npy")
    ok(result.returncode == 0 and read_npy(f"{base}/m.npy") == read_npy(f"{base}/s.npy"),
       "a saved model predicts without training, whatever the options", result.stderr)
    rewrite_backwards(saved, f"{base}/backwards.safetensors")
    result = run(data, "--model", f"{base}/backwards.safetensors", "--predict", f"{base}/m.npy")
    ok(result.returncode == 0 and read_npy(f"{base}/m.npy") == read_npy(f"{base}/s.npy"),
       "also with its tensors in another order", result.stderr)
    result = run(data, "--set", "epochs=1", "--save", f"{base}/straight2", *MODEL)
    os.chmod(f"{base}/straight2/checkpoint.safetensors", 0o600)
    result = run(data, "--set", "epochs=2", "--save", f"{base}/straight2", *MODEL)
    ok(os.stat(f"{base}/straight2/checkpoint.safetensors").st_mode & 0o777 == 0o600, "the mode of a file stays")
    ok(os.path.exists(f"{base}/straight2/checkpoint.safetensors.previous"), "the file before stays", result.stderr)
    with open(f"{base}/straight2/checkpoint.safetensors", "r+b") as file:
        file.truncate(100)
    refused("the message of a damaged one names it", run(data, *MODEL, "--resume", f"{base}/straight2"), 1,
            "checkpoint.safetensors.previous' is good")
    with open(saved, "rb") as file:
        header, content = unpack(file.read())
    ok(seal(json.loads(json.dumps(header)), content) == header, "its checksums are those of graft_model.h", header)
    refused("a model alone writes nothing", run(data, "--model", saved), 2, "--predict")
    refused("a model and training exclude each other",
            run(data, "--model", saved, "--predict", f"{base}/x.npy", "--save", base), 2, "--save")
    read_by_package(saved)


def read_by_package(saved):
    again = f"{base}/again.safetensors"
    try:
        from safetensors import safe_open
        from safetensors.numpy import save_file
    except ImportError:
        skip("the Python package safetensors reads the file", "the package is not installed")
        return
    with safe_open(saved, framework="np") as file:
        metadata, tensors = read_safetensors(saved)
        same = set(file.keys()) == set(tensors) and file.metadata() == metadata and all(
            file.get_tensor(name).tobytes() == tensors[name][2] for name in tensors)
        save_file({name: file.get_tensor(name) for name in file.keys()}, again, file.metadata())
    ok(same, "the Python package safetensors reads the file", metadata)
    result = run(data, "--model", again, "--predict", f"{base}/m.npy")
    ok(result.returncode == 0 and result.stderr == "" and read_npy(f"{base}/m.npy") == read_npy(f"{base}/s.npy"),
       "and what it writes is loaded, with the checksums", result.stderr)


def limit_files():
    """Let writing beyond 4 kB fail from here on, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_unwritable():
    small = [data, *MODEL, "--set", "epochs=2"]
    missing = f"{base}/no/r.json"
    refused("a report in a missing folder is refused", run(*small, "--json", missing), 1, missing)
    refused("a folder as a file is refused", run(*small, "--predict", base), 1, base)
    refused("a file as a folder is refused", run(*small, "--save", f"{data}/labels.npy"), 1, f"{data}/labels.npy")
    with open(f"{base}/full.npy", "wb") as file:
        file.write(b"old")
    result = run(*small, "--json", "/dev/full", "--predict", f"{base}/full.npy")
    refused("a full device is told", result, 1, "/dev/full")
    ok(read_npy(f"{base}/full.npy")[1] == (N,), "and the other outputs are written")
    ok(f"{base}/full.npy" in result.stdout and "/dev/full" not in result.stdout,
       "the summary lists the files that were written, and no other", result.stdout)
    with open("/dev/full", "w") as full:
        refused("a full standard output is told", run(*small, stdout=full), 1, "standard output")
    folder = f"{base}/kept"
    shutil.copytree(f"{base}/straight", folder)
    result = run(*small, "--save", folder, "--predict", f"{base}/limit.npy", preexec_fn=limit_files)
    refused("a checkpoint that does not fit is told", result, 1, f"{folder}/checkpoint.safetensors")
    ok(not differing_tensors(f"{folder}/checkpoint.safetensors", f"{base}/straight/checkpoint.safetensors") and
       sorted(os.listdir(folder)) == sorted(os.listdir(f"{base}/straight")),
       "the old one is as it was, with nothing beside it")
    ok(read_npy(f"{base}/limit.npy")[1] == (N,) and f"{base}/limit.npy" in result.stdout and
       folder not in result.stdout, "and the predictions are written", result.stdout)


def test_wrong_labels():
    """A bit flips in one label of the data set."""
    folder = f"{base}/flipped"
    shutil.copytree(data, folder)
    for bit, words in ((14, ("vertex 7 has label 16385", "16386 classes", "300 vertices have labels")), (30, ("7",))):
        write_npy(f"{folder}/labels.npy", "<i4", "i", (N,), [*labels[:7], labels[7] ^ 1 << bit, *labels[8:]])
        refused(f"bit {bit} of a label is refused", run(folder, *MODEL, "epochs=1"), 1, "labels.npy", *words)
    write_npy(f"{folder}/labels.npy", "<i4", "i", (N,), [*labels[:7], labels[7] ^ 1 << 7, *labels[8:]])
    result = run(folder, *MODEL, "epochs=1")
    ok(result.returncode == 0 and "126 of 130 classes have no vertex" in result.stderr and
       "largest label is 129, of vertex 7" in result.stderr, "a lower one is a warning", result.stderr)


def on_terminal(columns, locale, *args):
    """Run the program on a terminal with so many columns, and return its output."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", LC_ALL=locale)
        os.execv(program, [program, *args])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    output = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:
            break
        if not block:
            break
        output += block
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return status, output.decode()


def test_terminal():
    for columns, locale, full in ((110, "C.UTF-8", "█"), (80, "C", "#"), (40, "C", "#")):
        name = f"on a terminal of {columns} columns, {locale}"
        try:
            status, text = on_terminal(columns, locale, data, *MODEL, "--set", "epochs=300")
        except OSError as problem:
            skip("the bar on a terminal", f"there is no pseudo-terminal here: {problem}")
            continue
        ok(status == 0, f"{name}: training ends well", text)
        drawn = re.findall(r"\r\033\[K([^\r]+)", text)
        ok(drawn and full in drawn[-1] and "300/300 " in drawn[-1], f"{name}: a bar appears", drawn[-2:])
        ok(drawn and len(drawn) < 300 and all(len(line) < columns for line in drawn), f"{name}: in one line",
           [line for line in drawn if len(line) >= columns])
        ok(drawn and drawn[-1] + "\r\n" in text, f"{name}: it ends with a newline", text[-400:])
        shown = ["loss ", "train ", "val ", "test ", "s ", " left"] if columns >= 80 else ["loss "]
        ok(drawn and all(word in drawn[-1] for word in shown), f"{name}: with the numbers", drawn[-1:])


def test_nonfinite():
    """A loss that is not finite ends the run with status 1. The last good state is saved and can be resumed."""
    folder = f"{base}/diverged"
    result = run(data, *MODEL, "--set", "lr=1e30", "eval_every=0", "epochs=9", "--save", folder)
    ok(result.returncode == 1 and "the loss is" in result.stderr and "Try a smaller lr" in result.stderr and
       f"the last good state is saved in '{folder}/checkpoint.safetensors'" in result.stderr,
       "training that diverges ends with 1 and says what to try", result.returncode, result.stderr)
    result = run(data, *MODEL, "--set", "lr=0.01", "epochs=3", "--resume", folder)
    ok(result.returncode == 0, "what it saved can be resumed", result.stderr)
    result = run(data, *MODEL, "--set", "lr=1e30", "epochs=9", "on_nonfinite=restore", "--json", f"{base}/back.json")
    ok(result.returncode == 0 and "the learning rate was halved" in result.stderr,
       "with on_nonfinite=restore it goes on", result.stderr)
    with open(f"{base}/back.json") as file:
        history = json.load(file)["history"]
    ok([entry["epoch"] for entry in history] == list(range(1, 10)) and
       all(math.isfinite(entry["loss"]) for entry in history), "and reports every epoch once, with its loss", history)


def test_patience():
    """Training must end early after a number of epochs without improvement of the validation. That is not a failure."""
    folder, report = f"{base}/patient", f"{base}/patient.json"
    result = run(data, *MODEL, "--set", "epochs=900", "patience=4", "--save", folder, "--json", report)
    found = re.search(r"stopped early after epoch (\d+) of 900: no better validation in 4 epochs", result.stdout)
    if not ok(result.returncode == 0 and found, "patience ends training with 0 and a line", result.stdout[-600:],
              result.stderr):
        return
    with open(report) as file:
        told = json.load(file)
    ok(told["stopped_early"] and not told["interrupted"] and told["epochs"] == int(found.group(1)) and
       told["epochs"] - told["best_epoch"] == 4, "the report says so", told["epochs"], told["best_epoch"])
    result = run(data, *MODEL, "--set", f"epochs={told['epochs'] + 1}", "--resume", folder, "--json", report)
    ok(result.returncode == 0 and "stopped early" not in result.stdout, "what it saved goes on", result.stderr)


def test_interrupt():
    folder = f"{base}/stopped"
    child = subprocess.Popen([program, data, *MODEL, "--set", "epochs=100000000", "--save", folder, "--json",
                              f"{base}/stopped.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    for line in child.stdout:
        if line.startswith("epoch 3/"):
            break
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=TIMEOUT)
    found = re.search(r"interrupted after epoch (\d+) of \d+, saved in '(.*)'", errors)
    if not ok(child.returncode == 130 and found and found.group(2) == f"{folder}/checkpoint.safetensors",
              "an interruption is reported with the checkpoint, exit status 130", child.returncode, errors):
        return
    epoch = int(found.group(1))
    with open(f"{base}/stopped.json") as file:
        report = json.load(file)
    ok(report["epochs"] == epoch == len(report["history"]) and report["test_accuracy"] > 0 and
       "test accuracy" in output, "it is measured and reported")
    stored = read_safetensors(f"{folder}/checkpoint.safetensors")[1]["progress.epoch"][2]
    ok(struct.unpack("<q", stored) == (epoch,), "and saved")
    settings = [data, *MODEL, "--set", f"epochs={epoch + 3}"]
    steps = [run(*settings, "--save", f"{base}/unstopped"), run(*settings, "--resume", folder, "--save", folder)]
    file = "/checkpoint.safetensors"
    ok(all(step.returncode == 0 for step in steps) and not differing_tensors(f"{base}/unstopped{file}", folder + file),
       "resumed, it gives the bits of a run that was not interrupted", *[step.stderr for step in steps])


def long_dataset():
    n, folder = 20000, f"{base}/long"
    os.mkdir(folder)
    write_npy(f"{folder}/edges.npy", "<i4", "i", (2, 2), [0, 1, 1, 0])
    write_npy(f"{folder}/features.npy", "<f4", "f", (n, 64), [0.5] * (64 * n))
    write_npy(f"{folder}/labels.npy", "<i4", "i", (n,), [v % 7 for v in range(n)])
    write_npy(f"{folder}/split.npy", "|u1", "B", (n,), [1] * n)
    return folder


def begin_long(folder, line, *settings):
    """Start the program, and return it when it has printed a line that begins like this."""
    child = subprocess.Popen([program, folder, "--set", "model=mlp", "epochs=100000000", "eval_every=0", "threads=1",
                              *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    for printed in child.stdout:
        if printed.startswith(line):
            break
    return child


def test_interrupt_epoch(folder):
    """Epochs take half a minute here, so a signal must be noticed between layers."""
    slow = ["layers=12", "hidden=1024"]
    child = begin_long(folder, "memory ", *slow, "--save", f"{base}/early")
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=TIMEOUT)
    ok(child.returncode == 130 and "epoch 1/" not in output and "before there was anything to save" in errors and
       not os.path.exists(f"{base}/early/checkpoint.safetensors"),
       "an interruption does not wait until the epoch is completed", child.returncode, output, errors)
    child = begin_long(folder, "memory ", *slow)
    time.sleep(0.2)
    for _ in range(2):
        child.send_signal(signal.SIGINT)
        time.sleep(0.05)
    ok(child.wait(TIMEOUT) == -signal.SIGINT, "a second one ends the program at once", child.returncode)
    child.communicate()


def test_interrupt_anywhere(folder):
    """A signal in the middle of a product must not corrupt memory, which it would with oneDNN if the handler ran on the
    normal stack."""
    ended = []
    for turn in range(8):
        child = begin_long(folder, "epoch 2/")
        time.sleep(0.02 * turn)
        child.send_signal(signal.SIGINT)
        ended.append((child.communicate(timeout=TIMEOUT)[1], child.returncode))
    ok(all(code == 130 for _, code in ended), "an interruption may come anywhere", *ended)


test_training()
test_regression()
test_rare_evaluation()
test_usage()
test_list_options()
if test_resume():
    test_bad_checkpoints()
    test_saved_model()
    test_unwritable()
test_wrong_labels()
test_nonfinite()
test_patience()
test_terminal()
test_interrupt()
long = long_dataset()
test_interrupt_epoch(long)
test_interrupt_anywhere(long)
done()
