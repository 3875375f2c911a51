"""The networks of the jobs as one writes them by hand."""

import torch
from torch import nn
from torch.nn.functional import max_pool2d, relu


class CNN(nn.Module):
    """The paper's network for CIFAR, with max-pooling after the ReLU, as it is usually written."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 64, 5), nn.Conv2d(64, 64, 5)
        self.linear1, self.linear2, self.linear3 = nn.Linear(1600, 394), nn.Linear(394, 192), nn.Linear(192, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = max_pool2d(relu(self.conv1(x)), 2)
        x = max_pool2d(relu(self.conv2(x)), 2).flatten(1)
        return torch.as_tensor(self.linear3(relu(self.linear2(relu(self.linear1(x))))))


class LSTM(nn.Module):
    """The paper's network for Shakespeare."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(80, 8), nn.LSTM(8, 100, 2, batch_first=True)
        self.output = nn.Linear(100, 80)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.output(self.lstm(self.embedding(x))[0][:, -1]))
