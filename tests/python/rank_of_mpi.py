# SPDX-License-Identifier: Apache-2.0
"""One rank of test_mpi.py: rank_of_mpi.py FOLDER. It trains over MPI_COMM_WORLD on the data set in the folder, and rank
0 writes the results."""
import json
import sys

import graft
import numpy as np
from mpi4py import MPI

OPTIONS = {"model": "sage", "layers": 2, "hidden": 8, "dropout": 0.0, "epochs": 5, "threads": 1}


def main(folder):
    comm = MPI.COMM_WORLD
    ranks = graft.Ranks(comm)
    assert (ranks.rank, ranks.n_ranks) == (comm.rank, comm.size)
    data = graft.Dataset.open(folder, ranks=ranks)
    trainer = graft.train(data, OPTIONS, ranks=ranks, partition="hash", progress=False)
    logits = comm.gather(trainer.predict(best=False, logits=True))
    metrics = trainer.evaluate(best=False)
    if comm.rank == 0:
        trainer.model("last").save(folder + "/model")
    comm.barrier()
    model = graft.Model.load(folder + "/model", ranks=ranks)
    again = comm.gather(model.predict(data, "logits", ranks=ranks))
    losses = trainer.history.column("loss")
    trainer.close()
    wrong = None
    if comm.rank == 1:
        ranks.context["hidden"] = 9
    try:
        graft.Trainer(data, {}, ranks=ranks)
    except graft.Error as error:
        wrong = f"{error.name}: {error}"
    sentences = comm.gather(wrong)
    release = MPI.Get_library_version()
    ranks.close()
    if comm.rank == 0:
        np.save(folder + "/logits.npy", np.concatenate(logits))
        np.save(folder + "/again.npy", np.concatenate(again))
        with open(folder + "/told.json", "w", encoding="utf-8") as file:
            json.dump({"losses": losses, "test_accuracy": metrics["test_accuracy"],
                       "sentences": sentences, "release": release}, file)


main(sys.argv[1])
