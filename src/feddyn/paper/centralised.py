"""Centralised training, the paper's reference: its data sets, networks and schedules, all data in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from feddyn.settings.documents import Document


@dataclass(frozen=True)
class Reference:
    """A data set of the paper with what its centralised model reached, in percent."""

    population: Mapping[str, Any]
    model: Mapping[str, Any]
    solver: Mapping[str, Any]
    epochs: int
    accuracy: float

    def document(self, epochs: int | None = None) -> Document:
        """The setting, for all epochs or fewer: an epoch is a round of one device that holds everything."""
        return {
            "rounds": min(epochs or self.epochs, self.epochs),
            "participation": 1.0,
            "population": dict(self.population),
            "model": dict(self.model),
            "solver": {"epochs": 1, **self.solver},
            "evaluation": {"models": ["server"]},
            "algorithm": {"name": "centralised"},
        }


_DIGITS = {"lr": 0.1, "batch_size": 50, "weight_decay": 1e-4, "halve_every": 50}
_CIFAR = {"lr": 0.1, "batch_size": 50, "weight_decay": 1e-3, "lr_decay": 0.992, "clip": 10.0}
_SHAKESPEARE = {"lr": 1.0, "batch_size": 100, "weight_decay": 1e-4, "halve_every": 50, "clip": 10.0}

REFERENCES: Mapping[str, Reference] = {
    "mnist": Reference({"source": "mnist"}, {"name": "mlp"}, _DIGITS, 150, 98.4),
    "emnist-l": Reference({"source": "emnist-l"}, {"name": "mlp", "hidden": 100}, _DIGITS, 150, 95.0),
    "cifar10": Reference({"source": "cifar10"}, {"name": "cnn"}, _CIFAR, 500, 85.2),
    "cifar100": Reference({"source": "cifar100"}, {"name": "cnn"}, _CIFAR, 500, 55.3),
    "shakespeare-iid": Reference({"source": "shakespeare", "split": "iid"}, {"name": "lstm"}, _SHAKESPEARE, 150, 50.8),
    "shakespeare": Reference({"source": "shakespeare"}, {"name": "lstm"}, _SHAKESPEARE, 150, 51.2),
}
