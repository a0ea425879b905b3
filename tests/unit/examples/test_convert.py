#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks examples/convert: test_convert.py GRAFT-TRAIN CONVERT.PY. The test makes small data sets in each layout that
the program reads, compares what it writes with them, and trains on the result. Prints TAP."""
import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types

import tap
from tap import ok

try:
    import numpy as np
except ImportError:
    tap.skip("conversion of graphs", "there is no NumPy (python3-numpy)")
    tap.done()
    sys.exit(0)

N, WIDTH, CLASSES, TIMEOUT = 60, 5, 3, 120
program, converter = sys.argv[1:3]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(converter))
import convert as tested
scratch = tempfile.TemporaryDirectory(prefix="graft-convert-")
base = scratch.name
draw = np.random.default_rng(3)

edges = np.unique(draw.integers(0, N, (400, 2)), axis=0)
edges = draw.permutation(edges[edges[:, 0] != edges[:, 1]])
features = draw.normal(size=(N, WIDTH)).astype(np.float32)
labels = np.arange(N) % CLASSES
split = draw.permutation(np.repeat([1, 2, 3], N // 3)).astype(np.uint8)
sparse = np.where(draw.random((N, WIDTH)) < 0.5, features, 0)


def convert(source, *args):
    """Convert into a folder that did not exist. The result is the ended process and the folder."""
    folder = tempfile.mkdtemp(dir=base)
    os.rmdir(folder)
    return call(source, folder, *args), folder


def call(*args):
    """Run the program inside of this process, which saves the start of many processes."""
    out, err, sys.argv = io.StringIO(), io.StringIO(), [converter, *args]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            tested.main()
            code = 0
        except SystemExit as end:
            code = end.code
    return types.SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def load(folder, name):
    return np.load(f"{folder}/{name}.npy")


def as_set(pairs):
    return {(int(u), int(v)) for u, v in pairs}


def in_both_directions(pairs):
    return as_set(pairs) | {(v, u) for u, v in as_set(pairs)}


def check_edges(name, folder, expected):
    found = load(folder, "edges").T
    order = np.lexsort((found[:, 0], found[:, 1]))
    return ok(as_set(found) == expected and len(found) == len(expected) and (order == np.arange(len(found))).all(),
              f"{name}: the edges, once each, by destination and source", len(found), len(expected))


def check_all(name, source, *args, expected=None, dense=features, wanted=labels, parts=split, trained=True):
    """Convert, compare with the original data, and train."""
    result, folder = convert(source, *args)
    if not ok(result.returncode == 0 and result.stderr == "", f"{name} is converted", result.stderr):
        return
    check_edges(name, folder, as_set(edges) if expected is None else expected)
    found = load(folder, "features") if dense is not None else dense_rows(folder)
    ok(found.dtype == np.float32 and (found == (features if dense is not None else sparse)).all(), f"{name}: features")
    ok((load(folder, "labels") == wanted).all() and load(folder, "labels").shape == wanted.shape, f"{name}: labels")
    ok((load(folder, "split") == parts).all() and load(folder, "split").dtype == np.uint8, f"{name}: split")
    ok(not [file for file in os.listdir(base) if file.startswith(".")], f"{name}: no temporary files are left")
    if trained:
        train(name, folder)


def train(name, folder, n=N, n_edges=None):
    """Check that the library reads the folder and finds this number of vertices and edges."""
    n_edges = n_edges or load(folder, "edges").shape[1]
    report = f"{base}/report.json"
    result = subprocess.run([program, folder, "--set", "model=sage", "hidden=8", "epochs=1", "--json", report],
                            text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)
    if ok(result.returncode == 0, f"{name}: graft-train takes it", result.stderr):
        with open(report, encoding="utf-8") as file:
            found = json.load(file)
        ok(found["vertices"] == n and found["edges"] == n_edges, f"{name}: as many edges", found)


def dense_rows(folder):
    indptr, indices, data, shape = (load(folder, f"features_csr_{part}") for part in
                                    ("indptr", "indices", "data", "shape"))
    rows = np.zeros(shape, np.float32)
    rows[np.repeat(np.arange(shape[0]), np.diff(indptr)), indices] = data
    return rows


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="ascii") as file:
        file.write(text)
    return path


def csv(rows):
    return "".join(",".join(repr(value) for value in row) + "\n" for row in np.asarray(rows).tolist())


def write_array(path, array):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    np.save(path, array)


def csr(matrix, prefix):
    """The four arrays of a sparse matrix in CSR."""
    rows, columns = np.nonzero(matrix)
    return {prefix + "data": matrix[rows, columns], prefix + "indices": columns.astype(np.int32),
            prefix + "indptr": np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(matrix))))),
            prefix + "shape": np.array(matrix.shape)}


def adjacency():
    matrix = np.zeros((N, N), np.float32)
    matrix[edges[:, 0], edges[:, 1]] = 1
    return matrix


def write_ogb_split(folder, name="time"):
    for part, number in (("train", 1), ("valid", 2), ("test", 3)):
        write_text(f"{folder}/split/{name}/{part}.csv.gz", csv(np.flatnonzero(split == number)[:, None]))


def make_ogb(name, wanted):
    folder = f"{base}/{name}"
    write_text(f"{folder}/raw/edge.csv.gz", csv(edges))
    write_text(f"{folder}/raw/num-node-list.csv.gz", f"{N}\n")
    write_text(f"{folder}/raw/num-edge-list.csv.gz", f"{len(edges)}\n")
    write_text(f"{folder}/raw/node-feat.csv.gz", csv(features.astype(float)))
    write_text(f"{folder}/raw/node-label.csv.gz", wanted)
    write_text(f"{folder}/raw/node_year.csv.gz", "2000\n" * N)
    write_ogb_split(folder)
    return folder


def test_ogb():
    text = make_ogb("arxiv", csv(labels[:, None]))
    check_all("OGB, text", text)
    check_all("OGB, text, --undirected", text, "--undirected", expected=in_both_directions(edges), trained=False)
    several = (draw.random((N, 4)) < 0.5).astype(np.uint8)
    check_all("OGB, several classes", make_ogb("proteins", csv(several)), wanted=several)
    some = np.where(labels == 2, -1, labels)
    missing = make_ogb("missing", "".join("nan\n" if label < 0 else f"{label}.0\n" for label in some))
    result, folder = convert(missing)
    ok(result.returncode == 0 and (load(folder, "labels") == some).all() and "20 vertices without" in result.stdout,
       "OGB: a label may be missing", result.stderr, result.stdout)
    for name, order in (("papers", "C"), ("papers-by-column", "F")):
        folder = f"{base}/{name}"
        write_ogb_split(folder)
        os.makedirs(f"{folder}/raw")
        save = np.savez if order == "C" else np.savez_compressed
        save(f"{folder}/raw/data.npz", edge_index=np.array(edges.T, order=order), num_nodes_list=np.array([N]),
             num_edges_list=np.array([len(edges)]), node_feat=features, node_year=np.full((N, 1), 2000))
        np.savez(f"{folder}/raw/node-label.npz", node_label=labels[:, None].astype(np.float32))
        check_all(f"OGB, binary, order {order}", folder, trained=order == "C")
    write_ogb_split(text, "random")
    refused("two splits", text, "random, time", "--split")
    check_all("OGB, --split", text, "--split", "random", trained=False)
    refused("an unknown split", text, "--split", "species", "no split 'species'", "random, time", count=2)
    return text


def test_npz():
    folder = f"{base}/reddit"
    os.makedirs(f"{folder}/raw")
    np.savez(f"{folder}/raw/reddit_data.npz", feature=features.astype(np.float64), label=labels, node_types=split,
             node_ids=np.arange(N))
    np.savez(f"{folder}/raw/reddit_graph.npz", row=edges[:, 0].astype(np.int32), col=edges[:, 1].astype(np.int32),
             data=np.ones(len(edges)), shape=np.array([N, N]), format=np.array(b"coo"))
    check_all("Reddit", folder)
    folder = f"{base}/graphsaint"
    os.makedirs(folder)
    np.savez(f"{folder}/adj_full.npz", format=np.array(b"csr"), **csr(adjacency(), ""))
    np.save(f"{folder}/feats.npy", features)
    with open(f"{folder}/class_map.json", "w", encoding="ascii") as file:
        json.dump({str(v): int(labels[v]) for v in range(N)}, file)
    with open(f"{folder}/role.json", "w", encoding="ascii") as file:
        json.dump({name: np.flatnonzero(split == part).tolist() for name, part in (("tr", 1), ("va", 2), ("te", 3))},
                  file)
    check_all("GraphSAINT", folder, trained=False)
    masks = {name + "_masks": np.array([split == 0, split == part]) for name, part in (("train", 1), ("val", 2),
                                                                                         ("test", 3))}
    path = f"{base}/tolokers.npz"
    np.savez(path, node_features=features, node_labels=labels, edges=edges, **masks)
    check_all("heterophilous", path, "--undirected", "--split", "1", expected=in_both_directions(edges),
              trained=False)
    path = f"{base}/amazon.npz"
    np.savez(path, labels=labels, **csr(adjacency(), "adj_"), **csr(sparse, "attr_"))
    result, folder = convert(path, "--random-split", "0.5,0.2")
    found = np.bincount(load(folder, "split"), minlength=4) if result.returncode == 0 else []
    ok(len(found) == 4 and found[0] == 0 and 20 < found[1] < 40, "a random split", found, result.stderr)
    if result.returncode == 0:
        check_all("npz with adj_* and attr_*", path, "--random-split", "0.5,0.2", dense=None,
                  parts=load(folder, "split"))


def test_igb():
    for name, by_row, header in (("igb", False, True), ("mag", True, True), ("igb-large", False, False)):
        processed = f"{base}/{name}/processed"
        relation = "paper___cites___paper" if by_row else "paper__cites__paper"
        write_array(f"{processed}/{relation}/edge_index.npy", edges.T if by_row else edges)
        wide = np.tile(features, (1, 205))[:, :1024].astype(np.float16 if by_row else np.float32)
        write_array(f"{processed}/paper/node_feat.npy", wide)
        label_file = f"{processed}/paper/node_label{'' if by_row else '_19'}.npy"
        write_array(label_file, labels.astype(np.float32))
        if not header:
            wide.tofile(f"{processed}/paper/node_feat.npy")
            labels.astype(np.float32).tofile(label_file)
        result, folder = convert(f"{base}/{name}")
        if not ok(result.returncode == 0, f"{name} is converted", result.stderr):
            continue
        check_edges(name, folder, as_set(edges))
        ok((load(folder, "features") == wide.astype(np.float32)).all() and (load(folder, "labels") == labels).all(),
           f"{name}: features and labels")
        expected = np.repeat([1, 2, 3], [36, 12, 12])
        ok(os.path.exists(f"{folder}/split.npy") != by_row and (by_row or (load(folder, "split") == expected).all()),
           f"{name}: the split")


def metis_text(sizes, weights, edge_weights, n_weights=2):
    """A text with everything that a line may have, with comments and a vertex without neighbours, and the expected
    {edge: weight}."""
    both = {(u, v): 1 + (u * v) % 7 for u, v in in_both_directions(edges)}
    fmt = f"{int(sizes)}{int(weights)}{int(edge_weights)}"
    lines = ["% a comment", f"{N + 1} {len(both) // 2} {fmt}" + (f" {n_weights}" if weights else "")]
    for u in range(N + 1):
        fields = ([9] if sizes else []) + ([8] * n_weights if weights else [])
        for v in range(N):
            if (u, v) in both:
                fields += [v + 1, both[u, v]] if edge_weights else [v + 1]
        lines += [" ".join(map(str, fields))] + (["% another"] if u == 7 else [])
    return "\n".join(lines) + ("" if lines[-1] else "\n"), both


def test_metis():
    for number in range(8):
        flags = [bool(number & 4), bool(number & 2), bool(number & 1)]
        text, both = metis_text(*flags)
        result, folder = convert(write_text(f"{base}/metis/{number}.graph" + (".gz" if number == 1 else ""), text))
        if ok(result.returncode == 0 and "the last 1 vertices" in result.stdout, f"METIS, fmt {number:03b}",
              result.stderr, result.stdout):
            check_edges(f"METIS, fmt {number:03b}", folder, set(both))
    result, folder = convert(f"{base}/metis/7.graph", "--weights")
    if ok(result.returncode == 0 and not os.path.exists(f"{folder}/edges.npy"), "METIS, --weights", result.stderr):
        with open(f"{folder}/graph.mtx", encoding="ascii") as file:
            lines = file.read().splitlines()
        found = {(int(j) - 1, int(i) - 1): float(value) for i, j, value in map(str.split, lines[3:])}
        ok(found == both and lines[2] == f"{N + 1} {N + 1} {len(both)}", "weights are kept", lines[:4])
        for name, array in (("features", features), ("labels", labels.astype(np.int32)), ("split", split)):
            write_array(f"{folder}/{name}.npy", np.concatenate((array, array[:1])))
        train("weights", folder, N + 1, len(both))


def test_edge_lists():
    pairs = as_set(edges)
    lines = [f"{u} {v}" for u, v in edges.tolist()]
    for name, text, args in (("list.txt", "# SNAP\n" + "\n".join(lines), []),
                             ("list.tsv.gz", "\n\n".join(line.replace(" ", "\t") for line in lines) + "\n", []),
                             ("list.csv", "id_1,id_2\r\n" + "\r\n".join(line.replace(" ", ", ") for line in lines),
                              ["--skip", "1"]),
                             ("list.edges", "".join(f"{u + 1};{v + 1};0.5\n" for u, v in edges.tolist()),
                              ["--first-vertex", "1"]),
                             ("twice.el", "\n".join(lines * 2 + ["3 3"]), ["--no-self-loops"])):
        result, folder = convert(write_text(f"{base}/lists/{name}", text), *args)
        if ok(result.returncode == 0, f"{name} is converted", result.stderr):
            check_edges(name, folder, pairs)
    ok(f"repeated        {len(pairs)} left out" in result.stdout and "1 left out" in result.stdout,
       "what is left out is counted", result.stdout)
    path = write_text(f"{base}/lists/weights.txt", "0 1 0.25\n2 1 4\n0 1 0.5\n")
    result, folder = convert(path, "--weights", "--vertices", "5")
    if ok(result.returncode == 0, "a list with weights", result.stderr):
        with open(f"{folder}/graph.mtx", encoding="ascii") as file:
            ok(file.read().splitlines()[2:] == ["5 5 2", "2 1 0.75", "2 3 4"], "weights of a repeated edge are added")


def refused(name, source, *words, count=0):
    """Check that a conversion ends with one sentence that has the words, and leaves neither a folder nor a temporary
    file. `count` of the words are arguments."""
    before = sorted(os.listdir(base))
    result, folder = convert(source, *words[:count])
    good = result.returncode == 1 and result.stderr.startswith("convert.py: ") and result.stderr.count("\n") == 1
    good = good and all(word in result.stderr for word in words[count:])
    ok(good and sorted(os.listdir(base)) == before and not os.path.exists(folder), f"refused: {name}", words,
       result.stderr)


def test_lists_refused():
    for name, text, words in (
            ("a word", "0 1\n1 2\n2 apple\n", ("line 3, column 3", "'apple'", "a whole number")),
            ("a heading", "a,b\n1,2\n", ("line 1, column 1", "'a'", "--skip")),
            ("a fraction", "0 1\n1 0.5\n", ("line 2, column 3", "'0.5'")),
            ("one column", "0 1\n\n7\n", ("line 3", "found 1 columns, expected 2")),
            ("an empty field", "0,1\n0,,1\n", ("line 2, column 2", "empty field")),
            ("a negative vertex", "0 1\n5 -1\n", ("line 2, column 3", "vertex -1")),
            ("a large vertex", "0 1\n99999999999999999999 1\n", ("line 2, column 1", "vertex 9223372036854775807")),
            ("no weight", "0 1\n", ("--weights", "expected 3"))):
        args = ("--weights",) if name == "no weight" else ()
        path = write_text(f"{base}/bad/list.txt", text)
        refused(name, path, *args, path, *words[len(args):], count=len(args))
    refused("a vertex above --vertices", write_text(f"{base}/bad/list.txt", "0 1\n1 5\n"), "--vertices", "5",
            "line 2, column 3", "vertex 5", "0 to 4", count=2)
    whole = gzip.compress("".join(f"{u} {v}\n" for u, v in edges.tolist() * 50).encode())
    for name, data, words in (("cut off", whole[:len(whole) // 2], ("is cut off", "line")),
                              ("damaged", whole[:-8] + bytes(8), ("is damaged", "CRC"))):
        with open(f"{base}/bad/list.txt.gz", "wb") as file:
            file.write(data)
        refused(f"an archive that is {name}", f"{base}/bad/list.txt.gz", "list.txt.gz", *words)
    refused("a name that says nothing", write_text(f"{base}/bad/graph.doc", "0 1\n"), "layout", "graph.doc",
            "ogb: raw/edge.csv.gz", "metis")
    refused("a folder of something else", f"{base}/bad", "the folder has", "list.txt", "processed/paper")
    refused("nothing there", f"{base}/none", "there is no")
    write_text(f"{base}/bad/wide.graph", "2 1\n" + "2 " * 2**20 + "\n1\n")
    refused("a line that is too long", f"{base}/bad/wide.graph", "--memory", "96M", "line 2 has more than 512.0 KB",
            "--memory", count=2)
    refused("and the same with more memory", f"{base}/bad/wide.graph", "1048577 neighbours")
    refused("no size", f"{base}/bad/list.txt", "--memory", "much", "'much' is no size", count=2)
    refused("too little memory", f"{base}/bad/list.txt", "--memory", "10M", "96.0 MB", count=2)


def test_metis_refused():
    for name, text, words in (("a neighbour out of range", "2 1\n2\n3\n", ("line 3, column 1", "'3'", "1 to 2")),
                              ("vertex 0", "2 1\n2\n0\n", ("line 3, column 1", "'0'")),
                              ("a self loop", "2 1\n1\n2\n", ("line 2, column 1", "itself")),
                              ("an edge missing", "3 2\n2\n1\n\n", ("2 neighbours", "twice the 2 edges")),
                              ("a line missing", "3 1\n2\n1\n", ("2 vertices", "expected 3")),
                              ("a line too many", "2 1\n2\n1\n1\n", ("line 4", "end of the file")),
                              ("one direction only", "3 1\n2 3\n\n\n", ("not symmetric",)),
                              ("other weights", "2 1 1\n2 5\n1 6\n", ("not symmetric",)),
                              ("no weight", "2 1 1\n2 5\n1\n", ("line 3", "has no weight")),
                              ("no vertex weight", "2 1 10\n1 2\n\n", ("line 3", "found 0 numbers")),
                              ("a wrong fmt", "2 1 7\n2\n1\n", ("line 1, column 5", "'7'")),
                              ("a word", "2 1\n2\nx\n", ("line 3, column 1", "'x'"))):
        refused(f"METIS: {name}", write_text(f"{base}/bad/m.graph", text), "m.graph", *words)


def test_folders_refused(text):
    def changed(name, file, content, *words):
        with open(f"{text}/{file}", "rb") as before:
            kept = before.read()
        write_text(f"{text}/{file}", content)
        refused(f"OGB: {name}", text, "--split", "time", *words, count=2)
        with open(f"{text}/{file}", "wb") as after:
            after.write(kept)
    changed("a vertex out of range", "raw/edge.csv.gz", f"0,1\n{N},1\n", "edge.csv.gz", "line 2, column 1",
            f"vertex {N}, expected 0 to {N - 1}")
    changed("too few edges", "raw/edge.csv.gz", "0,1\n", "has 1 edges", f"expected {len(edges)}")
    changed("too few rows", "raw/node-feat.csv.gz", "1.0,2.0\n", "node-feat.csv.gz", "1 rows, expected one for each")
    changed("rows of other lengths", "raw/node-feat.csv.gz", "1.0,2.0\n1.0\n", "line 2", "1 columns, expected 2")
    changed("half a label", "raw/node-label.csv.gz", "0\n0.5\n", "vertex 1 has label 0.5")
    changed("a vertex in two parts", "split/time/valid.csv.gz", csv(np.flatnonzero(split == 1)[:, None]),
            "valid.csv.gz", "for training already")
    changed("too large for the disk", "raw/num-edge-list.csv.gz", "1000000000000000\n", "of disk", "free")
    changed("too large for the memory", "raw/num-node-list.csv.gz", "2000000000\n", "2,000,000,000 vertices",
            "--memory", "suffices")
    changed("more vertices than are legal", "raw/num-node-list.csv.gz", "3000000000\n", "3000000000 vertices")
    refused("weights that there are not", text, "--weights", "--split", "time", "has no weights", count=3)
    path = f"{base}/amazon.npz"
    with open(path, "rb") as file:
        whole = file.read()
    with open(f"{base}/bad/cut.npz", "wb") as file:
        file.write(whole[:-100])
    refused("an .npz that is cut off", f"{base}/bad/cut.npz", "no complete .npz archive")
    np.savez(f"{base}/bad/other.npz", x=features)
    refused("another .npz", f"{base}/bad/other.npz", "has the arrays x", "adj_indptr", "node_features")
    igb = f"{base}/igb/processed/paper__cites__paper/edge_index.npy"
    os.truncate(igb, os.path.getsize(igb) - 8)
    refused("an .npy that is cut off", f"{base}/igb", "edge_index.npy", "cut off")
    result = call(f"{base}/lists/list.txt", base)
    ok(result.returncode == 1 and "exists already" in result.stderr, "refused: a folder that exists", result.stderr)


PEAK = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv[:] = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(*[line for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""


def test_interrupt(source):
    """Send SIGTERM while edges are in temporary files."""
    before = sorted(os.listdir(base))
    with subprocess.Popen([sys.executable, "-B", converter, source, f"{base}/stopped", "--quiet"], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end and not any(name.startswith("edges-") for _, _, names in os.walk(base)
                                                 for name in names):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=TIMEOUT)[1]
    ok(process.returncode == 130 and "interrupted" in said and sorted(os.listdir(base)) == before,
       "after SIGTERM nothing is left", process.returncode, said, os.listdir(base))


def test_memory():
    """Convert 14 million edges of 8 bytes, a quarter of which end at one vertex, in 96 MB of memory."""
    n, count, limit = 10**6, 7 * 10**6, 96
    folder = f"{base}/large/processed"
    many = draw.integers(0, n, (count, 2), np.int32)
    many[::2, 1] = 7
    write_array(f"{folder}/paper__cites__paper/edge_index.npy", many)
    write_array(f"{folder}/paper/node_feat.npy", np.ones((n, 8), np.float32))
    write_array(f"{folder}/paper/node_label_19.npy", np.ones(n, np.float32))
    test_interrupt(f"{base}/large")
    result = subprocess.run([sys.executable, "-B", "-c", PEAK, os.path.dirname(converter), converter, f"{base}/large",
                             f"{base}/large-out", "--undirected", "--memory", f"{limit}M", "--quiet"],
                            capture_output=True, text=True, timeout=TIMEOUT)
    if not ok(result.returncode == 0, "a graph larger than the memory is converted", result.stderr):
        return
    peak = int(result.stdout.rsplit("VmHWM:", 1)[1].split()[0]) // 1024
    ok(peak <= limit, f"in {peak} of {limit} MB, its edges have {2 * count * 8 >> 20}", result.stdout)
    found = load(f"{base}/large-out", "edges").astype(np.int64)
    many = many.astype(np.int64)
    expected = np.concatenate((many[:, 1] << 32 | many[:, 0], many[:, 0] << 32 | many[:, 1]))
    expected.sort()
    expected = expected[np.concatenate(([True], expected[1:] != expected[:-1]))]
    ok(np.array_equal(found[1] << 32 | found[0], expected), "and its edges are right")


text_folder = test_ogb()
test_npz()
test_igb()
test_metis()
test_edge_lists()
test_lists_refused()
test_metis_refused()
test_folders_refused(text_folder)
test_memory()
result = subprocess.run([sys.executable, "-B", converter, "--help"], capture_output=True, text=True, timeout=TIMEOUT)
ok(result.returncode == 0 and "--memory" in result.stdout, "--help")
tap.done()
