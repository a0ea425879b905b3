# SPDX-License-Identifier: Apache-2.0
"""The network of kind mgn in plain PyTorch, with the parameter names of graft_network.h, as an oracle for Graft. It
follows the formulas of graft_network.h. Graft splits the first product of an edge into products of its two nodes;
`split=True` does so here too, for measurements of time.

    net = MGN(n_node_in, n_edge_in, n_out, width=128, layers=15, linear=3)
    y = net(nodes, edges, source, target)       # standardised values in, standardised values out"""
import torch
from torch import nn


class MLP(nn.ModuleDict):
    """Make a multilayer perceptron: `linear` linear layers with the activation between them, then LayerNorm."""

    def __init__(self, n_in, width, n_out, linear, norm, activation):
        widths = [n_in] + [width] * (linear - 1) + [n_out]
        super().__init__({str(i): nn.Linear(widths[i], widths[i + 1]) for i in range(linear)})
        self.linear, self.activation = linear, activation
        if norm:
            self["norm"] = nn.LayerNorm(n_out)

    def after_first(self, x):
        for i in range(1, self.linear):
            x = self[str(i)](self.activation(x))
        return self["norm"](x) if "norm" in self else x

    def forward(self, x):
        return self.after_first(self["0"](x))


class Layer(nn.Module):
    def __init__(self, width, linear, norm, activation):
        super().__init__()
        self.edge = MLP(3 * width, width, width, linear, norm, activation)
        self.node = MLP(2 * width, width, width, linear, norm, activation)


class MGN(nn.Module):
    def __init__(self, n_node_in, n_edge_in, n_out, width=128, layers=15, linear=3, norm=True, activation="relu",
                 sums="update", edges="carried", split=False):
        super().__init__()
        act = {"relu": torch.relu, "elu": nn.functional.elu}[activation]
        self.node_encoder = MLP(n_node_in, width, width, linear, norm, act)
        self.edge_encoder = MLP(n_edge_in, width, width, linear, norm, act)
        self.layers = nn.ModuleList(Layer(width, linear, norm, act) for _ in range(layers))
        self.decoder = MLP(width, width, n_out, linear, False, act)
        self.sums, self.edges, self.split = sums, edges, split

    def update(self, mlp, h, e, source, target):
        if not self.split:
            return mlp(torch.cat([h[source], h[target], e], 1))
        first, width = mlp["0"], h.shape[1]
        a, b, c = first.weight[:, :width], first.weight[:, width:2 * width], first.weight[:, 2 * width:]
        return mlp.after_first((h @ a.T)[source] + (h @ b.T)[target] + nn.functional.linear(e, c, first.bias))

    def forward(self, nodes, edges, source, target, edge_weight=None):
        h, encoded = self.node_encoder(nodes), self.edge_encoder(edges)
        e = encoded
        for layer in self.layers:
            if self.edges == "encoded":
                e = encoded
            u = self.update(layer.edge, h, e, source, target)
            new = e + u
            summed = {"update": u, "new": new, "old": e}[self.sums]
            if edge_weight is not None:
                summed = summed * edge_weight[:, None]
            m = torch.zeros_like(h).index_add_(0, target, summed)
            h, e = h + layer.node(torch.cat([h, m], 1)), new
        return self.decoder(h)


def load(net, state):
    """Load the parameters out of a dict of arrays such as graft.Network.state(), which may have other entries too."""
    net.load_state_dict({name: torch.from_numpy(state[name]) for name in net.state_dict()})
    return net
