# SPDX-License-Identifier: Apache-2.0
"""Reads archives that PyTorch Geometric downloads: Reddit, data sets of GraphSAINT (Flickr, Yelp, AmazonProducts),
citation and co-purchase graphs with adj_* and attr_*, and heterophilous graphs."""
import dataclasses
import json
import os

import numpy

from arrays import Archive, Array, npy
from problem import Problem, show_size
from source import Rows, Source, array_edges, array_rows, assign, expect_whole, index_split

EXPECTED = ("reddit_data.npz and reddit_graph.npz; or adj_full.npz, feats.npy, class_map.json and role.json; or a file "
            "*.npz with adj_data, adj_indices, adj_indptr and labels, or with edges, node_features and node_labels")
FOLDERS = ("", "raw")
JSON_BYTES = 12  # the largest memory in bytes for each byte of the file


def find(path, name):
    """Find the file of this name in the folder, or in its subfolder raw."""
    for folder in FOLDERS:
        file = os.path.join(path, folder, name)
        if os.path.exists(file):
            return file
    return None


def detect(path):
    if os.path.isfile(path):
        return path.endswith(".npz")
    return any(find(path, name) for name in ("reddit_graph.npz", "adj_full.npz"))


def read(path, options):
    if os.path.isfile(path):
        archive = Archive(path)
        if "adj_indptr" in archive:
            return read_citations(archive, options)
        if "edges" in archive and "node_features" in archive:
            return read_heterophilous(archive, options)
        raise Problem(f"'{path}' has the arrays {archive.listing()}; expected adj_data, adj_indices, adj_indptr and "
                      "labels, or edges, node_features and node_labels")
    if find(path, "reddit_graph.npz"):
        return read_reddit(path, options)
    return read_graphsaint(path, options)


def needed(path, name):
    file = find(path, name)
    if file is None:
        raise Problem(f"'{path}' has no {name}, neither has its folder raw")
    return file


@dataclasses.dataclass
class Csr:
    """A sparse matrix that is stored by rows."""
    indptr: Array
    indices: Array
    data: Array
    shape: tuple

    def __post_init__(self):
        expect_whole(self.indptr, self.indices)
        if self.indptr.n_rows != self.shape[0] + 1 or self.indices.n_rows != self.data.n_rows:
            raise Problem(f"{self.indptr.name} has {self.indptr.n_rows} numbers, expected one more than the "
                          f"{self.shape[0]} rows; {self.indices.name} has {self.indices.n_rows}, {self.data.name} "
                          f"{self.data.n_rows}, expected as many")

    def pointers(self, block):
        """Yield (first row, row pointers of some rows and of the row after them)."""
        last, row = None, 0
        for part in self.indptr.items(0, self.indptr.n_rows, block):
            part = part.astype(numpy.int64)
            part = part if last is None else numpy.concatenate((last, part))
            wrong = numpy.flatnonzero(numpy.diff(part) < 0)
            if len(wrong) or (last is None and part[0] != 0):
                raise Problem(f"{self.indptr.name} falls at row {row + int(wrong[0]) if len(wrong) else 0}, expected "
                              "pointers that begin at 0 and never fall")
            yield row, part
            row, last = row + len(part) - 1, part[-1:]
        if last is None or last[0] != self.indices.n_rows:
            raise Problem(f"{self.indptr.name} ends with {None if last is None else last[0]}, expected the "
                          f"{self.indices.n_rows} entries of {self.indices.name}")

    def entries(self, block):
        """Yield (rows, columns, values) in the order of the matrix."""
        columns = self.indices.items(0, self.indices.n_rows, block)
        values = self.data.items(0, self.data.n_rows, block)
        at, pointers = 0, self.pointers(block)
        row, part = next(pointers)
        for column, value in zip(columns, values):
            rows = numpy.empty(len(column), numpy.int64)
            done = 0
            while done < len(column):
                while part[-1] <= at + done:
                    row, part = next(pointers)
                take = min(len(column) - done, int(part[-1]) - at - done)
                rows[done:done + take] = row - 1 + numpy.searchsorted(part, numpy.arange(at + done, at + done + take),
                                                                      side="right")
                done += take
            at += len(column)
            yield rows, column, value
        for _ in pointers:
            pass


def read_csr(archive, prefix):
    names = [archive[prefix + name] for name in ("indptr", "indices", "data")]
    return Csr(*names, tuple(int(extent) for extent in archive[prefix + "shape"].whole()))


def csr_edges(matrix, weighted):
    def edges(block):
        for number, (row, column, value) in enumerate(matrix.entries(block)):
            yield row, column, value if weighted else None, (
                lambda i, _, first=number * block: f"{matrix.indices.name}, entry {first + i}")
    return edges


def square(matrix):
    if matrix.shape[0] != matrix.shape[1]:
        raise Problem(f"{matrix.indptr.name}: the matrix is {list(matrix.shape)}, expected as many rows as columns")
    return matrix.shape[0]


def read_citations(archive, options):
    matrix = read_csr(archive, "adj_")
    source = Source("npz with adj_*", csr_edges(matrix, options.weights), square(matrix), matrix.indices.n_rows)
    source.weighted = options.weights
    if "attr_indptr" in archive:
        source.sparse = read_csr(archive, "attr_")
    elif "attr_matrix" in archive:
        source.features = array_rows(archive["attr_matrix"])
    source.labels = array_rows(archive["labels"]) if "labels" in archive else None
    return source


