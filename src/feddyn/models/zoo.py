"""The paper's networks, by name. All but `linear` start at PyTorch's default initialisation."""

import torch
from torch import nn

from feddyn.checks import require_whole
from feddyn.errors import InputError
from feddyn.models.standardised import standardise


def linear(features: int, classes: int) -> nn.Module:
    """Multiclass logistic regression, started at zero, as the paper's synthetic problem has it; of images too."""
    _require_sizes("linear", features=features, classes=classes)
    layer = nn.Linear(features, classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(nn.Flatten(), layer)


def mlp(features: int, classes: int, hidden: int = 200) -> nn.Module:
    """Two hidden layers with ReLU: 784-200-200-10 for MNIST, 784-100-100-10 (hidden = 100) for EMNIST-L.

    Without hidden layers it is `linear`.
    """
    if hidden == 0:
        raise InputError("mlp: hidden = 0 leaves no hidden layer: use the model 'linear', or at least 1")
    _require_sizes("mlp", features=features, classes=classes, hidden=hidden)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(features, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )


def cnn(classes: int, standardised: bool = False, channels: int = 64) -> nn.Module:
    """The CIFAR network: 5x5x64 convolution, ReLU and 2x2 max-pool, twice, then 1600-394-192-classes.

    The pooling comes before the ReLU, which is the same function and cheaper. The paper says 394; the authors' code has
    384. Two options are not the paper's: `standardised` standardises the weights of the convolutions, and fewer
    `channels` make experiments cheap; with 16 a step takes an eighth of the time.
    """
    _require_sizes("cnn", classes=classes, channels=channels)
    network = nn.Sequential(
        nn.Conv2d(3, channels, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(25 * channels, 394),
        nn.ReLU(),
        nn.Linear(394, 192),
        nn.ReLU(),
        nn.Linear(192, classes),
    )
    return standardise(network) if standardised else network


class LSTM(nn.Module):
    """The Shakespeare network: characters embedded in 8 dimensions, a two-layer LSTM, its last output."""

    def __init__(self, classes: int = 80, embedding: int = 8, hidden: int = 100) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, embedding)
        self.lstm = nn.LSTM(embedding, hidden, num_layers=2, batch_first=True)
        self.output = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(x))
        return torch.as_tensor(self.output(states[:, -1]))


def lstm(classes: int = 80) -> nn.Module:
    """The Shakespeare network."""
    _require_sizes("lstm", classes=classes)
    return LSTM(classes)


class Block(nn.Module):
    """A basic residual block of two 3x3 convolutions, each with GroupNorm of 2 groups."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(2, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(2, channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            projection = nn.Conv2d(channels_in, channels, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.GroupNorm(2, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


def resnet18(classes: int, small_stem: bool = False, standardised: bool = False) -> nn.Module:
    """ResNet-18 with every batch norm replaced by GroupNorm of 2 groups.

    The authors keep the ImageNet stem (7x7 convolution of stride 2 and max-pool); `small_stem` is the 3x3 convolution
    of stride 1 without pooling that is usual for 32x32 images. With `standardised`, which is not the authors', the
    weights of all convolutions are.
    """
    _require_sizes("resnet18", classes=classes)
    if small_stem:
        stem: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.GroupNorm(2, 64), nn.ReLU()]
    else:
        stem = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.GroupNorm(2, 64), nn.ReLU()]
        stem.append(nn.MaxPool2d(3, 2, padding=1))
    blocks: list[nn.Module] = []
    channels_in = 64
    for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Block(channels_in, channels, stride), Block(channels, channels, 1)]
        channels_in = channels
    network = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))
    return standardise(network) if standardised else network


def _require_sizes(model: str, **sizes: int) -> None:
    for name, size in sizes.items():
        require_whole(model, name, size, 1)
