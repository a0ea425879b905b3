# SPDX-License-Identifier: Apache-2.0
"""Checks networks on meshes against PyTorch: forward pass, statistics, loss, steps of AdamW, and files of weights in
both directions. The two implementations share only the names of weights."""
import json
import math
import struct

import numpy as np
import pytest

from graft import _library
from graft._abi import ffi

torch = pytest.importorskip("torch", reason="there is no torch")
import mgn_torch  # noqa: E402

IN, OUT, STEPS = 3, 2, 20
F32, F64, I32 = 1, 2, 3
MGN = {"hidden": 16, "layers": 3}
NEKRS = {"hidden": 8, "layers": 2, "mgn.linear": 4, "activation": "elu", "mgn.sum": "new",
         "mgn.edges": "encoded", "mgn.edge_scale": "longest", "residual": "yes"}


def struct_of(name, /, **fields):
    made = ffi.new(name + " *")
    made.size = ffi.sizeof(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


class Host:
    """Calls the C interface, and turns errors into exceptions."""

    def __init__(self, options):
        self.library, out = _library.load(), ffi.new("graft_api **")
        self.error = struct_of("graft_error")
        self.check(self.library.graft_open(1, 1, ffi.NULL, out, self.error))
        self.api, self.kept = out[0], []
        for key, value in options.items():
            self.check(self.api.set(self.api.context, key.encode(), str(value).encode(), self.error))

    def check(self, status):
        assert status == 0, ffi.string(self.error.message).decode()

    def table(self, name):
        kind = {"mesh": "graft_mesh_api *", "network": "graft_network_api *"}[name]
        return ffi.cast(kind, self.api.get_interface(self.api.context, f"graft.{name}/1".encode()))

    def field(self, array):
        """Make a borrowed view of an array with any strides."""
        steps = [max(stride // array.itemsize, 1) for stride in array.strides]  # a dimension of 1 may have stride 0
        self.kept.append(array)
        made = struct_of("graft_field", dtype={4: F32, 8: F64}[array.itemsize], n_rows=array.shape[0],
                         n_columns=array.shape[1], row_stride=steps[0], column_stride=steps[1],
                         data=ffi.cast("void *", array.ctypes.data))
        self.kept.append(made)
        return made


class Scene:
    """A grid of triangles, and fields that move over it."""

    def __init__(self, options, predicts, side=5):
        line = np.linspace(0, 1, side + 1)
        self.x = np.stack(np.meshgrid(line, line, indexing="ij"), 2).reshape(-1, 2) ** 1.3
        corner = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).reshape(-1, 1)
        cells = np.concatenate([corner + [0, 1, side + 2], corner + [0, side + 2, side + 1]]).astype(np.int32)
        pairs = {(a, b) for cell in cells.tolist() for a in cell for b in cell if a != b}
        self.source, self.target = np.array(sorted(pairs, key=lambda e: (e[1], e[0]))).T
        self.free = self.x[:, 0] > 0.01
        self.weight = 1 + 0.5 * (np.arange(len(self.x)) % 3)
        self.constant = np.where(self.free, 0.25, -1.0)[:, None]
        self.predicts, self.options = predicts, options
        self.host = Host({"threads": 1, **options})
        h, n = self.host, len(self.x)
        self.meshes, self.networks = h.table("mesh"), h.table("network")
        self.mesh, self.network = ffi.new("graft_mesh **"), ffi.new("graft_network **")
        mesh = struct_of("graft_mesh_args", kind=1, dim=2, n_rows=n, coordinates=h.field(self.x), index_type=I32,
                         n_cells=len(cells), cell_type=5, cell_nodes=ffi.cast("void *", cells.ctypes.data))
        h.check(self.meshes.create(h.api.context, ffi.NULL, mesh, self.mesh, h.error))
        free = self.free.astype(np.uint8)
        args = struct_of("graft_network_args", predicts=predicts, n_in=IN, n_out=OUT, constant=h.field(self.constant),
                         is_free=ffi.cast("uint8_t *", free.ctypes.data),
                         loss_weight=ffi.cast("double *", self.weight.ctypes.data))
        h.check(self.networks.create(self.mesh[0], args, self.network, h.error))

    def close(self):
        self.networks.destroy(self.network[0])
        self.meshes.destroy(self.mesh[0])
        self.host.api.close(self.host.api.context)

    def state(self, time, columns):
        phase = self.x[:, :1] * 2 + self.x[:, 1:] + np.arange(columns)
        return 3.0 * np.arange(columns) + np.cos(phase - time) * math.exp(-0.1 * time)

    def train(self, time):
        h = self.host
        pair = struct_of("graft_pair", input=h.field(self.state(time, IN)), target=h.field(self.state(time + 1, OUT)))
        step = struct_of("graft_network_step")
        h.check(self.networks.train(self.network[0], pair, 1, step, h.error))
        return step

    def infer(self, time):
        h, out = self.host, np.full((OUT, len(self.x)), np.nan).T  # component-major
        h.check(self.networks.begin(self.network[0], h.field(self.state(time, IN).astype(np.float64)), h.error))
        h.check(self.networks.end(self.network[0], h.field(out), h.error))
        return out

    def save(self, path):
        self.host.check(self.networks.save(self.network[0], str(path).encode(), self.host.error))

    def load(self, path):
        self.host.check(self.networks.load(self.network[0], str(path).encode(), self.host.error))


class Peer:
    """The same network in PyTorch, with standardised values, the masked loss, AdamW and its schedule."""

    def __init__(self, scene, dtype):
        o = {"layers": 15, "mgn.linear": 3, **scene.options}
        self.scene, self.dtype = scene, dtype
        torch.manual_seed(7)
        self.net = mgn_torch.MGN(IN + 1, 3, OUT, o["hidden"], o["layers"], o["mgn.linear"],
                                 activation=o.get("activation", "relu"), sums=o.get("mgn.sum", "update"),
                                 edges=o.get("mgn.edges", "carried")).to(dtype)
        self.residual = o.get("residual") == "yes"
        offset = scene.x[scene.source] - scene.x[scene.target]
        edges = np.concatenate([offset, np.linalg.norm(offset, axis=1, keepdims=True)], 1)
        longest = o.get("mgn.edge_scale") == "longest"
        edges = edges / edges[:, 2].max() if longest else (edges - edges.mean(0)) / edges.std(0)
        self.edges = torch.from_numpy(edges).to(dtype)
        self.source, self.target = torch.from_numpy(scene.source), torch.from_numpy(scene.target)
        self.seen_in, self.seen_out = [], []
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)

    def shift(self, state, target):
        return target - state[:, :OUT] if self.scene.predicts == 2 else target

    def statistics(self):
        if not self.seen_in:
            return 0, 1, 0, 1
        a, b = np.concatenate(self.seen_in), np.concatenate(self.seen_out)
        return a.mean(0), a.std(0), b.mean(0), b.std(0)

    def forward(self, state):
        mean, deviation, _, _ = self.statistics()
        x = torch.from_numpy(np.concatenate([(state - mean) / deviation, self.scene.constant], 1)).to(self.dtype)
        y = self.net(x, self.edges, self.source, self.target)
        return y + x[:, :OUT] if self.residual else y

    def infer(self, time):
        state = self.scene.state(time, IN)
        _, _, mean, deviation = self.statistics()
        with torch.no_grad():
            y = self.forward(state).double().numpy() * deviation + mean
        if self.scene.predicts == 2:
            return np.where(self.scene.free[:, None], y + state[:, :OUT], state[:, :OUT])
        return np.where(self.scene.free[:, None], y, np.nan)

    def train(self, time, rate):
        scene, state = self.scene, self.scene.state(time, IN)
        wanted = self.shift(state, scene.state(time + 1, OUT))
        self.seen_in.append(state)
        self.seen_out.append(wanted[scene.free])
        _, _, mean, deviation = self.statistics()
        weight = torch.from_numpy(np.where(scene.free, scene.weight, 0)).to(self.dtype)
        self.optimizer.zero_grad()
        error = self.forward(state) - torch.from_numpy((wanted - mean) / deviation).to(self.dtype)
        loss = (weight[:, None] * error ** 2).sum() / (OUT * weight.sum())
        loss.backward()
        length = torch.cat([p.grad.flatten() for p in self.net.parameters()]).norm()
        for p in self.net.parameters():  # clip_grad_norm_() would add 1e-6 to the norm
            p.grad *= min(1, 0.5 / length.item())
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        return loss.item(), length.item()


def write_weights(path, net):
    """Write a file as the package safetensors does."""
    header, data = {}, b""
    for name, tensor in net.state_dict().items():
        raw = tensor.numpy().tobytes()
        kind = {torch.float32: "F32", torch.float64: "F64"}[tensor.dtype]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_weights(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header, arrays = json.loads(raw[8:8 + length]), {}
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + at for at in entry["data_offsets"])
            arrays[name] = np.frombuffer(raw[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"]).copy()
    return header["__metadata__"], arrays


def distance(a, b):
    assert (np.isnan(a) == np.isnan(b)).all()
    return np.nanmax(np.abs(a - b)) / np.nanmax(np.abs(b))


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("options, predicts", [(MGN, 2), (NEKRS, 1)], ids=["MeshGraphNets", "nekRS-ML"])
def test_training_is_that_of_pytorch(tmp_path, options, predicts, kind):
    more = {"model.type": kind, "lr": 0.005, "mgn.schedule": "cosine:15:0.001:3",
            "optimizer": "adam:0.9:0.95", "weight_decay": 0.1, "clip_norm": 0.5}
    scene = Scene({**options, **more}, predicts)
    peer = Peer(scene, {"f32": torch.float32, "f64": torch.float64}[kind])
    bound = 1e-5 if kind == "f32" else 1e-11
    write_weights(tmp_path / "torch.safetensors", peer.net)
    scene.load(tmp_path / "torch.safetensors")
    assert distance(scene.infer(0.5), peer.infer(0.5)) < bound
    for k in range(STEPS):
        step = scene.train(0.1 * k)
        cosine = 0.001 + 0.002 * (1 + math.cos(math.pi * (k - 3) / 12))
        rate = 0.005 * (k + 1) / 3 if k < 3 else cosine if k < 15 else 0.001
        loss, length = peer.train(0.1 * k, rate)
        assert step.learning_rate == pytest.approx(rate, rel=1e-12)
        assert step.loss == pytest.approx(loss, rel=bound)
        assert step.gradient_norm == pytest.approx(length, rel=10 * bound)
    assert distance(scene.infer(0.5), peer.infer(0.5)) < bound
    scene.save(tmp_path / "graft.safetensors")
    metadata, arrays = read_weights(tmp_path / "graft.safetensors")
    assert metadata["architecture"] == "graft.mgn/1" and metadata["mgn.sum"] == options.get("mgn.sum", "update")
    assert arrays["progress.step"].tolist() == [STEPS]
    worst = max(distance(arrays[name], tensor.numpy()) for name, tensor in peer.net.state_dict().items())
    assert worst < 100 * bound
    mgn_torch.load(peer.net, arrays)
    assert distance(scene.infer(0.5), peer.infer(0.5)) < (2e-6 if kind == "f32" else 1e-13)
    scene.close()


def test_files_of_other_models_are_refused(tmp_path):
    scene = Scene(MGN, 2)
    for other, sentence in (({"hidden": 8, "layers": 3}, "node_encoder.0.weight"),
                            ({"hidden": 16, "layers": 4}, "layers.3.edge.0.weight")):
        peer = Peer(Scene(other, 2), torch.float32)
        write_weights(tmp_path / "other.safetensors", peer.net)
        with pytest.raises(AssertionError, match=sentence):
            scene.load(tmp_path / "other.safetensors")
        peer.scene.close()
    write_weights(tmp_path / "doubles.safetensors", Peer(scene, torch.float64).net)
    with pytest.raises(AssertionError, match="is F64 .*, expected F32"):
        scene.load(tmp_path / "doubles.safetensors")
    scene.close()
