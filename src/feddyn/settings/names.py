"""The names that a setting may use, and what they stand for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from feddyn.algorithms import (
    AdaBest,
    Algorithm,
    FedACG,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedDC,
    FedDR,
    FedDyn,
    FedDynM,
    FedProx,
    FedSplit,
    FedYogi,
    Scaffold,
)
from feddyn.data.datasets.federations import images, speeches
from feddyn.data.datasets.published import SOURCES as IMAGES
from feddyn.data.datasets.synthetic import synthetic
from feddyn.data.datasets.table import table
from feddyn.data.stored import Stored
from feddyn.models import losses, zoo
from feddyn.models.flat import Loss
from feddyn.records.labels import LABELS
from feddyn.settings.code import is_own
from feddyn.solvers import SGD, AdamW, Cosine, Exact, OneStep, Schedule, Solver, Steps, Warmup
from feddyn.wire import Compressor, Quantized, RandomK, Sign, TopK


@dataclass(frozen=True)
class Method:
    """An algorithm, where the method is more than that with its solver, and what a reader should know of it.

    A method with a solver of its own takes only the `inherits` keys from a comparison's common solver.
    """

    algorithm: Callable[..., Algorithm]
    label: str
    about: str
    solver: str | None = None
    inherits: tuple[str, ...] = ()
    pooled: bool = False


METHODS: Mapping[str, Method] = {
    "feddyn": Method(FedDyn, LABELS["feddyn"], "dynamic regularization, Algorithm 1 of the paper"),
    "feddyn-onegd": Method(
        FedDyn,
        "FedDynOneGD",
        "Algorithm 2: FedDyn with one gradient step of 1/alpha",
        "onestep",
        ("weight_decay",),
    ),
    "feddynm": Method(FedDynM, LABELS["feddynm"], "FedDyn whose server looks ahead along its last move"),
    "scaffold": Method(Scaffold, LABELS["scaffold"], "control variates; transmits two models a round"),
    "fedavg": Method(FedAvg, LABELS["fedavg"], "the mean of the devices' models, weighted by their data"),
    "fedprox": Method(FedProx, LABELS["fedprox"], "FedAvg with a quadratic penalty mu towards the server's model"),
    "fedsplit": Method(
        FedSplit, LABELS["fedsplit"], "operator splitting; mean = 'act' or 'all' at partial participation"
    ),
    "feddr": Method(
        FedDR, LABELS["feddr"], "FedDyn's device; the server's mean is over all devices, relaxed by `relax`"
    ),
    "feddc": Method(FedDC, LABELS["feddc"], "FedDyn with SCAFFOLD's correction; transmits two models a round"),
    "adabest": Method(AdaBest, LABELS["adabest"], "estimates that fade while a device is away, and do not add up"),
    "fedacg": Method(FedACG, LABELS["fedacg"], "the server's momentum, sent ahead; devices keep nothing"),
    "fedavgm": Method(FedAvgM, LABELS["fedavgm"], "FedAvg with momentum on the server"),
    "fedadam": Method(FedAdam, LABELS["fedadam"], "FedAvg with Adam on the server"),
    "fedyogi": Method(FedYogi, LABELS["fedyogi"], "FedAvg with Yogi on the server"),
    "distributed-sgd": Method(
        FedAvg, "Distributed SGD", "one full gradient step a device, averaged", "onestep", ("lr", "weight_decay")
    ),
    "centralised": Method(FedAvg, "Centralised", "all data in one place, the reference", pooled=True),
}
ALGORITHMS = {name: method.algorithm for name, method in METHODS.items()}
SOLVERS: Mapping[str, Callable[..., Solver]] = {"sgd": SGD, "adamw": AdamW, "onestep": OneStep, "exact": Exact}
SCHEDULES: Mapping[str, Callable[..., Schedule]] = {"cosine": Cosine, "steps": Steps, "warmup": Warmup}
SOURCES: Mapping[str, Callable[..., Stored]] = {
    "synthetic": synthetic,
    **{name: partial(images, name) for name in IMAGES},
    "shakespeare": speeches,
    "table": table,
}
MODELS: Mapping[str, Callable[..., nn.Module]] = {
    "linear": zoo.linear,
    "mlp": zoo.mlp,
    "cnn": zoo.cnn,
    "lstm": zoo.lstm,
    "resnet18": zoo.resnet18,
}
COMPRESSORS: Mapping[str, Callable[..., Compressor]] = {
    "quantized": Quantized,
    "sign": Sign,
    "topk": TopK,
    "randomk": RandomK,
}
LOSSES: Mapping[str, Loss] = {
    "cross-entropy": nn.functional.cross_entropy,
    "binary-cross-entropy": losses.binary,
    "sequence-cross-entropy": losses.sequence,
    "mse": nn.functional.mse_loss,
}


def label(name: str, parameters: Mapping[str, Any]) -> str:
    """How tables and plots call a method; one's own by the name of its class."""
    if is_own(name):
        return name.rpartition(":")[2]
    return METHODS[name].label + (" All" if parameters.get("mean") == "all" else "")
