# SPDX-License-Identifier: Apache-2.0
"""Measures one system of peers.py in its own process: peer_worker.py SYSTEM FOLDER WIDTH THREADS

Reads a graph that bench_mxm has exported to FOLDER, and reports which lines of the table it supports. Then it reads
requests from standard input, one per line. A request is [what, name, form] as JSON, and has an answer of one line.
"""
import ctypes
import functools
import json
import os
import sys
import time
import warnings

SAMPLE = 1000  # number of rows whose results are compared element by element


def new_array(shape, dtype):
    """Returns a zeroed array that begins at a cache line, like the arrays of all measured systems. Arrays of numpy
    begin 16 bytes after the beginning of a cache line."""
    import numpy as np
    count = int(np.prod(shape))
    memory = np.zeros(count * np.dtype(dtype).itemsize + 4096, np.uint8)
    begin = -memory.ctypes.data % 4096
    return memory[begin:begin + count * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


class Problem:
    """The graph and the features, which are the same in every worker. Row v of the graph has the vertices from which v
    gathers."""

    def __init__(self, folder, width, threads):
        import numpy as np
        self.folder, self.width, self.threads = folder, width, threads
        self.indptr = np.load(os.path.join(folder, "indptr.npy"))
        self.indices, self.rows = np.load(os.path.join(folder, "edges.npy"))
        self.n, self.nnz = len(self.indptr) - 1, len(self.indices)
        self.features = self.make_features()
        self.longest = int(np.argmax(np.diff(self.indptr)))

    def make_features(self):
        """Returns features that are multiples of 1/64 with -1 <= x < 1. They have so few significant bits that their
        sums are exact in any order, and can be compared."""
        import numpy as np
        features = new_array((self.n, self.width), np.float32)
        flat = features.reshape(-1)
        for begin in range(0, flat.size, 1 << 22):
            x = np.arange(begin, min(begin + (1 << 22), flat.size), dtype=np.uint64)
            x *= np.uint64(0x9E3779B97F4A7C15)
            x ^= x >> np.uint64(29)
            x *= np.uint64(0xBF58476D1CE4E5B9)
            flat[begin:begin + x.size] = ((x >> np.uint64(57)).astype(np.float32) - 64) / 64
        return features

    @functools.cached_property
    def shuffled(self):
        """Returns the edges in random order: the targets, and a row with the features of the source of each edge."""
        import numpy as np
        order = np.random.default_rng(1).permutation(self.nnz)
        messages = new_array((self.nnz, self.width), np.float32)
        for begin in range(0, self.nnz, 1 << 16):
            part = order[begin:begin + (1 << 16)]
            messages[begin:begin + len(part)] = self.features[self.indices[part]]
        return np.ascontiguousarray(self.rows[order]), messages

    def sample(self):
        import numpy as np
        return np.append(np.linspace(0, self.n - 1, min(self.n, SAMPLE)).astype(np.int64), self.longest)


# ---- Graft: the structs of abi/ that are needed here, for ctypes ----

class Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("code", ctypes.c_int32), ("native_code", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("where", ctypes.c_char * 48), ("message", ctypes.c_char * 448)]


class Api(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("abi", ctypes.c_uint32), ("version", ctypes.c_char_p),
                ("context", ctypes.c_void_p), ("close", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("get_interface", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p))]


class Csr(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("index_type", ctypes.c_int32), ("value_type", ctypes.c_int32),
                ("reserved", ctypes.c_uint32), ("n_rows", ctypes.c_int64), ("n_cols", ctypes.c_int64),
                ("row_ptr", ctypes.c_void_p), ("col_idx", ctypes.c_void_p), ("values", ctypes.c_void_p)]


class Dense(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("n_rows", ctypes.c_int64),
                ("n_cols", ctypes.c_int64), ("stride", ctypes.c_int64), ("data", ctypes.c_void_p)]


class Args(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("semiring", ctypes.c_int32), ("flags", ctypes.c_uint32),
                ("threads", ctypes.c_int32), ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("c", ctypes.c_void_p),
                ("mask", ctypes.c_void_p), ("row_scale", ctypes.c_void_p), ("winner", ctypes.c_void_p),
                ("winner_stride", ctypes.c_int64)]


POINTER = ctypes.c_void_p


class Mxm(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("matrix_create", ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, ctypes.c_int32, POINTER, POINTER)),
                ("matrix_transpose", POINTER), ("matrix_bytes", POINTER), ("matrix_destroy", POINTER),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, POINTER)),
                ("explain", ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, ctypes.c_char_p, ctypes.c_uint64,
                                             POINTER))]


