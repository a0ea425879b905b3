#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks predictions of graft-train with saved models: test_graft_train_predict.py GRAFT-TRAIN. Covers graphs without
labels, lists of vertices, probabilities, and models with edge features. Prints TAP."""
import os
import random
import shutil

from model_file import pack, unpack, unseal
from small_data import N, N_CLASSES, make_dataset, write_npy
from train_host import MODEL, base, data, n_edges, read_npy, refused, run
from tap import done, ok


def test_prediction_only():
    unsplit = f"{base}/unsplit"
    make_dataset(unsplit, with_split=False)
    refused("without a split there is nothing to train on", run(unsplit, *MODEL), 1, unsplit, "split")
    result = run(unsplit, *MODEL, "--resume", f"{base}/straight", "--predict", f"{base}/u.npy")
    ok(result.returncode == 0, "a checkpoint can be used without a split", result.stderr)
    ok(result.returncode == 0 and read_npy(f"{base}/u.npy") == read_npy(f"{base}/s.npy"), "and predicts the same")


def test_unlabelled():
    """For a graph without labels the number of classes is that of the model."""
    folder, saved = f"{base}/unlabelled", f"{base}/straight/checkpoint.safetensors"
    os.mkdir(folder)
    for name in ("edges.npy", "features.npy"):
        os.symlink(f"{data}/{name}", f"{folder}/{name}")
    for name, more in (("--model", [saved]), ("--resume", [f"{base}/straight", "--set", "threads=1"])):
        result = run(folder, name, *more, "--predict", f"{base}/v.npy")
        ok(result.returncode == 0 and read_npy(f"{base}/v.npy") == read_npy(f"{base}/s.npy"),
           f"{name} predicts a graph without labels", result.stderr)
    refused("it cannot be trained", run(folder, *MODEL), 1, folder, "no labels", "--model")
    refused("nor evaluated", run(folder, "--resume", f"{base}/straight", "--predict", f"{base}/x.npy", "--json",
                                 f"{base}/x.json"), 1, folder, "without --save, --json")
    return folder


def test_list(folder):
    """Rows follow the order of the list, with probabilities. A file that is no list of vertices is refused with the
    reason."""
    model = ["--model", f"{base}/straight/checkpoint.safetensors"]
    chosen = [v * 7 % N for v in range(20)] + [3, 3]
    classes = read_npy(f"{base}/s.npy")[2]
    result = run(folder, *model, "--probabilities", f"{base}/all.npy")
    if not ok(result.returncode == 0 and f"probabilities   {base}/all.npy" in result.stdout,
              "probabilities of all vertices", result.stdout, result.stderr):
        return
    descr, shape, likely = read_npy(f"{base}/all.npy")
    rows = [likely[v * N_CLASSES:(v + 1) * N_CLASSES] for v in range(N)]
    ok(descr == "<f4" and shape == (N, N_CLASSES) and all(abs(sum(row) - 1) < 1e-5 for row in rows) and
       [row.index(max(row)) for row in rows] == list(classes), "are float32 and sum up to 1, the class has the largest")
    for name, code in (("<i8", "q"), ("<i4", "i")):
        write_npy(f"{base}/list.npy", name, code, (len(chosen),), chosen)
        result = run(folder, *model, "--vertices", f"{base}/list.npy", "--predict", f"{base}/v.npy",
                     "--probabilities", f"{base}/w.npy")
        good = result.returncode == 0 and read_npy(f"{base}/v.npy") == ("<i4", (len(chosen),),
                                                                       tuple(classes[v] for v in chosen))
        found = read_npy(f"{base}/w.npy") if good else ("", (), ())
        ok(good and found[1] == (len(chosen), N_CLASSES) and
           all(abs(p - q) < 1e-5 for p, q in zip(found[2], [p for v in chosen for p in rows[v]])),
           f"a list of {name}, in its order", result.stderr, found)
    write_npy(f"{base}/list.npy", "<i8", "q", (0,), [])
    result = run(folder, *model, "--vertices", f"{base}/list.npy", "--predict", f"{base}/v.npy")
    ok(result.returncode == 0 and read_npy(f"{base}/v.npy") == ("<i4", (0,), ()), "an empty list", result.stderr)
    for words, *content in ((("element 2 is vertex 300", "0 to 299"), "<i8", "q", (3,), [0, 299, 300]),
                            (("element 0 is vertex -1",), "<i4", "i", (1,), [-1]),
                            (("type '<f4'", "'<i8' or '<i4'"), "<f4", "f", (2,), [1, 2]),
                            (("shape (2, 1)", "(m,)"), "<i8", "q", (2, 1), [1, 2]),
                            (("shape ()",), "<i8", "q", (), [1]),
                            (("16 bytes", "expected 24"), "<i8", "q", (3,), [1, 2])):
        write_npy(f"{base}/list.npy", *content)
        refused(f"a list is refused: {words[0]}",
                run(folder, *model, "--vertices", f"{base}/list.npy", "--predict", f"{base}/x.npy"), 1,
                f"{base}/list.npy", *words)
    refused("no file of .npy", run(folder, *model, "--vertices", model[1], "--predict", f"{base}/x.npy"), 1,
            "is no .npy file")
    refused("no file", run(folder, *model, "--vertices", f"{base}/none.npy", "--predict", f"{base}/x.npy"), 1,
            "none.npy")
    for name in ("--vertices", "--probabilities"):
        refused(f"{name} without a model", run(folder, name, f"{base}/list.npy"), 2, f"{name} needs --model")
    ok(not os.path.exists(f"{base}/x.npy"), "and nothing is written")


def test_edge_features():
    """A model with an array of edge features, and data sets that do not fit to it."""
    folder, out, rng = f"{base}/edge_features", f"{base}/edge_model", random.Random(3)
    saved, array = f"{out}/checkpoint.safetensors", ["--set", "model=gat", "hidden=8", "edge_features=array"]
    shutil.copytree(data, folder)
    refused("a folder without features of edges", run(folder, *array), 2, "'edge_features' is array", "has none")
    write_npy(f"{folder}/edge_features.npy", "<f4", "f", (n_edges, 2), [rng.gauss(0, 1) for _ in range(2 * n_edges)])
    result = run(folder, *array, "epochs=3", "--explain", "--save", out, "--predict", f"{base}/e.npy")
    ok(result.returncode == 0 and "with 2 features of edges" in result.stdout, "a folder with them is trained",
       result.stdout, result.stderr)
    result = run(folder, "--model", saved, "--predict", f"{base}/f.npy")
    ok(result.returncode == 0 and read_npy(f"{base}/e.npy") == read_npy(f"{base}/f.npy"), "and its model predicts",
       result.stderr)
    with open(saved, "rb") as file:
        header, weights = unpack(file.read())
    metadata = unseal(header)["__metadata__"]
    for count, words in (("3", ("weight_edge", "F32 [2, ", "expected F32 [3, ")), ("0", ("'n_edge_features'", "'0'")),
                         ("9999999999", ("9999999999 edge features",)), (None, ("'n_edge_features'", "'missing'"))):
        metadata["n_edge_features"] = count
        if count is None:
            metadata.pop("n_edge_features")
        with open(f"{base}/counted.safetensors", "wb") as file:
            file.write(pack(header, weights))
        refused(f"a model of {count} edge features",
                run(folder, "--model", f"{base}/counted.safetensors", "--predict", f"{base}/x.npy"), 1, *words)
    write_npy(f"{folder}/edge_features.npy", "<f4", "f", (n_edges, 1), [0.0] * n_edges)
    refused("a data set with others", run(folder, "--model", saved, "--predict", f"{base}/x.npy"), 1,
            "1 edge features, the model has 2")


result = run(data, *MODEL, "--set", "epochs=5", "--save", f"{base}/straight", "--predict", f"{base}/s.npy")
if ok(result.returncode == 0, "a model is trained", result.stderr):
    test_prediction_only()
    test_list(test_unlabelled())
test_edge_features()
done()
