#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that examples/convert reads what people have, or refuses it: test_convert_inputs.py CONVERT.PY. Line ends,
columns, weights, splits, and values that graft-train would refuse. Prints TAP."""
import contextlib
import io
import json
import os
import sys
import tempfile

import tap
from tap import ok

try:
    import numpy as np
except ImportError:
    tap.skip("inputs of conversion", "there is no NumPy (python3-numpy)")
    tap.done()
    sys.exit(0)

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import convert as tested

scratch = tempfile.TemporaryDirectory(prefix="graft-convert-inputs-")
os.chdir(scratch.name)
INFINITE = float("inf")
NAN = float("nan")


def convert(source, *args):
    """Convert inside of this process. The result is (exit status, what was printed, folder)."""
    folder = tempfile.mkdtemp(dir=".")
    os.rmdir(folder)
    said, sys.argv = io.StringIO(), ["convert.py", source, folder, *args]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            tested.main()
            code = 0
        except SystemExit as end:
            code = end.code
    return code, said.getvalue(), folder


def written(data, name="list.csv"):
    with open(name, "wb") as file:
        file.write(data)
    return name


def edges_of(folder):
    return sorted(zip(*np.load(f"{folder}/edges.npy").tolist()))


def entries_of(folder):
    """{(source, destination): weight} of graph.mtx."""
    with open(f"{folder}/graph.mtx", encoding="ascii") as file:
        rows = [line.split() for line in file if not line.startswith("%")][1:]
    return {(int(j) - 1, int(i) - 1): float(weight) for i, j, weight in rows}


def reads(name, data, expected, *args, file="list.csv", words=()):
    code, said, folder = convert(written(data, file), *args)
    found = edges_of(folder) if code == 0 else None
    ok(found == sorted(expected) and all(word in said for word in words), f"{name}: the right edges", found, said)


def refuses(name, source, *words, args=()):
    """One sentence with the words, and no folder."""
    code, said, folder = convert(source, *args)
    last = said.splitlines()[-1] if said else ""
    ok(code == 1 and last.startswith("convert.py: ") and all(word in last for word in words) and
       not os.path.exists(folder), f"refused: {name}", said)


def test_line_ends():
    pairs = [(0, 1), (1, 2), (3, 4)]
    for end in ("\n", "\r\n", "\r"):
        lines = [f"{u} {v}" for u, v in pairs]
        for last in ("", end, end + end):
            reads(f"lines that end with {end!r}, the last with {last!r}", (end.join(lines) + last).encode(), pairs)
        reads(f"a heading and a comment that end with {end!r}", end.join(["a,b", "# c", "0,1"]).encode(), [(0, 1)],
              "--skip", "1")
    reads("lines of all three kinds", b"0 1\r\n1 2\r3 4\n", pairs)
    many = [(i, i + 1) for i in range(300000)]
    reads("\\r\\n between two reads", b"\r\n".join(b"%d,%d" % pair for pair in many), many, "--memory", "96M")
    reads("\\r between two reads", b"\r".join(b"%d,%d" % pair for pair in many), many, "--memory", "96M")
    reads("a byte order mark", b"\xef\xbb\xbf0,1\r\n", [(0, 1)])
    for byte in (0, 1, 8, 11, 12, 26, 27, 31, 127):
        refuses(f"control byte {byte}", written(b"0 1\n1 %c2\n" % byte), "line 2, column 3", f"control byte {byte}")
    refuses("UTF-16", written("0 1\n".encode("utf-16")), "line 1", "expected")


def test_columns():
    lists = b"0 1 2 3\n1 0\n2 0 3\n"
    expected = [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (2, 3)]
    refuses("adjacency lists as a list of edges", written(lists), "line 2", "2 columns", "expected 4",
            "--layout adjacency")
    reads("adjacency lists", lists, expected, "--layout", "adjacency")
    reads("adjacency lists by their name", lists, expected, file="list.adjlist")
    reads("adjacency lists with commas, from 1 on", b"1,2,3\n2\n3,2\n", [(0, 1), (0, 2), (2, 1)], "--layout",
          "adjacency", "--first-vertex", "1")
    code, said, _ = convert(written(b"0 1\n5\n", "list.adjlist"))
    ok(code == 0 and "vertices        6" in said, "a vertex without neighbours counts", said)
    refuses("a word among neighbours", written(b"0 1\n1 x\n", "list.adjlist"), "line 2, column 3", "'x'")
    refuses("a negative neighbour", written(b"0 1 -2\n", "list.adjlist"), "line 1, column 5", "vertex -2")
    reads("a column that is not used", b"0 1 9\n1 2 9\n", [(0, 1), (1, 2)], words=("left out        column 3",))
    reads("two such columns", b"0 1 9 a\n1 2 9 b\n".replace(b"a", b"7").replace(b"b", b"8"), [(0, 1), (1, 2)],
          words=("columns 3 to 4",))
    for name, data, words in (("a column more", b"0 1\n1 2 3\n", ("line 2", "3 columns")),
                              ("a column less", b"0 1 2\n\n1 2\n", ("line 3", "2 columns", "expected 3")),
                              ("a comma at the end", b"0,1,\n", ("line 1, column 4", "empty field")),
                              ("a comma at the beginning", b"0,1\n,2\n", ("line 2, column 1", "empty field")),
                              ("two semicolons", b"0;1\n1;;2\n", ("line 2, column 2", "empty field")),
                              ("a blank and a comma", b"0,1\n0 2,3\n", ("line 2, column 2", "blank")),
                              ("blank fields", b"0,1\n1, ,2\n", ("line 2", "empty field")),
                              ("commas after blanks", b"0 1\n1,2\n", ("line 2", "1 columns"))):
        refuses(name, written(data), *words)
    reads("blanks beside commas, and blank lines", b"0, 1\n\n1 ,2\n  \n", [(0, 1), (1, 2)])


def test_weights():
    for name, text, words in (("nan", "0 1 nan", "nan"), ("inf", "0 1 inf", "inf"), ("1e39", "0 1 1e39", "1e+39")):
        refuses(f"weight {name}", written(b"5 6 1\n" + text.encode()), "line 2", "weight", words, args=["--weights"])
    refuses("a sum of weights beyond floats", written(b"0 1 3e38\n0 1 3e38\n"), "edge (0, 1)", "6e+38",
            args=["--weights"])
    both = {(0, 1): 2.0, (1, 0): 2.0, (1, 2): 3.0, (2, 1): 3.0, (2, 2): 5.0}
    for name, data in (("once", b"0 1 2\n1 2 3\n2 2 5\n"), ("in the other direction", b"1 0 2\n2 1 3\n2 2 5\n"),
                       ("twice", b"0 1 2\n1 0 2\n1 2 3\n2 1 3\n2 2 5\n"),
                       ("once or twice", b"1 0 2\n0 1 2\n1 2 3\n2 2 5\n"),
                       ("in parts", b"0 1 0.5\n0 1 1.5\n1 2 3\n2 2 5\n"),
                       ("in parts, twice", b"0 1 0.5\n0 1 1.5\n1 0 1\n1 0 1\n2 1 3\n2 2 5\n")):
        code, said, folder = convert(written(data), "--weights", "--undirected")
        found = entries_of(folder) if code == 0 else None
        ok(found == both, f"an undirected edge that is stored {name} has one weight", found, said)
    refuses("different weights of both directions", written(b"0 1 2\n1 0 3\n"), "(0, 1)", "2", "3", "equal weights",
            args=["--weights", "--undirected"])
    code, said, folder = convert(written(b"0 1 2\n1 0 3\n"), "--weights")
    ok(code == 0 and entries_of(folder) == {(0, 1): 2.0, (1, 0): 3.0}, "directed edges may have them", said)


def citations(name="set.npz", **changed):
    """An archive of 4 vertices in a ring."""
    arrays = {"adj_data": np.ones(4), "adj_indices": np.array([1, 2, 3, 0]), "adj_indptr": np.arange(5),
              "adj_shape": np.array([4, 4]), "attr_matrix": np.eye(4), "labels": np.array([0, 1, 0, 1])}
    np.savez(name, **{**arrays, **changed})
    return name


def masked(**changed):
    split = np.eye(3, 4, dtype=bool)[:, None]
    arrays = {"node_features": np.eye(4), "node_labels": np.arange(4), "edges": np.array([[0, 1], [2, 3]]),
              "train_masks": split[0], "val_masks": split[1], "test_masks": split[2]}
    np.savez("masked.npz", **{**arrays, **changed})
    return "masked.npz"


def test_arrays():
    ok(convert(citations())[0] == 0 and convert(masked())[0] == 0, "the archives themselves are converted")
    for value in (NAN, INFINITE, -INFINITE, 1e300):
        bad = np.eye(4)
        bad[2, 1] = value
        refuses(f"a feature {value:g}", citations(attr_matrix=bad), "row 2, column 1", f"{value:g}", "finite")
        sparse = {"attr_data": np.array([1.0, value]), "attr_indices": np.array([0, 2]),
                  "attr_indptr": np.array([0, 1, 1, 2, 2]), "attr_shape": np.array([4, 3])}
        refuses(f"a sparse feature {value:g}", citations(**sparse), "row 2, column 2", f"{value:g}", "finite")
        refuses(f"a weight {value:g} of an archive", citations(adj_data=np.array([1, 1, value, 1])), "entry 2",
                f"{value:g}", args=["--weights"])
    for value, word in ((INFINITE, "inf"), (-2, "-2"), (0.5, "0.5"), (20190101, "2.01901e+07"), (1e300, "1e+300")):
        refuses(f"label {value}", citations(labels=np.array([0, value, 0, 1], float)), "vertex 1", word, "class")
    refuses("a label of several that is NaN", citations(labels=np.array([[0, 1]] * 3 + [[0, NAN]])), "vertex 3",
            "column 1", "0 or 1")
    code, said, folder = convert(citations(labels=np.array([0, NAN, -1, 65535])))
    ok(code == 0 and np.load(f"{folder}/labels.npy").tolist() == [0, -1, -1, 65535], "no label, and a large class",
       said)
    for value in (NAN, 2.0, -1.0):
        refuses(f"a mask with {value:g}", masked(train_masks=np.array([[1.0, 0, value, 0]])), "train_masks", "vertex 2",
                f"{value:g}")
    for part in ("val", "test"):
        refuses(f"a vertex for training and in {part}_masks", masked(**{f"{part}_masks": np.ones((1, 4), bool)}),
                f"{part}_masks", "vertex 0", "training")
    for value in (257, 4, -1):
        np.savez("reddit_data.npz", feature=np.eye(4), label=np.arange(4), node_types=np.array([1, 2, value, 3]))
        np.savez("reddit_graph.npz", row=np.array([0]), col=np.array([1]), data=np.array([1]))
        refuses(f"node_types {value}", ".", "node_types", "vertex 2", str(value))
    for name in ("adj_indices", "adj_indptr"):
        changed = {name: np.arange(4 + (name == "adj_indptr")) % 4 + (0.5 if name == "adj_indices" else 0.0)}
        refuses(f"{name} with fractions", citations(**changed), name, "whole numbers")


def test_headers():
    good = io.BytesIO()
    np.save(good, np.eye(4))
    good = good.getvalue()
    begin = good.index(b"{")
    for name, text in (("no dictionary", b"[1, 2]"), ("an open brace", b"{'descr': '<f8'"),
                       ("no type", b"{'descr': 'q9'}"),
                       ("a negative size", b"{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 4), }"),
                       ("a size beyond all", b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**9, 4), }".replace(
                           b"10**9", b"9" * 40)),
                       ("code", b"__import__('os')"), ("zeros", bytes(20)), ("no text", b"\xff\xfe" * 10)):
        os.makedirs("igb/processed/paper", exist_ok=True)
        os.makedirs("igb/processed/paper__cites__paper", exist_ok=True)
        np.save("igb/processed/paper__cites__paper/edge_index.npy", np.array([[0, 1]]))
        np.save("igb/processed/paper/node_label_19.npy", np.zeros(4))
        written(good[:begin] + text.ljust(good.index(b"\n") - begin) + good[good.index(b"\n"):],
                "igb/processed/paper/node_feat.npy")
        refuses(f"a header with {name}", "igb", "node_feat.npy")


def test_json():
    os.makedirs("saint", exist_ok=True)
    np.savez("saint/adj_full.npz", data=np.ones(4), indices=np.array([1, 2, 3, 0]), indptr=np.arange(5),
             shape=np.array([4, 4]))
    np.save("saint/feats.npy", np.eye(4))
    classes, roles = {str(v): [0, 1] for v in range(4)}, {"tr": [0], "va": [1], "te": [2, 3]}
    for name, changed, words in (
            ("ragged", {**classes, "2": [0, 1, 0]}, ("vertex 2", "2 numbers")),
            ("a number among lists", {**classes, "2": 1}, ("vertex 2", "2 numbers")),
            ("a word", {**classes, "1": ["a", "b"]}, ("vertex 1", "2 numbers")),
            ("null", {**classes, "3": None}, ("vertex 3",)), ("a list", [1, 2], ("no object",)),
            ("a vertex missing", {"0": [0, 1]}, ("vertex 1",))):
        written(json.dumps(changed).encode(), "saint/class_map.json")
        written(json.dumps(roles).encode(), "saint/role.json")
        refuses(f"class_map.json: {name}", "saint", "class_map.json", *words)
    written(json.dumps(classes).encode(), "saint/class_map.json")
    for name, changed, words in (("two parts", {**roles, "va": [1, 0]}, ("'va'", "vertex 0", "training")),
                                 ("fractions", {**roles, "tr": [0.5]}, ("'tr'", "whole numbers")),
                                 ("no test", {"tr": [0], "va": [1]}, ("'te'",)), ("a number", 7, ("'tr'",)),
                                 ("out of range", {**roles, "te": [4]}, ("'te'", "vertex 4"))):
        written(json.dumps(changed).encode(), "saint/role.json")
        refuses(f"role.json: {name}", "saint", *words)


def test_shares():
    for shares in ("nan,0.1", "0.1,nan", "inf,0", "0.6,-0.1", "0.6,0.5", "1", "a,b", "0.1,0.2,0.3"):
        refuses(f"--random-split {shares}", written(b"0 1\n"), "--random-split", shares,
                args=["--random-split", shares])


test_line_ends()
test_columns()
test_weights()
test_arrays()
test_headers()
test_json()
test_shares()
tap.done()
