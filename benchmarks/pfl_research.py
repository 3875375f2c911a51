"""Seconds a round of FedAvg in Apple's pfl-research (`pfl` 0.6): `python -m benchmarks.pfl_research JOB ROUNDS`.

JOB is mlp or massive. A round trains the active devices with plain SGD, averages them, and evaluates the server's model
centrally. One round to warm up comes first and is not counted; the last line printed is JSON with the seconds of each
of the ROUNDS that follow and the peak resident memory of the process.

This is a single process with one thread. pfl shares a round out among processes when torchrun starts several of this
same program, as its guide advises, so on more than one core this is not the fastest that pfl can be.
"""

import json
import os
import resource
import sys
import time
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.jobs import JOBS, inputs, network

EVALUATION_BATCH = 1_000


class Classifier(nn.Module):
    """A job's network with the two methods that pfl calls."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.network = network(name)

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cross_entropy(self.network(x), y)

    @torch.inference_mode()
    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        return {"loss": Weighted(cross_entropy(self.network(x), y, reduction="sum").item(), len(y))}


class Clock(TrainingProcessCallback):  # type: ignore[misc]
    """Notes the time at the end of every round, so it belongs after the evaluation in the list of callbacks."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def after_central_iteration(self, *_: object, **__: object) -> tuple[bool, Any]:
        self.times.append(time.perf_counter())
        return False, Metrics()


def main(name: str, rounds: int) -> None:
    job = JOBS[name]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    # The data sets are made once, because each keeps its batches; pfl does not shuffle them.
    devices = [
        PyTorchTensorDataset((inputs(name, job.samples, job), torch.randint(0, job.classes, (job.samples,))))
        for _ in range(job.devices)
    ]
    # The sampler that pfl recommends: no device is drawn twice in a round.
    data = FederatedDataset(devices.__getitem__, get_user_sampler("minimize_reuse", range(job.devices)))
    test = PyTorchTensorDataset((inputs(name, job.test, job), torch.randint(0, job.classes, (job.test,))))
    classifier = Classifier(name)
    model = PyTorchModel(
        classifier,
        local_optimizer_create=partial(torch.optim.SGD, weight_decay=job.weight_decay, fused=True),
        central_optimizer=torch.optim.SGD(classifier.parameters(), lr=1.0),
    )
    evaluation = NNEvalHyperParams(local_batch_size=EVALUATION_BATCH)
    clock = Clock()
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds + 1,
            # Evaluation on the devices is due in the first round only, the one that warms up.
            evaluation_frequency=rounds + 1,
            train_cohort_size=job.active,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=data, val_data=data),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_batch_size=job.batch, local_num_epochs=job.epochs, local_learning_rate=job.lr
        ),
        model_eval_params=evaluation,
        callbacks=[CentralEvaluationCallback(test, model_eval_params=evaluation), clock],
        send_metrics_to_platform=False,  # it prints them
    )
    seconds = [end - start for start, end in pairwise(clock.times)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if os.environ.get("RANK", "0") == "0":  # the processes of torchrun time the same rounds
        print(json.dumps({"seconds": seconds, "peak_bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
