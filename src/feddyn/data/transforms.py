"""What is done to a batch of raw samples before the model sees it, so that data can stay as bytes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import torch

from feddyn.batches import Batch
from feddyn.identity import describe

PADDING = 4


class Transform(Protocol):
    """A batch of raw samples to a model's input; with a generator, for training, it may be augmented."""

    def __call__(self, x: Batch, dtype: torch.dtype, generator: torch.Generator | None = None, /) -> Batch: ...


@dataclass(frozen=True)
class Images:
    """Bytes (n, channels, height, width) to (x / 255 - mean) / std for each channel.

    With `augment`, every training image is flipped left-right with probability 1/2 and, independently with probability
    1/2, padded by 4 zeros (after normalisation) and cropped back at a random offset.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    augment: bool = False

    def __call__(self, x: torch.Tensor, dtype: torch.dtype, generator: torch.Generator | None = None) -> torch.Tensor:
        mean, std = (torch.tensor(v, dtype=dtype, device=x.device).view(-1, 1, 1) for v in (self.mean, self.std))
        images = x.to(dtype, copy=True).mul_(1 / (255 * std)).sub_(mean / std)  # x stays as it is
        return images if generator is None or not self.augment else _flip_and_crop(images, generator)


@dataclass(frozen=True)
class Tokens:
    """Bytes to the whole numbers that an embedding takes."""

    def __call__(self, x: torch.Tensor, dtype: torch.dtype, generator: torch.Generator | None = None) -> torch.Tensor:
        return x.long()


KNOWN = {"images": Images, "tokens": Tokens}
"""The transforms that a record can describe in full."""


def as_table(transform: Transform) -> dict[str, Any]:
    """A transform as a record keeps it: one of ours in full, another one by its name and a hash."""
    if isinstance(transform, Images | Tokens):
        return {"name": type(transform).__name__.lower(), **asdict(transform)}
    return {"memory": True, **describe(transform)}


def from_table(table: Mapping[str, Any]) -> Transform | None:
    """The transform again; None: it existed only in memory.

    >>> from_table(as_table(Images((0.5,), (0.25,)))) == Images((0.5,), (0.25,))
    True
    """
    if table["name"] not in KNOWN:
        return None
    values = {key: tuple(value) if isinstance(value, list | tuple) else value for key, value in table.items()}
    del values["name"]
    made: Transform = KNOWN[table["name"]](**values)
    return made


def _flip_and_crop(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Both at once, as one lookup of the pixel that each output pixel shows."""
    count, _, height, width = x.shape
    coins = torch.rand(count, 2, generator=generator) < 0.5
    offsets = torch.randint(0, 2 * PADDING + 1, (count, 2), generator=generator)
    offsets = torch.where(coins[:, 1:], offsets, PADDING).to(x.device)
    rows = torch.arange(height, device=x.device) + offsets[:, :1]
    columns = torch.arange(width, device=x.device) + offsets[:, 1:]
    columns = torch.where(coins[:, :1].to(x.device), columns.flip(1), columns)
    padded = torch.nn.functional.pad(x, (PADDING,) * 4)
    batch = torch.arange(count, device=x.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[batch, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
