# SPDX-License-Identifier: Apache-2.0
"""Checks meshes of spectral elements as in nekRS: each Gauss-Lobatto-Legendre point of each element has a row, the
elements are divided among ranks, and nodes on the borders are shared. Nodes, edges, halo, multiplicities and weights
are compared with sets that plain Python makes from the whole mesh."""
import itertools
import threading

import graft
import numpy as np
import pytest
from graft._abi import ffi
from graft.context import new

ELEMENTS = {2: (4, 3), 3: (3, 2, 2)}


def gll(p):
    """The p + 1 Gauss-Lobatto-Legendre points between 0 and 1: both ends, and the extrema of the Legendre
    polynomial."""
    inner = np.polynomial.legendre.Legendre.basis(p).deriv().roots()
    return (np.concatenate([[-1.0], np.sort(inner.real), [1.0]]) + 1) / 2


def lattice(elements, p, periodic):
    """The number of nodes in each direction."""
    return [n * p + (0 if periodic and c == 0 else 1) for c, n in enumerate(elements)]


def element(at, p, sides):
    """The ids and coordinates of the points of an element, first direction fastest. Ids need more than 32 bits."""
    ids, points = [], []
    for local in itertools.product(*(range(p + 1) for _ in at)):
        local = local[::-1]
        whole = [(n * p + k) % side for n, k, side in zip(at, local, sides)]
        number = 0
        for k, side in zip(whole[::-1], sides[::-1]):
            number = number * side + k
        ids.append(2**40 + 7 * number)
        points.append([n + gll(p)[k] for n, k in zip(at, local)])
    return ids, points


def lines(dim, p):
    """The pairs of local points that are neighbours in one direction."""
    points = list(itertools.product(*(range(p + 1) for _ in range(dim))))
    number = {point[::-1]: k for k, point in enumerate(points)}
    return [(number[point], number[point[:c] + (point[c] + 1,) + point[c + 1:]])
            for point in number for c in range(dim) if point[c] < p]


def small_cells(dim, p):
    """The cells between the points of an element, with corners as VTK orders them."""
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    if dim == 3:
        corners = [corner + (top,) for top in (0, 1) for corner in corners]
    step = [(p + 1)**c for c in range(dim)]
    return [[sum((k + d) * s for k, d, s in zip(at, corner, step)) for corner in corners]
            for at in itertools.product(*(range(p) for _ in range(dim)))]


def owners_of(elements, n_ranks, scattered):
    count = int(np.prod(elements))
    if scattered:
        return np.random.default_rng(5).permutation(np.arange(count) % n_ranks)
    return np.arange(count) * n_ranks // count


class Part:
    """The part of the mesh that a rank passes to Graft, and the results that follow from it."""

    def __init__(self, elements, p, periodic, mine, as_edges):
        dim, sides = len(elements), lattice(elements, p, periodic)
        self.ids, self.points, pairs, self.cells = [], [], [], []
        for at in mine:
            first = len(self.ids)
            ids, points = element(at, p, sides)
            self.ids += ids
            self.points += points
            pairs += [(first + a, first + b) for a, b in lines(dim, p)]
            self.cells += [[first + k for k in cell] for cell in small_cells(dim, p)]
        self.pairs = np.array([*pairs, *((b, a) for a, b in pairs)], np.int64).reshape(-1, 2)
        self.as_edges = as_edges
        self.nodes = set(self.ids)
        self.edges = {(self.ids[a], self.ids[b]) for a, b in self.pairs}
        self.period = [float(elements[0]) if periodic else 0.0] + [0.0] * (dim - 1)

    def mesh(self, ranks):
        corners = 4 if len(self.period) == 2 else 8
        given = {"edges": (self.pairs[:, 0].copy(), self.pairs[:, 1].copy())} if self.as_edges else {
            "cells": np.array(self.cells, np.int32).reshape(-1, corners),
            "cell_type": "quad" if corners == 4 else "hexahedron"}
        return graft.Mesh(np.array(self.points).reshape(-1, len(self.period)), ids=np.array(self.ids, np.int64),
                          kind="shared", period=self.period, ranks=ranks, **given)


