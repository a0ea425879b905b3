# SPDX-License-Identifier: Apache-2.0
"""Checks tensors and gradients of PyTorch, and layers of PyTorch Geometric that aggregate with Graft."""
import copy

import graft
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="there is no torch")


@pytest.fixture
def edges():
    torch.manual_seed(3)
    return torch.stack([torch.randint(0, 30, (150,)), torch.randint(0, 27, (150,))])  # the last have no neighbours


def test_gradients_are_those_of_finite_differences(edges):
    values = torch.randn(150, dtype=torch.float64)
    x = torch.randn(30, 3, dtype=torch.float64, requires_grad=True)
    weighted = graft.Matrix.from_edges(*edges, (30, 30), values)
    plain = graft.Matrix.from_edges(*edges, (30, 30))
    factors = torch.rand(30, dtype=torch.float64)
    for a, semiring, scale in ((weighted, "plus_times", None), (weighted, "plus_second", "mean"),
                               (plain, "plus_times", factors), (plain, "max_second", None),
                               (plain, "min_second", None)):
        assert torch.autograd.gradcheck(lambda t: graft.torch.aggregate(a, t, semiring, row_scale=scale), x)
    assert torch.autograd.gradgradcheck(lambda t: graft.torch.aggregate(weighted, t) ** 2, x)


def test_tensors_of_any_stride(edges):
    a = graft.Matrix.from_edges(*edges, (30, 30))
    x = torch.randn(30, 8)
    expected = torch.zeros(30, 8).index_add(0, edges[1], x[edges[0]])
    for one in (x, torch.randn(30, 20)[:, 4:12].copy_(x), x.t().contiguous().t(), x.clone().requires_grad_()):
        torch.testing.assert_close(graft.torch.aggregate(a, one), expected)
    sparse = torch.sparse_coo_tensor(edges.flip(0), torch.ones(150), (30, 30)).to_sparse_csr()
    np.testing.assert_allclose(graft.aggregate(sparse, x), expected, rtol=1e-5, atol=1e-5)
    leaf = x.clone().requires_grad_()
    graft.torch.aggregate(a, leaf).sum().backward()  # the gradient of sum() has a stride of 0
    torch.testing.assert_close(leaf.grad[:, 0], torch.bincount(edges[0], minlength=30).float())
    for wrong in (x.half(), x[0], x.long()):
        with pytest.raises(graft.ArgumentError, match="expected two dimensions"):
            graft.torch.aggregate(a, wrong)
    torch.testing.assert_close(graft.torch.aggregate(a, torch._neg_view(x)), -expected)
    for factors, sentence in ((torch.rand(30, requires_grad=True), "row_scale requires a gradient"),
                              (torch.ones(30, dtype=torch.complex64), "row_scale has type complex64"),
                              (torch.ones(29), "row_scale has shape")):
        with pytest.raises(graft.ArgumentError, match=sentence):
            graft.torch.aggregate(a, x, row_scale=factors)
    with pytest.raises(graft.ArgumentError, match="X is a torch.Tensor, of which NumPy makes no array: .*BFloat16"):
        graft.aggregate(a, x.bfloat16())
    with pytest.raises(graft.ArgumentError, match="X is a torch.Tensor, .*detach"):
        graft.aggregate(a, x.clone().requires_grad_())
    with pytest.raises(graft.ArgumentError, match="expected a graft.Matrix"):
        graft.torch.aggregate(sparse, x)
    with pytest.raises(graft.ArgumentError, match="the gradient is known for"):
        graft.torch.aggregate(a, x, "max_times")


def layers(nn):
    linear = torch.nn.Linear(5, 4)
    return {"sage mean": nn.SAGEConv(5, 4), "sage max": nn.SAGEConv(5, 4, aggr="max"),
            "sage min": nn.SAGEConv(5, 4, aggr="min"),
            "sage sum back": nn.SAGEConv(5, 4, aggr="sum", flow="target_to_source"), "gcn": nn.GCNConv(5, 4),
            "gcn cached": nn.GCNConv(5, 4, cached=True), "gin": nn.GINConv(linear), "graph": nn.GraphConv(5, 4),
            "simple": nn.SimpleConv(aggr="min"), "cluster": nn.ClusterGCNConv(5, 4)}


def run(conv, x, *arguments):
    """Run a layer. The result is its output and its gradients."""
    x = x.clone().requires_grad_()
    conv.zero_grad()
    out = conv(x, *arguments)
    (out * torch.arange(out.numel()).reshape(out.shape).sin()).sum().backward()
    return [out, x.grad, *[one.grad.clone() for one in conv.parameters()]]