class Index(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("index_type", ctypes.c_int32), ("count", ctypes.c_int64),
                ("data", ctypes.c_void_p)]


class Edge(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("gather_rows", POINTER),
                ("index_add", ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, POINTER, POINTER, ctypes.c_int32,
                                               POINTER)),
                ("sddmm", POINTER), ("softmax", POINTER), ("softmax_backward", POINTER), ("mxm", POINTER),
                ("index_matrix", ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, ctypes.c_int64, POINTER, POINTER))]


ACCUMULATE = 1
F32, I32, PLUS_SECOND, MAX_SECOND = 1, 3, 2, 4


def sized(struct, **fields):
    return struct(size=ctypes.sizeof(struct), **fields)


class Graft:
    """Measures Graft, by calling libgraft.so."""

    def __init__(self, problem):
        import numpy as np
        self.problem, self.error = problem, sized(Error)
        library, api = ctypes.CDLL(os.environ["GRAFT_LIBRARY"]), ctypes.POINTER(Api)()
        self.need(library.graft_open(1, 1, None, ctypes.byref(api), ctypes.byref(self.error)))
        self.context = api.contents.context
        self.mxm = Mxm.from_address(api.contents.get_interface(self.context, b"graft.mxm/1"))
        self.edge = Edge.from_address(api.contents.get_interface(self.context, b"graft.edge/1"))
        self.version = "graft " + api.contents.version.decode()
        csr = sized(Csr, index_type=I32, n_rows=problem.n, n_cols=problem.n, row_ptr=problem.indptr.ctypes.data,
                    col_idx=problem.indices.ctypes.data)
        self.matrix = ctypes.c_void_p()
        self.need(self.mxm.matrix_create(self.context, ctypes.addressof(csr), 0, ctypes.addressof(self.matrix),
                                         ctypes.addressof(self.error)))
        self.result = new_array(problem.features.shape, np.float32)
        self.winner = new_array(problem.features.shape, np.int32)
        self.scale = (1 / np.maximum(np.diff(problem.indptr), 1)).astype(np.float32)
        self.lines = {("graft", "plain"): self.multiply,
                      ("graft", "mean"): lambda: self.multiply(row_scale=self.scale.ctypes.data),
                      ("graft", "max"): lambda: self.multiply(MAX_SECOND),
                      ("graft", "max_winner"): lambda: self.multiply(
                          MAX_SECOND, winner=self.winner.ctypes.data, winner_stride=problem.width),
                      ("graft index_matrix", "index_add"): self.add_by_matrix,
                      ("graft index_add", "index_add"): self.index_add}
        self.multiply()
        self.version += f" ({self.kernel()})"

    def need(self, code):
        if code < 0:
            raise RuntimeError(self.error.message.decode())

    @functools.cached_property
    def index(self):
        targets = self.problem.shuffled[0]
        return sized(Index, index_type=I32, count=len(targets), data=targets.ctypes.data)

    @functools.cached_property
    def sorted(self):
        matrix = ctypes.c_void_p()
        self.need(self.edge.index_matrix(self.context, ctypes.addressof(self.index), self.problem.n,
                                         ctypes.addressof(matrix), ctypes.addressof(self.error)))
        return matrix

    def add_by_matrix(self):
        """Returns the matrix that sorts the rows by their index. It is made once, before the first measurement."""
        self.result.fill(0)
        return self.multiply(flags=ACCUMULATE, a=self.sorted.value, b=self.problem.shuffled[1])

    def index_add(self):
        x, out = self.dense(self.problem.shuffled[1]), self.dense(self.result)
        self.result.fill(0)
        self.need(self.edge.index_add(self.context, ctypes.addressof(x), ctypes.addressof(self.index),
                                      ctypes.addressof(out), self.problem.threads, ctypes.addressof(self.error)))
        return self.result

    def dense(self, array):
        return sized(Dense, dtype=F32, n_rows=len(array), n_cols=self.problem.width, stride=self.problem.width,
                     data=array.ctypes.data)

    def multiply(self, semiring=PLUS_SECOND, a=None, b=None, **more):
        b, c = self.dense(self.problem.features if b is None else b), self.dense(self.result)
        args = sized(Args, semiring=semiring, threads=self.problem.threads, a=a or self.matrix.value,
                     b=ctypes.addressof(b), c=ctypes.addressof(c), **more)
        self.need(self.mxm.run(self.context, ctypes.addressof(args), ctypes.addressof(self.error)))
        return self.result

    def kernel(self):
        text = ctypes.create_string_buffer(512)
        self.mxm.explain(self.context, None, text, len(text), None)
        return text.value.decode().split(" ")[0]


