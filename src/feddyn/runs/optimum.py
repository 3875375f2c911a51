"""The least value of the pooled objective of a convex problem: what every federated method strives for."""

import copy
from dataclasses import replace

import torch
from torch import nn

from feddyn.algorithms.fedavg import FedAvg
from feddyn.data.stored import Stored
from feddyn.engine.executors.group import SingleProcess
from feddyn.engine.federation import Federation
from feddyn.engine.links import Answers
from feddyn.errors import InputError
from feddyn.metrics import Evaluation
from feddyn.models.flat import FlatModel
from feddyn.models.stacked import linear_layers
from feddyn.solvers.exact import Exact


def optimum(model: nn.Module, population: Stored, weight_decay: float) -> float:
    """min SUM n_k f_k / N by Newton's method in float64 on the pooled training data."""
    layers = linear_layers(FlatModel(model))
    if layers is None or len(layers) > 1:
        raise InputError(f"the exact optimum is known only for the model 'linear', not {type(model).__name__}")
    training = replace(population.pooled(), test=None)
    exact = Exact(tolerance=1e-10, weight_decay=weight_decay)
    federation = Federation(
        copy.deepcopy(model).to(torch.float64),
        training,
        FedAvg(),
        exact,
        loss=nn.functional.cross_entropy,
        seed=0,
        stack=1,
        evaluation=Evaluation(models=["server"]),
        group=SingleProcess(),  # also where there are others
    )
    federation.step(0, Answers([0], [1.0], [], [], []))
    return federation.evaluate()["server"]["objective"]
