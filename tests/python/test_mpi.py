# SPDX-License-Identifier: Apache-2.0
"""Checks ranks of mpi4py, with Open MPI and with MPICH. Training must give the same results as in one process, and
ranks must agree on errors."""
import ctypes.util
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import graft
import numpy as np
import pytest

N, CLASSES, RANKS = 90, 3, 3
HERE = os.path.dirname(__file__)
LAUNCHERS = {"openmpi": ["mpiexec.openmpi", "--bind-to", "none", "--oversubscribe", "--mca", "pml", "ob1", "--mca",
                         "btl_vader_single_copy_mechanism", "none"],
             "mpich": ["mpiexec.mpich"]}
PROBE = "from mpi4py import MPI; print(f'size={MPI.COMM_WORLD.size}\\n', end='')"


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(4)
    labels = (np.arange(N) % CLASSES).astype(np.int32)
    sources = (draw.integers(0, N // CLASSES, (N, 5)) * CLASSES + labels[:, None]).astype(np.int32)
    np.save(tmp_path / "edges.npy", np.stack([sources.reshape(-1), np.repeat(np.arange(N, dtype=np.int32), 5)]))
    np.save(tmp_path / "features.npy", (draw.normal(size=(N, 4)) + labels[:, None]).astype(np.float32))
    np.save(tmp_path / "labels.npy", labels)
    np.save(tmp_path / "split.npy", (1 + np.arange(N) // CLASSES % 3).astype(np.uint8))
    return tmp_path


def launch(mpi, scratch, *command):
    """Run ranks, and return what they print. The wheels of mpi4py have a module for each MPI library, and know MPICH
    by its general name."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", MPI4PY_MPIABI=mpi)
    mpich = ctypes.util.find_library("mpich")
    if mpi == "mpich" and mpich:
        os.makedirs(scratch / "lib", exist_ok=True)
        path = next((os.path.join(place, mpich) for place in ("/usr/lib/" + os.uname().machine + "-linux-gnu",
                                                              "/usr/lib", "/usr/lib64")
                     if os.path.exists(os.path.join(place, mpich))), None)
        if path and not os.path.exists(scratch / "lib" / "libmpi.so.12"):
            os.symlink(path, scratch / "lib" / "libmpi.so.12")
        environment["LD_LIBRARY_PATH"] = f"{scratch}/lib:" + os.environ.get("LD_LIBRARY_PATH", "")
    return subprocess.run([*LAUNCHERS[mpi], "-n", str(RANKS), sys.executable, *command], text=True, env=environment,
                          timeout=100, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("mpi", LAUNCHERS)
def test_ranks_of_mpi4py(mpi, folder, tmp_path_factory):
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("there is no mpi4py (python3-mpi4py)")
    if shutil.which(LAUNCHERS[mpi][0]) is None:
        pytest.skip(f"there is no {LAUNCHERS[mpi][0]}")
    scratch = tmp_path_factory.mktemp("mpi")
    probe = launch(mpi, scratch, "-c", PROBE)
    if probe.returncode != 0 or f"size={RANKS}" not in probe.stdout:
        pytest.skip(f"this mpi4py does not run with {mpi}: {(probe.stdout + probe.stderr).strip()[-120:]!r}")
    ran = launch(mpi, scratch, os.path.join(HERE, "rank_of_mpi.py"), str(folder))
    assert ran.returncode == 0, ran.stderr
    with open(folder / "told.json", encoding="utf-8") as file:
        told = json.load(file)
    assert told["release"].startswith({"openmpi": "Open MPI", "mpich": "MPICH"}[mpi])
    alone = graft.train(folder, model="sage", layers=2, hidden=8, dropout=0.0, epochs=5, threads=1, progress=False)
    np.testing.assert_allclose(told["losses"], alone.history.column("loss"), rtol=1e-4)
    logits = alone.predict(best=False, logits=True)
    for name in ("logits", "again"):
        np.testing.assert_allclose(np.load(folder / f"{name}.npy"), logits, rtol=1e-3, atol=1e-4)
    assert told["test_accuracy"] == pytest.approx(alone.evaluate(best=False)["test_accuracy"])
    assert len(set(told["sentences"])) == 1 and "hidden" in told["sentences"][0], told["sentences"]