# ---- The other systems. Their interfaces allocate the result in every call. ----

class Torch:
    """Measures PyTorch alone: its sparse product, and gather and scatter as in early versions of PyTorch Geometric."""

    def __init__(self, problem):
        import torch
        torch.set_num_threads(problem.threads)
        torch.set_grad_enabled(False)
        self.torch, self.problem = torch, problem
        self.x = torch.from_numpy(problem.features)
        self.version = "torch " + torch.__version__
        self.source, self.target = torch.from_numpy(problem.indices).long(), torch.from_numpy(problem.rows).long()
        self.degree = torch.from_numpy(problem.indptr).diff().clamp(min=1).float().unsqueeze(1)
        self.setup()

    def csr(self, index_type):
        indptr, indices = self.torch.from_numpy(self.problem.indptr), self.torch.from_numpy(self.problem.indices)
        return self.torch.sparse_csr_tensor(indptr.to(index_type), indices.to(index_type),
                                            self.torch.ones(len(indices)), size=(self.problem.n, self.problem.n))

    def setup(self):
        torch, x = self.torch, self.x
        narrow, wide = self.csr(torch.int32), self.csr(torch.int64)  # MKL needs no conversion of int32
        self.lines = {
            ("torch.sparse.mm", "plain"): lambda: torch.sparse.mm(narrow, x),
            ("torch.sparse.mm reduce", "plain"): lambda: torch.sparse.mm(wide, x, "sum"),
            ("torch.sparse.mm reduce", "mean"): lambda: torch.sparse.mm(wide, x, "mean"),
            ("torch.sparse.mm reduce", "max"): lambda: torch.sparse.mm(wide, x, "amax"),
            ("torch gather + index_add", "plain"): self.index_add,
            ("torch gather + index_add", "mean"): lambda: self.index_add().div_(self.degree),
            ("torch index_add_", "index_add"): lambda: torch.zeros_like(x).index_add_(0, *self.shuffled),
        }

    @functools.cached_property
    def shuffled(self):
        targets, messages = map(self.torch.from_numpy, self.problem.shuffled)
        return targets.long(), messages

    def index_add(self):
        result = self.torch.zeros_like(self.x)
        return result.index_add_(0, self.target, self.messages())

    def messages(self):
        """Gathers the rows of the sources of all edges. This large array makes gather and scatter slow."""
        self.check_memory()
        return self.x.index_select(0, self.source)

    def check_memory(self):
        need, have = 4 * self.problem.width * (self.problem.nnz + self.problem.n), available_bytes()
        if need > 0.9 * have:
            raise MemoryError(f"messages take {need / 1e9:.1f} GB, of which {have / 1e9:.1f} GB are free")


