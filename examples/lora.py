"""Low-rank adapters (LoRA) on a frozen transformer: only what is trained is a device's state, and is sent.

A small transformer is trained on texts that everybody may see. Devices then teach it their own meaning of the topics,
once all of its parameters and once by adapters of rank 2 in the attention layers, with the same method and solver.
"""

import copy
import math

import torch
from torch import nn

import feddyn

WORDS, TOPICS, LENGTH, WIDTH = 40, 4, 12, 64


class Attention(nn.Module):
    """Self-attention with one head; words that the mask leaves out are not looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).mT / math.sqrt(WIDTH)
        weights = scores.masked_fill(mask[..., None, :] == 0, -1e9).softmax(-1)
        found: torch.Tensor = self.out(weights @ self.value(x))
        return found


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), mask)
        found: torch.Tensor = x + self.mlp(self.norm2(x))
        return found


class Transformer(nn.Module):
    """Texts as tokens with a mask, which come as a dict, to the scores of topics."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks, self.head = nn.ModuleList([Block(), Block()]), nn.Linear(WIDTH, TOPICS)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.place
        for block in self.blocks:
            x = block(x, mask)
        weights = mask / mask.sum(-1, keepdim=True)
        found: torch.Tensor = self.head((x * weights[..., None]).sum(-2))
        return found


class Adapted(nn.Module):
    """W x + b + B A x: a frozen layer W, b, and trainable A and B of low rank. It starts as the layer itself: B = 0."""

    def __init__(self, layer: nn.Linear, rank: int):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / math.sqrt(layer.in_features))
        self.B = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(x) + x @ self.A.mT @ self.B.mT
        return found


def adapters(model: Transformer, rank: int) -> Transformer:
    """A copy whose parameters are frozen, with adapters at the attention's queries and values and a trainable head."""
    adapted = copy.deepcopy(model).requires_grad_(False)
    for attention in [module for module in adapted.modules() if isinstance(module, Attention)]:
        for name in ("query", "value"):
            setattr(attention, name, Adapted(getattr(attention, name), rank))
    adapted.head.requires_grad_(True)
    return adapted


def texts(count: int, shift: int, random: torch.Generator) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Texts of unequal lengths, most of their words of one topic; the class is the topic, moved on by `shift`."""
    topic = torch.randint(TOPICS, (count,), generator=random)
    on_topic = torch.rand(count, LENGTH, generator=random) < 0.5
    words = torch.randint(WORDS // TOPICS, (count, LENGTH), generator=random) * TOPICS + topic[:, None]
    anything = torch.randint(WORDS, (count, LENGTH), generator=random)
    length = torch.randint(5, LENGTH + 1, (count, 1), generator=random)
    mask = (torch.arange(LENGTH) < length).double()
    return {"tokens": torch.where(on_topic, words, anything), "mask": mask}, (topic + shift) % TOPICS


def pretrained(random: torch.Generator) -> Transformer:
    """The transformer, trained in one place on texts that everybody may see."""
    torch.manual_seed(0)
    model = Transformer().double()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(60):
        x, y = texts(64, 0, random)
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(**x), y).backward()
        optimiser.step()
    return model


random = torch.Generator().manual_seed(0)
base = pretrained(random)
x, y = texts(300, 1, random)
device = y + torch.randint(2, y.shape, generator=random)  # five devices, each with texts of one or two topics
population = feddyn.Population.from_arrays(x, y, device, test=texts(300, 1, random))
solver = feddyn.SGD(lr=0.1, epochs=2, batch_size=20)
for name, model in (("all parameters", base), ("adapters of rank 2", adapters(base, rank=2))):
    run = feddyn.simulate(model, population, feddyn.FedDyn(alpha=0.1), solver, participation=2, rounds=8, seed=0)
    trained, sent = run.models["server"].numel(), run.history[0]["bytes_up"] / 2
    accuracy = run.history[-1]["models"]["all"]["accuracy"]
    print(f"{name}: {trained:,} trained, {sent / 1000:.1f} kB up from a device a round, accuracy {accuracy:.1%}")
