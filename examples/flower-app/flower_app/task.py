"""What is trained: all of it could be yours, as in `feddyn.simulate`."""

from collections.abc import Mapping
from typing import Any

import torch

import feddyn

torch.manual_seed(0)
model = torch.nn.Linear(30, 5)
method = feddyn.FedDyn(alpha=0.1)
solver = feddyn.SGD(0.1, epochs=2, batch_size=20)


def load(site: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The samples of a site, given its node's configuration; a real one would read a file that this names."""
    devices = feddyn.synthetic("type3", devices=3, samples=200)
    return devices.samples(int(site["partition-id"]))
