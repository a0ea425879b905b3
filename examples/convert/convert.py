#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convert a graph from the files of others to a folder that graft-train reads.

The layout of SOURCE is detected from its files:
  OGB         a folder with raw/edge.csv.gz or raw/data.npz, and split/NAME/train.csv.gz
  npz         Reddit, GraphSAINT and other archives of PyTorch Geometric
  IGB         a folder with processed/paper/node_feat.npy; MAG240M too
  METIS       a file *.graph
  adjacency   a file *.adjlist with a vertex and its neighbours in each line
  edges       a list of edges *.txt, *.csv, *.tsv, *.edges or *.el, also with .gz
Edges are sorted and stored once. The graph is never held in memory. The folder appears when it is complete."""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

try:
    import numpy
except ImportError:
    sys.exit("convert.py: there is no NumPy; on Debian it is the package python3-numpy")

import adjacency
import edge_list
import edge_sort
import folder as dataset
import igb
import metis
import npz
import ogb
from problem import MAX_VERTICES, Problem, parse_size, show_size
from progress import Progress
from source import as_f32, random_split

RELEASE = "0.2.0"
LAYOUTS = {"ogb": ogb, "npz": npz, "igb": igb, "metis": metis, "adjacency": adjacency, "edges": edge_list}
BASE_BYTES = 64 * 2**20  # for Python and NumPy, with some reserve
LEAST_MEMORY = 96 * 2**20
NEED_BYTES = {False: 16, True: 48}  # disk space for an edge, without and with weights


def parse_arguments():
    parser = argparse.ArgumentParser(prog="convert.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SOURCE", help="a folder or a file")
    parser.add_argument("output", metavar="FOLDER", help="where to write; must not exist")
    parser.add_argument("--layout", choices=LAYOUTS, help="of SOURCE (default: as its files show)")
    parser.add_argument("--memory", default="1G", metavar="SIZE", help="most memory of this program (default 1G)")
    parser.add_argument("--temporary", metavar="DIR", help="for temporary files (default: beside FOLDER)")
    parser.add_argument("--undirected", action="store_true", help="store every edge in both directions")
    parser.add_argument("--no-self-loops", action="store_true", help="leave out edges from a vertex to itself")
    parser.add_argument("--weights", action="store_true", help="keep weights of edges; writes graph.mtx")
    parser.add_argument("--split", metavar="NAME", help="which split, if there are several")
    parser.add_argument("--random-split", metavar="TRAIN,VALIDATION",
                        help="draw a random split with these fractions, as 0.6,0.2")
    parser.add_argument("--classes", choices=("19", "2K"), help="IGB: which labels (default 19)")
    parser.add_argument("--vertices", type=int, metavar="N", help="edges: how many vertices (default: the largest + 1)")
    parser.add_argument("--first-vertex", type=int, default=0, metavar="N", help="edges: the first vertex (default 0)")
    parser.add_argument("--separator", choices=edge_list.SEPARATORS,
                        help="edges: between columns (default: as the file shows)")
    parser.add_argument("--skip", type=int, default=0, metavar="LINES", help="edges: lines to leave out at the top")
    parser.add_argument("--version", action="version", version=f"convert.py: Graft {RELEASE}")
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    return parser.parse_args()


def prepare(options):
    """Derive the sizes of blocks from the available memory."""
    memory = parse_size(options.memory)
    if memory < LEAST_MEMORY:
        raise Problem(f"--memory {options.memory} is too little, expected {show_size(LEAST_MEMORY)} or more")
    options.work_bytes = memory - BASE_BYTES
    options.text_bytes = options.work_bytes // 32
    options.edge_block = min(options.work_bytes // 512, 2**20)
    options.shares = None
    if options.random_split:
        try:
            options.shares = [float(share) for share in options.random_split.split(",")]
        except ValueError:
            options.shares = []
        if len(options.shares) != 2 or not all(0 <= share <= 1 for share in options.shares) or sum(options.shares) > 1:
            raise Problem(f"--random-split {options.random_split}: expected two shares with a sum of at most 1, as "
                          "0.6,0.2")


def find_layout(options):
    path = options.source
    if not os.path.exists(path):
        raise Problem(f"there is no '{path}'")
    if options.layout:
        return LAYOUTS[options.layout]
    found = [module for module in LAYOUTS.values() if module.detect(path)]
    if found:
        return found[0]
    what = f"the folder has {', '.join(sorted(os.listdir(path))[:8]) or 'nothing'}" if os.path.isdir(path) else \
        "the name of the file says none"
    expected = "; ".join(f"{name}: {module.EXPECTED}" for name, module in LAYOUTS.items())
    raise Problem(f"the layout of '{path}' is unknown: {what}. Expected {expected}. --layout chooses one")


def check_resources(options, source, temporary):
    """Check before the graph is read that memory and disk suffice."""
    n = source.n_vertices
    if n is not None and not 0 <= n <= MAX_VERTICES:
        raise Problem(f"'{options.source}' has {n} vertices, expected at most {MAX_VERTICES}")
    if source.split and n is not None and n > options.work_bytes // 2:
        raise Problem(f"the split of {n:,} vertices needs {show_size(n)} of memory: --memory "
                      f"{(2 * n + BASE_BYTES) // 2**20 + 1}M suffices")
    need = (source.n_edges or 0) * (1 + options.undirected) * NEED_BYTES[source.weighted]
    rows = 4 * source.features.columns if source.features else 0
    rows += 13 * source.labels.columns if source.labels else 0
    places = {os.stat(temporary).st_dev: [need, temporary]}
    output = os.path.dirname(os.path.abspath(options.output))
    places.setdefault(os.stat(output).st_dev, [need, output])[0] += (n or 0) * rows
    for need, path in places.values():
        free = shutil.disk_usage(path).free
        if need > free:
            raise Problem(f"the conversion needs up to {show_size(need)} of disk in '{path}', which has "
                          f"{show_size(free)} free")


class Edges:
    """Passes all edges to a sort, and counts them."""

    def __init__(self, options, source, sort, progress):
        self.options, self.source, self.sort, self.progress = options, source, sort, progress
        self.read = self.loops = self.reversed = 0

    def read_all(self):
        for source, destination, weight, place in self.source.edges(self.options.edge_block):
            self.check(source, destination, place)
            if self.source.weighted:
                weight = as_f32(weight, lambda i, place=place: f"{place(i, 2)}, weight")
            self.read += len(source)
            self.add(source, destination, weight if self.source.weighted else None)
            self.progress.show("edges read", self.read, self.source.n_edges)
        self.source.end_check()
        if self.source.n_edges is not None and self.read != self.source.n_edges:
            raise Problem(f"'{self.options.source}' has {self.read} edges, expected {self.source.n_edges}")

    def check(self, source, destination, place):
        for side, end in enumerate((source, destination)):
            n = MAX_VERTICES if self.source.n_vertices is None else self.source.n_vertices
            wrong = numpy.flatnonzero((end < 0) | (end >= n))
            if len(wrong):
                first = self.options.first_vertex
                raise Problem(f"{place(int(wrong[0]), side)}: found vertex {int(end[wrong[0]]) + first}, expected "
                              f"{first} to {n - 1 + first}")

    def add(self, source, destination, weight):
        loop = source == destination
        loops = int(numpy.count_nonzero(loop))
        self.loops += loops
        if loops and self.options.no_self_loops:
            keep = ~loop
            source, destination = source[keep], destination[keep]
            weight, loop = None if weight is None else weight[keep], loop[keep]
        self.sort.add(source, destination, weight)
        if self.options.undirected:
            other = ~loop
            self.reversed += int(numpy.count_nonzero(other))
            self.sort.add(destination[other], source[other], None if weight is None else weight[other], True)


def write_edges(options, source, folder, temporary, progress):
    """Write all edges. The result is the number of vertices."""
    expected = None if source.n_edges is None else source.n_edges * (1 + options.undirected)
    sort = edge_sort.EdgeSort(temporary, options.work_bytes, source.weighted, expected, source.n_vertices)
    edges = Edges(options, source, sort, progress)
    edges.read_all()
    n = sort.largest + 1 if source.n_vertices is None else source.n_vertices
    writer = dataset.WeightedEdgeWriter(folder, n) if source.weighted else dataset.EdgeWriter(folder, temporary)
    for sorted_edges, weights in sort.sorted():
        writer.add(sorted_edges, weights)
        progress.show("edges written", writer.count, sort.added.count)
    writer.close()
    check_sums(sort, writer.read_again(options.edge_block))
    progress.end()
    name = os.path.basename(writer.path)
    report("vertices", f"{n:,}")
    report("edges read", f"{edges.read:,}" + (f", and {edges.reversed:,} reversed" if options.undirected else ""))
    report("self loops", f"{edges.loops:,} {'left out' if options.no_self_loops else 'kept'}")
    report("repeated", f"{sort.repeated.count:,} left out")
    report("edges written", f"{writer.count:,} in {name}; read again, count and sum of hashes agree")
    if n > sort.largest + 1 and not source.weighted:
        report("note", f"the last {n - 1 - sort.largest:,} vertices have no edges: only features.npy and labels.npy "
               "have them")
    return n


def check_sums(sort, written):
    """Check that the edges that were read equal those in the file and those that were repeated."""
    together = edge_sort.Sums()
    together.count = written.count + sort.repeated.count
    together.hash = (written.hash + sort.repeated.hash) % 2**64
    if together != sort.added:
        raise Problem(f"the edges written are not those read: {written.count} written and {sort.repeated.count} "
                      f"repeated, {sort.added.count} read, with other sums of hashes; disk or memory may be bad")


def write_vertices(options, source, folder, n, progress):
    size = options.work_bytes // 16
    if source.features:
        dataset.write_features(folder, source.features, n, size, progress)
        report("features", f"{source.features.columns} columns")
    if source.sparse:
        dataset.write_sparse_features(folder, source.sparse, n, options.edge_block)
        report("features", f"{source.sparse.shape[1]} columns, sparse, {source.sparse.indices.n_rows:,} entries")
    if source.labels:
        classes, unlabelled = dataset.write_labels(folder, source.labels, n, size)
        report("labels", f"{classes} classes, {unlabelled:,} vertices without")
    if source.split:
        parts = dataset.write_split(folder, source.split, n, labelled_only=bool(options.shares and source.labels))
        report("split", "{:,} training, {:,} validation, {:,} test".format(*parts))


def choose_weights(options, source):
    if options.weights and not source.weighted:
        raise Problem(f"'{options.source}' has no weights of edges for --weights")
    if source.weighted and not options.weights:
        source.left_out.append("weights of edges (--weights keeps them)")
    source.weighted = options.weights


def report(what, text):
    print(f"{what:<15} {text}")


def convert(options):
    prepare(options)
    module = find_layout(options)
    source = module.read(options.source, options)
    choose_weights(options, source)
    if options.shares:
        source.split = random_split(*options.shares)
    folder = dataset.Folder(options.output)
    parent = options.temporary or os.path.dirname(folder.path)
    if not os.path.isdir(parent):
        raise Problem(f"there is no folder '{parent}' for temporary files")
    progress, start = Progress(options.quiet), time.monotonic()
    check_resources(options, source, parent)
    with folder, tempfile.TemporaryDirectory(prefix=".graft-convert-", dir=parent) as temporary:
        report("layout", source.layout)
        n = write_edges(options, source, folder, temporary, progress)
        write_vertices(options, source, folder, n, progress)
        progress.end()
    for name in source.left_out:
        report("left out", name)
    report("folder", f"{options.output} ({time.monotonic() - start:.0f} s)")


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        convert(options)
    except Problem as error:
        print(f"convert.py: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        where = f"'{error.filename}': " if error.filename else ""
        print(f"convert.py: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        print(f"convert.py: the system has less memory than --memory {options.memory}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("convert.py: interrupted; nothing is left behind", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
