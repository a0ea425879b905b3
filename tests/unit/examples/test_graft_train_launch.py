#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks graft-train in a process that an MPI launcher has started, which it detects by environment variables:
test_graft_train_launch.py GRAFT-TRAIN. Copies that would each train alone must write nothing. Prints TAP."""
import os
import shutil

from train_host import MODEL, base, data, run
from tap import done, ok

OUTPUTS = ["--json", f"{base}/r.json", "--save", f"{base}/saved", "--predict", f"{base}/p.npy"]


def outcome(**variables):
    """Run graft-train. The result is its exit status, its standard error, and the files that it wrote."""
    result = run(data, *MODEL, "epochs=1", "threads=1", *OUTPUTS, env=variables)
    written = [name for name in ("r.json", "saved", "p.npy") if os.path.exists(f"{base}/{name}")]
    for name in written:
        path = f"{base}/{name}"
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return result.returncode, result.stderr, written


def test_refused(names, **variables):
    code, errors, written = outcome(**variables)
    what = " ".join(f"{key}={value}" for key, value in variables.items())
    ok(code == 1 and not written and errors.count("\n") == 1 and all(name in errors for name in names),
       f"{what}: nothing is written, and {names[0]} is named", code, errors, written)


def test_taken(**variables):
    code, errors, written = outcome(**variables)
    what = " ".join(f"{key}={value}" for key, value in variables.items()) or "no variables"
    ok(code == 0 and len(written) == 3, f"{what}: one process trains", code, errors, written)


for rank in "0", "1":
    test_refused(["SLURM_STEP_NUM_TASKS", "PMI_SIZE"], SLURM_STEP_NUM_TASKS="2", SLURM_PROCID=rank)
    test_refused(["SLURM_STEP_NUM_TASKS", "2"], SLURM_STEP_NUM_TASKS="2", SLURM_PROCID=rank, PMIX_RANK=rank)
    test_refused(["PMIX_RANK", rank], PMIX_RANK=rank)
    test_refused(["MV2_COMM_WORLD_SIZE", "3"], MV2_COMM_WORLD_SIZE="3", MV2_COMM_WORLD_RANK=rank)
    test_refused(["JSM_NAMESPACE_SIZE"], JSM_NAMESPACE_SIZE="2", JSM_NAMESPACE_RANK=rank)
test_taken()
test_taken(SLURM_STEP_NUM_TASKS="1", SLURM_NTASKS="8", SLURM_NPROCS="8", SLURM_PROCID="0", PMIX_RANK="0")
test_taken(SLURM_NTASKS="8", SLURM_NPROCS="8", SLURM_PROCID="0")
test_taken(OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_RANK="0", PMIX_RANK="0", SLURM_STEP_NUM_TASKS="2")
test_taken(PMI_SIZE="1", PMI_RANK="0", SLURM_STEP_NUM_TASKS="2")
done()
