# SPDX-License-Identifier: Apache-2.0
"""Reads folders of the Open Graph Benchmark for prediction of vertices, as they are downloaded: text (ogbn-arxiv,
ogbn-products, ogbn-proteins) and binary (ogbn-papers100M)."""
import os

import numpy

import text
from arrays import Archive
from problem import Problem
from source import Rows, Source, array_edges, array_rows, index_split

EXPECTED = "raw/edge.csv.gz and raw/num-node-list.csv.gz, or raw/data.npz"
PARTS = (("train", 1), ("valid", 2), ("test", 3))


def detect(path):
    return os.path.isdir(path) and any(os.path.exists(os.path.join(path, "raw", name))
                                       for name in ("edge.csv.gz", "data.npz"))


def read(path, options):
    if os.path.exists(os.path.join(path, "raw", "data.npz")):
        return read_binary(path, options)
    return read_text(path, options)


def read_text(path, options):
    raw = os.path.join(path, "raw")
    source = Source("OGB, text", None)
    source.n_vertices = one_number(os.path.join(raw, "num-node-list.csv.gz"))
    edges = os.path.join(raw, "num-edge-list.csv.gz")
    source.n_edges = one_number(edges) if os.path.exists(edges) else None
    source.edges = text_edges(os.path.join(raw, "edge.csv.gz"), options.text_bytes)
    source.features = text_rows(os.path.join(raw, "node-feat.csv.gz"), options.text_bytes)
    source.labels = text_rows(os.path.join(raw, "node-label.csv.gz"), options.text_bytes)
    source.split = read_split(path, source.n_vertices, options)
    for name in ("edge-feat", "edge_reltype", "node_year", "node_species"):
        if os.path.exists(os.path.join(raw, name + ".csv.gz")):
            source.left_out.append(f"raw/{name}.csv.gz")
    return source


def one_number(path):
    """Read the number in a file that describes a single graph."""
    found = [number for _, rows in text.whole_numbers(path, 2**16) for number in rows[:, 0].tolist()]
    if len(found) != 1:
        raise Problem(f"'{path}' has {len(found)} numbers, expected 1: a set of one graph")
    return found[0]


def text_edges(path, limit):
    def edges(_):
        for block, rows in text.whole_numbers(path, limit, 2):
            yield rows[:, 0], rows[:, 1], None, lambda i, side, block=block: block.place(2 * i + side)
    return edges


def text_rows(path, limit):
    if not os.path.exists(path):
        return None
    columns = text.first_line(path).count(b",") + 1

    def blocks(_):
        for block in text.blocks(path, limit, b","):
            yield text.table(block, numpy.float64, columns)
    return Rows(f"'{path}'", columns, blocks)


def read_split(path, n_vertices, options):
    """Read the split with the name in --split, or the only one that exists."""
    folder = os.path.join(path, "split")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    names = [name for name in names if os.path.exists(os.path.join(folder, name, "train.csv.gz"))]
    if options.split is not None and options.split not in names:
        raise Problem(f"'{folder}' has no split '{options.split}', but {', '.join(names) or 'none'}")
    if options.split is None and len(names) > 1:
        raise Problem(f"'{folder}' has the splits {', '.join(names)}: choose one with --split")
    if not names:
        return None
    chosen = os.path.join(folder, options.split or names[0])

    def fill(members):
        for name, number in PARTS:
            file = os.path.join(chosen, name + ".csv.gz")
            index_split(f"'{file}'", lambda file=file: (rows[:, 0] for _, rows in text.whole_numbers(
                file, options.text_bytes)), number, n_vertices)(members)
    return fill


def read_binary(path, options):
    raw = os.path.join(path, "raw")
    data = Archive(os.path.join(raw, "data.npz"))
    counts = data["num_nodes_list"].whole()
    if len(counts) != 1:
        raise Problem(f"{data['num_nodes_list'].name} has {len(counts)} numbers, expected 1: a set of one graph")
    source = Source("OGB, binary", array_edges(data["edge_index"], by_row=True), int(counts[0]))
    source.n_edges = data["edge_index"].shape[-1]
    source.features = array_rows(data["node_feat"]) if "node_feat" in data else None
    labels = os.path.join(raw, "node-label.npz")
    if os.path.exists(labels):
        source.labels = array_rows(Archive(labels)["node_label"])
    source.split = read_split(path, source.n_vertices, options)
    used = ("edge_index", "num_nodes_list", "num_edges_list", "node_feat")
    source.left_out = [f"{name} of raw/data.npz" for name in sorted(data.sizes) if name not in used]
    return source