def read_heterophilous(archive, options):
    features = array_rows(archive["node_features"])
    edges = archive["edges"]
    source = Source("npz with edges", array_edges(edges, by_row=False), features.n_rows, edges.n_rows)
    source.features, source.labels = features, array_rows(archive["node_labels"])
    if "train_masks" in archive:
        source.split = mask_split(archive, options)
    if not options.undirected:
        source.left_out.append("the second direction of each edge, which such sets store once (--undirected adds it)")
    return source


def mask_split(archive, options):
    """The split in row --split of the masks; by default it is the first row."""
    masks = [archive[name + "_masks"] for name in ("train", "val", "test")]
    count = masks[0].n_rows
    if options.split is not None and not (options.split.isdigit() and int(options.split) < count):
        raise Problem(f"{masks[0].name} has no split '{options.split}', but 0 to {count - 1}")
    chosen = int(options.split or 0)

    def fill(members):
        for number, mask in enumerate(masks, 1):
            if mask.shape != (count, len(members)):
                raise Problem(f"{mask.name} has shape {list(mask.shape)}, expected {[count, len(members)]}")
            at = 0
            for part in mask.items(chosen * len(members), len(members), 2**20):
                wrong = numpy.flatnonzero((part != 0) & (part != 1))
                if len(wrong):
                    raise Problem(f"{mask.name}: vertex {at + wrong[0]} has {part[wrong[0]]:g}, expected 0 or 1")
                assign(members, at + numpy.flatnonzero(part), number, mask.name)
                at += len(part)
    return fill


def read_reddit(path, options):
    graph, data = Archive(needed(path, "reddit_graph.npz")), Archive(needed(path, "reddit_data.npz"))
    features = array_rows(data["feature"])
    source = Source("Reddit", coo_edges(graph, options.weights), features.n_rows, graph["row"].n_rows)
    source.weighted = options.weights
    source.features, source.labels = features, array_rows(data["label"])
    types = data["node_types"]

    def fill(members):
        at = 0
        for part in types.items(0, len(members), 2**20):
            wrong = numpy.flatnonzero(~((part >= 0) & (part <= 3) & (part == numpy.floor(part))))
            if len(wrong):
                raise Problem(f"{types.name}: vertex {at + wrong[0]} has {part[wrong[0]]}, expected 0 to 3")
            members[at:at + len(part)] = part
            at += len(part)
    if types.n_rows != features.n_rows:
        raise Problem(f"{types.name} has {types.n_rows} numbers, expected one for each of {features.n_rows} vertices")
    source.split = fill
    return source


def coo_edges(graph, weighted):
    rows, columns, values = graph["row"], graph["col"], graph["data"]
    expect_whole(rows, columns)
    if not rows.n_rows == columns.n_rows == values.n_rows:
        raise Problem(f"'{graph.path}' has {rows.n_rows} rows, {columns.n_rows} columns and {values.n_rows} values, "
                      "expected as many")

    def edges(block):
        parts = [array.items(0, array.n_rows, block) for array in (rows, columns, values)]
        for number, (row, column, value) in enumerate(zip(*parts)):
            yield row, column, value if weighted else None, (
                lambda i, _, first=number * block: f"{rows.name}, entry {first + i}")
    return edges


def read_graphsaint(path, options):
    matrix = read_csr(Archive(needed(path, "adj_full.npz")), "")
    source = Source("GraphSAINT", csr_edges(matrix, options.weights), square(matrix), matrix.indices.n_rows)
    source.weighted = options.weights
    source.features = array_rows(npy(needed(path, "feats.npy")))
    n, roles = source.n_vertices, load_json(needed(path, "role.json"), options)

    def fill(members):
        for name, number in (("tr", 1), ("va", 2), ("te", 3)):
            index_split(f"'{name}' of role.json", lambda name=name: [role(roles, name)], number, n)(members)
    source.split = fill
    source.labels = json_labels(load_json(needed(path, "class_map.json"), options), n)
    return source


def role(roles, name):
    """The vertices of a part, which role.json lists."""
    found = roles.get(name) if isinstance(roles, dict) else None
    if not isinstance(found, list) or not all(type(vertex) is int for vertex in found):
        raise Problem(f"role.json has no list '{name}' of vertices, whole numbers; expected the lists tr, va and te")
    return numpy.array(found, numpy.int64)


def load_json(path, options):
    size = os.path.getsize(path) * JSON_BYTES
    if size > options.work_bytes:
        raise Problem(f"'{path}' needs up to {show_size(size)} of memory, {show_size(options.work_bytes)} are left of "
                      "--memory")
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise Problem(f"'{path}' is no JSON: {error}") from None


def json_labels(classes, n):
    if not isinstance(classes, dict):
        raise Problem("class_map.json is no object of JSON, expected the class of each vertex by its number")
    missing = next((v for v in range(n) if str(v) not in classes), None)
    if missing is not None:
        raise Problem(f"class_map.json has no class of vertex {missing}, expected those of 0 to {n - 1}")
    one = classes["0"] if n else 0
    columns = len(one) if isinstance(one, list) else 1

    def class_of(vertex):
        found = classes[str(vertex)]
        numbers = found if isinstance(found, list) else [found]
        if isinstance(found, list) != isinstance(one, list) or len(numbers) != columns or not all(
                isinstance(number, (int, float)) for number in numbers):
            raise Problem(f"class_map.json has {json.dumps(found)[:60]} for vertex {vertex}, expected "
                          + (f"{columns} numbers as for vertex 0" if isinstance(one, list) else "a number"))
        return numbers

    def blocks(size):
        rows = max(size // (8 * columns), 1)
        for first in range(0, n, rows):
            yield numpy.array([class_of(v) for v in range(first, min(first + rows, n))], numpy.float64)
    return Rows("class_map.json", columns, blocks, n)