def test_layers_of_pyg_are_replaced_in_place(edges, monkeypatch):
    used, real = [], graft.torch.aggregate
    monkeypatch.setattr(graft.torch, "aggregate", lambda *args, **named: used.append(1) or real(*args, **named))
    nn = pytest.importorskip("torch_geometric.nn", reason="there is no torch_geometric")
    from torch_geometric.utils import to_torch_csr_tensor
    x, weights = torch.randn(30, 5), torch.rand(150)
    for name, conv in layers(nn).items():
        calls = [(edges,)]
        if name in ("gcn", "graph"):
            calls += [(edges, weights), (edges, weights.clone().requires_grad_())]
        if name == "sage mean":
            calls.append((to_torch_csr_tensor(edges.flip(0), size=(30, 30)),))
        expected = [run(conv, x, *call) for call in calls]
        keys = list(conv.state_dict())
        assert graft.torch.replace(conv) == [""] and graft.torch.replace(conv) == []
        used.clear()
        for call, wanted in zip(calls, expected):
            for _ in range(2):
                for ours, theirs in zip(run(conv, x, *call), wanted):
                    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, msg=lambda text: f"{name}: {text}")
        assert len(used) == 2 * sum(len(call) < 2 or not call[1].requires_grad for call in calls)
        assert list(conv.state_dict()) == keys
        twin = copy.deepcopy(conv)
        assert twin.propagate.conv is twin
        graft.torch.restore(conv)
        torch.testing.assert_close(run(conv, x, *calls[0])[0], expected[0][0])


def test_a_graph_is_prepared_once_and_again_after_a_change(edges, monkeypatch):
    nn = pytest.importorskip("torch_geometric.nn", reason="there is no torch_geometric")
    made, make = [], graft.torch._make_matrix
    monkeypatch.setattr(graft.torch, "_make_matrix", lambda *args: made.append(1) or make(*args))
    x = torch.randn(30, 5)
    for conv in (nn.SAGEConv(5, 4), nn.GCNConv(5, 4)):
        twin = copy.deepcopy(conv)
        assert graft.torch.replace(conv) == [""]
        made.clear()
        for _ in range(3):
            run(conv, x, edges)
        assert len(made) == 1
        edges[0, 0] = (edges[0, 0] + 1) % 30
        torch.testing.assert_close(run(conv, x, edges)[0], run(twin, x, edges)[0], rtol=1e-4, atol=1e-5)
        assert len(made) == 2
    kept = len(graft.torch._matrices._kept)
    other = edges.clone()
    graft.torch.replace(twin)
    run(twin, x, other)
    assert len(graft.torch._matrices._kept) > kept
    del other
    assert len(graft.torch._matrices._kept) == kept


def test_changes_that_pytorch_does_not_count(edges):
    nn = pytest.importorskip("torch_geometric.nn", reason="there is no torch_geometric")
    x, weights = torch.randn(30, 5), torch.rand(150)
    for conv, arguments in ((nn.SAGEConv(5, 4), (edges,)), (nn.GCNConv(5, 4), (edges,)),
                            (nn.GraphConv(5, 4), (edges, weights))):
        twin = copy.deepcopy(conv)
        graft.torch.replace(conv)
        before = conv(x, *arguments)
        arguments[-1].numpy()[..., :20] = 0
        torch.testing.assert_close(conv(x, *arguments), before)  # forget() exists for this limit
        graft.torch.forget(arguments[-1])
        assert not torch.allclose(conv(x, *arguments), before, atol=1e-3)
        torch.testing.assert_close(conv(x, *arguments), twin(x, *arguments), rtol=1e-4, atol=1e-5)
        edges.copy_(torch.randint(0, 30, (2, 150)))


def test_a_layer_that_raised_keeps_nothing(edges):
    nn = pytest.importorskip("torch_geometric.nn", reason="there is no torch_geometric")
    x, other = torch.randn(30, 5), edges.flip(0).contiguous()
    conv = nn.GCNConv(5, 4)
    expected = conv(x, other)
    graft.torch.replace(conv)
    with pytest.raises(RuntimeError):
        conv(torch.randn(30, 6), edges)
    torch.testing.assert_close(conv(x, other), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError):
        conv(torch.randn(30, 6), edges)
    graft.torch.restore(conv)
    torch.testing.assert_close(conv(x, other), expected)
    assert conv._cached_edge_index is None and "forward" not in vars(conv)