class Pyg(Torch):
    """Measures PyTorch Geometric: its message passing, and its sparse product."""

    def setup(self):
        import torch_geometric
        from torch_geometric.nn import SimpleConv
        from torch_geometric.utils import spmm
        torch, x = self.torch, self.x
        edges, adjacency = torch.stack([self.source, self.target]), self.csr(torch.int64)

        self.version = "torch_geometric " + torch_geometric.__version__
        self.lines = {}
        for form, reduce in ("plain", "sum"), ("mean", "mean"), ("max", "max"):
            self.lines["pyg message passing", form] = lambda layer=SimpleConv(aggr=reduce): self.passed(layer, edges)
            self.lines["pyg spmm", form] = lambda reduce=reduce: spmm(adjacency, x, reduce)

    def passed(self, layer, edges):
        self.check_memory()
        return layer(self.x, edges)


class TorchScatter(Torch):
    """Measures the package torch_scatter, which PyTorch Geometric uses if it is installed."""

    def setup(self):
        import torch_scatter
        indptr = self.torch.from_numpy(self.problem.indptr)
        self.version = "torch_scatter " + torch_scatter.__version__
        self.lines = {("torch_scatter segment_csr", form): lambda reduce=reduce: torch_scatter.segment_csr(
            self.messages(), indptr, reduce=reduce) for form, reduce in (("plain", "sum"), ("mean", "mean"))}
        self.lines["torch_scatter scatter_add", "index_add"] = lambda: torch_scatter.scatter_add(
            self.shuffled[1], self.shuffled[0], dim=0, dim_size=self.problem.n)
        self.lines["torch_scatter segment_csr", "max_winner"] = lambda: torch_scatter.segment_max_csr(
            self.messages(), indptr)[0]


class Dgl(Torch):
    """Measures DGL. Its maximum always computes the winners too."""

    def setup(self):
        import dgl
        torch, x = self.torch, self.x
        indptr, indices = torch.from_numpy(self.problem.indptr), torch.from_numpy(self.problem.indices)
        graph = dgl.graph(("csc", (indptr.int(), indices, torch.empty(0, dtype=torch.int32))), num_nodes=self.problem.n)
        graph = graph.formats("csc")
        self.version = f"dgl {dgl.__version__} with torch {torch.__version__}"
        self.lines = {("dgl copy_u", "plain"): lambda: dgl.ops.copy_u_sum(graph, x),
                      ("dgl copy_u", "mean"): lambda: dgl.ops.copy_u_mean(graph, x),
                      ("dgl copy_u", "max_winner"): lambda: dgl.ops.copy_u_max(graph, x)}


def available_bytes():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def save(problem, result, name, form):
    """Write a sample of the rows of a result, and the sums of its columns, to files. The maximum of a vertex without
    neighbours is defined as 0."""
    import numpy as np
    result = np.asarray(result)
    files = [f"{name}-{form}-{part}.npy".replace(" ", "_") for part in ("rows", "sums")]
    empty = np.diff(problem.indptr) == 0
    if form.startswith("max"):
        result = np.where(empty[:, None], np.float32(0), result)
    np.save(os.path.join(problem.folder, files[0]), result[problem.sample()])
    np.save(os.path.join(problem.folder, files[1]), result.sum(axis=0, dtype=np.float64))
    return files


def answer(system, request):
    what, name, form = request
    begin = time.perf_counter()
    result = system.lines[name, form]()
    seconds = time.perf_counter() - begin
    if what == "check":
        return {"seconds": seconds, "files": save(system.problem, result, name, form)}
    return {"seconds": seconds}


def main():
    name, folder, width, threads = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of the measured system is redirected to standard error
    warnings.simplefilter("ignore")  # PyTorch warns that its sparse tensors are new
    try:
        kinds = {"graft": Graft, "torch": Torch, "pyg": Pyg, "torch_scatter": TorchScatter, "dgl": Dgl}
        system = kinds[name](Problem(folder, int(width), int(threads)))
    except Exception as error:  # the parent process reports every failure of the package
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), file=out, flush=True)
        return
    print(json.dumps({"version": system.version, "lines": list(system.lines)}), file=out, flush=True)
    for line in sys.stdin:
        try:
            told = answer(system, json.loads(line))
        except Exception as error:
            told = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    main()
