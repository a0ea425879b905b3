# SPDX-License-Identifier: Apache-2.0
"""Reads the citation graphs of the Illinois Graph Benchmark, and that of MAG240M, whose papers are stored in the
same way."""
import os

from arrays import bare, npy
from problem import Problem
from source import Source, array_edges, array_rows, share_split

EXPECTED = "processed/paper/node_feat.npy and processed/paper__cites__paper/edge_index.npy"
BARE_COLUMNS = 1024  # the sizes `large` and `full` are stored without a header
FULL_VERTICES, FULL_LABELLED = 269346174, {"19": 227130858, "2K": 157675969}


def detect(path):
    return edge_file(path) is not None


def edge_file(path):
    """Find the file of edges, and whether it is that of MAG240M, which has the sources in its first row."""
    for relation, by_row in (("paper__cites__paper", False), ("paper___cites___paper", True)):
        file = os.path.join(path, "processed", relation, "edge_index.npy")
        if os.path.exists(file):
            return file, by_row
    return None


def read(path, options):
    file, by_row = edge_file(path)
    edges = npy(file)
    source = Source("MAG240M" if by_row else "IGB", array_edges(edges, by_row))
    source.n_edges = max(edges.shape, default=0)
    papers = os.path.join(path, "processed", "paper")
    features = stored(os.path.join(papers, "node_feat.npy"), BARE_COLUMNS)
    source.features = array_rows(features)
    source.n_vertices = features.n_rows
    if by_row:
        source.labels = array_rows(npy(os.path.join(papers, "node_label.npy")))
        source.left_out.append("the split, which only PyTorch reads (--random-split makes one)")
        return source
    classes = options.classes or "19"
    source.labels = array_rows(stored(os.path.join(papers, f"node_label_{classes}.npy"), 1))
    labelled = FULL_LABELLED[classes] if features.n_rows == FULL_VERTICES else None
    source.split = share_split(0.6, 0.2, labelled)
    return source


def stored(path, columns):
    """Open an array with a header, or without one as in the sizes large and full."""
    if not os.path.exists(path):
        raise Problem(f"there is no '{path}'")
    with open(path, "rb") as file:
        has_header = file.read(6) == b"\x93NUMPY"
    return npy(path) if has_header else bare(path, "<f4", columns)