def test_inference_mode(edges):
    nn = pytest.importorskip("torch_geometric.nn", reason="there is no torch_geometric")
    x = torch.randn(30, 5)
    for conv in (nn.SAGEConv(5, 4), nn.GCNConv(5, 4)):
        expected = run(conv, x, edges)
        graft.torch.replace(conv)
        kept = len(graft.torch._matrices._kept)
        with torch.inference_mode():
            torch.testing.assert_close(conv(x, edges.clone()), expected[0], rtol=1e-4, atol=1e-5)
            assert len(graft.torch._matrices._kept) == kept
            torch.testing.assert_close(conv(x, edges), expected[0], rtol=1e-4, atol=1e-5)
        for ours, theirs in zip(run(conv, x, edges), expected):  # prepared matrices have gradients
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_what_graft_cannot_do_goes_the_usual_way(edges):
    nn = pytest.importorskip("torch_geometric.nn", reason="there is no torch_geometric")

    class Mine(nn.SAGEConv):
        def message(self, x_j):
            return 2 * x_j

    model = torch.nn.ModuleList([Mine(5, 4), nn.GATConv(5, 4), nn.SAGEConv(5, 4, aggr="median"), nn.SAGEConv(5, 4),
                                 nn.SAGEConv(5, 4, aggr=["mean", "max"])])
    assert graft.torch.replace(model) == ["3"]
    x, target = torch.randn(30, 5), torch.randn(28, 5)
    bipartite, plain = model[3], copy.deepcopy(model[3])
    graft.torch.restore(plain)
    torch.testing.assert_close(bipartite((x, target), edges), plain((x, target), edges))
    torch.testing.assert_close(bipartite((x, None), edges, size=(30, 29)), plain((x, None), edges, size=(30, 29)))
    torch.testing.assert_close(bipartite.double()(x.double(), edges), plain.double()(x.double(), edges))


def test_a_model_of_pyg_learns_the_same(edges):
    nn = pytest.importorskip("torch_geometric.nn", reason="there is no torch_geometric")
    from torch_geometric.data import Data
    x, labels = torch.randn(30, 5), torch.arange(30) % 3
    model = nn.GraphSAGE(5, 8, 2, 3)
    twin = copy.deepcopy(model)
    assert len(graft.torch.replace(twin)) == 2
    losses = []
    for one in (model, twin):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(one(x, edges), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    np.testing.assert_allclose(losses[:10], losses[10:], rtol=1e-4)
    data = Data(x=x, edge_index=edges, y=labels, train_mask=torch.arange(30) < 20, test_mask=torch.arange(30) >= 20)
    run_of_graft = graft.train(data, model="sage", layers=2, hidden=4, epochs=3, progress=False)
    assert len(run_of_graft.history) == 3 and run_of_graft.dataset.split.tolist() == [1] * 20 + [3] * 10


def test_what_a_data_of_pyg_has(edges):
    pytest.importorskip("torch_geometric", reason="there is no torch_geometric")
    from torch_geometric.data import Data
    x, labels, weights = torch.randn(30, 5), torch.arange(30) % 3, torch.rand(150, dtype=torch.float64)
    mask = torch.arange(30) < 20
    data = Data(x=x.clone().requires_grad_(), edge_index=edges, y=labels[:, None], train_mask=mask, edge_weight=weights)
    with pytest.warns(graft.CopyWarning, match="A.data has type float64"):
        found = graft.Dataset.from_pyg(data)
    assert found.labels.tolist() == labels.tolist() and found.n_classes == 3
    options = {"model": "sage", "layers": 2, "hidden": 4, "epochs": 2, "dropout": 0.0}
    order = torch.argsort(edges[1], stable=True)
    indptr = np.concatenate([[0], torch.bincount(edges[1], minlength=30).cumsum(0).numpy()])
    graph = (indptr, edges[0][order].numpy(), weights[order].float().numpy(), (30, 30))
    same = graft.Dataset(graph, x.numpy(), labels.numpy(), (mask.numpy(), None, None))
    plain = graft.Dataset((*graph[:2], None, graph[3]), x.numpy(), labels.numpy(), (mask.numpy(), None, None))
    losses = [graft.train(one, options, progress=False).history.column("loss") for one in (data, same, plain)]
    assert losses[0] == losses[1] != losses[2]
    for more, sentence in (({"model": "gat"}, "model=gat with edge_features=none does not use"),
                           ({"aggregator": "max"}, "model=sage with aggregator=max does not use"),
                           ({"aggregator": "min"}, "model=sage with aggregator=min does not use")):
        with pytest.raises(graft.ArgumentError, match=sentence):
            graft.train(data, {**options, **more}, progress=False)
    with pytest.raises(graft.ArgumentError, match="the Data has no edge_index"):
        graft.train(Data(x=x, y=labels), options)
    wide = graft.Dataset.from_pyg(Data(x=x, edge_index=edges, y=torch.rand(30, 2)))
    assert wide.labels is None and wide.n_classes == 2