def seen(mesh, n_ranks):
    """Copies of the arrays of a mesh."""
    view = new("graft_mesh_view")
    mesh.context.call(mesh._meshes.view, mesh._handle, view)
    sizes = {"node_of": view.n_rows, "id": view.n_nodes, "node_weight": view.n_nodes, "row_ptr": view.n_nodes + 1,
             "source": view.n_edges, "edge_ranks": view.n_edges, "position": view.n_sources * view.dim,
             "halo_start": n_ranks + 1, "halo_node": view.n_halo}
    return {name: np.array(ffi.unpack(getattr(view, name), size)) if getattr(view, name) else np.ones(size)
            for name, size in sizes.items()} | {"info": mesh.info(), "n_sources": view.n_sources}


def views(parts):
    """The meshes of all ranks, which are threads."""
    found = {}

    def run(ranks):
        mesh = parts[ranks.rank].mesh(ranks)
        found[ranks.rank] = seen(mesh, len(parts))
        mesh.close()
        ranks.close()

    threads = [threading.Thread(target=run, args=(ranks,)) for ranks in graft.Ranks.threads(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[rank] for rank in range(len(parts))]


def check_nodes(part, view, parts):
    ids = view["id"].tolist()
    assert len(ids) == len(set(ids)) and set(ids) == part.nodes
    assert [ids[node] for node in view["node_of"]] == part.ids
    ranks_of_node = [sum(node in other.nodes for other in parts) for node in ids]
    np.testing.assert_array_equal(view["node_weight"], 1 / np.array(ranks_of_node))


def check_edges(part, view, parts):
    ids = view["id"].tolist()
    targets = np.repeat(np.arange(len(ids)), np.diff(view["row_ptr"]))
    edges = [(ids[target], ids[source]) for target, source in zip(targets, view["source"])]
    assert len(edges) == len(set(edges)) and set(edges) == part.edges
    number = {node: k for k, node in enumerate(ids)}
    assert edges == sorted(edges, key=lambda edge: (number[edge[0]], edge[1]))
    assert view["edge_ranks"].tolist() == [sum(edge in other.edges for other in parts) for edge in edges]
    x = view["position"].reshape(len(ids), -1)
    offset = x[view["source"]] - x[targets]
    expected = {(part.ids[b], part.ids[a]): np.subtract(part.points[a], part.points[b]) for a, b in part.pairs}
    for c, period in enumerate(part.period):
        if period > 0:
            offset[:, c] -= period * np.round(offset[:, c] / period)
    np.testing.assert_allclose(offset, [expected[edge] for edge in edges], rtol=0, atol=1e-12)


def check_halo(rank, view, parts, all_views):
    """Check that the halo has a copy of each node that this rank shares with a neighbour, once for each neighbour."""
    for q, other in enumerate(parts):
        rows = view["halo_node"][view["halo_start"][q]:view["halo_start"][q + 1]].astype(int)
        received = [all_views[q]["id"][k] for k in rows]
        common = parts[rank].nodes & other.nodes if q != rank else set()
        assert len(received) == len(common) and set(received) == common
    assert view["n_sources"] == len(parts[rank].nodes)


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("n_ranks", [1, 2, 4])
@pytest.mark.parametrize("p", [1, 3, 5])
@pytest.mark.parametrize("dim", [2, 3])
def test_spectral_elements(dim, p, n_ranks, scattered):
    periodic = p == 3
    elements = ELEMENTS[dim]
    owner = owners_of(elements, n_ranks, scattered)
    where = list(itertools.product(*(range(n) for n in elements)))
    parts = [Part(elements, p, periodic, [at for at, q in zip(where, owner) if q == rank], scattered)
             for rank in range(n_ranks)]
    all_views = views(parts)
    for rank, (part, view) in enumerate(zip(parts, all_views)):
        check_nodes(part, view, parts)
        check_edges(part, view, parts)
        check_halo(rank, view, parts, all_views)
    sides = lattice(elements, p, periodic)
    n_nodes = int(np.prod(sides))
    n_edges = sum(2 * n_nodes // sides[c] * (sides[c] if periodic and c == 0 else sides[c] - 1) for c in range(dim))
    assert (all_views[0]["info"]["n_nodes"], all_views[0]["info"]["n_edges"]) == (n_nodes, n_edges)
    assert abs(sum(view["node_weight"].sum() for view in all_views) - n_nodes) < 1e-9 * n_nodes
    assert abs(sum((1 / view["edge_ranks"]).sum() for view in all_views) - n_edges) < 1e-9 * n_edges
