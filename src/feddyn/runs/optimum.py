"""The least value of the pooled objective of a convex problem: what every federated method strives for."""

import copy
from dataclasses import replace

import torch
from torch import nn

from feddyn.algorithms.fedavg import FedAvg
from feddyn.data.stored import Stored
from feddyn.engine.evaluation import Evaluation
from feddyn.errors import InputError
from feddyn.runs.plan import Plan
from feddyn.runs.run import Simulation
from feddyn.solvers.exact import Exact


def optimum(model: nn.Module, population: Stored, weight_decay: float) -> float:
    """min SUM n_k f_k / N by Newton's method in float64 on the pooled training data."""
    if not isinstance(model, nn.Linear):
        raise InputError(f"the exact optimum is known only for the model 'linear', not {type(model).__name__}")
    training = replace(population.pooled(), test=None, transform=None)
    exact = Exact(tolerance=1e-10, weight_decay=weight_decay)
    double = copy.deepcopy(model).to(torch.float64)
    plan = Plan(double, training, FedAvg(), exact, 1.0, 1, evaluation=Evaluation(models=["server"]))
    (line,) = Simulation(plan, workers=1)
    return float(line["models"]["server"]["objective"])
