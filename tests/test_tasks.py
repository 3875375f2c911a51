"""Two classes with one output, several labels, sequences: each has the figures that it should."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import feddyn
from feddyn.metrics import natural
from feddyn.models import losses

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 4))
DEVICE = np.repeat(np.arange(4), 20)
TWO = (X[:, 0] + 0.3 * X[:, 1] > 0) * 1
LABELS = (X[:, :3] > 0.2) * 1
LOGITS = functional.binary_cross_entropy_with_logits


class Probability(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).sigmoid()


def train(model: nn.Module, x: Any, y: Any, loss: Any, **how: Any) -> feddyn.Run:
    population = feddyn.Population.from_arrays(x, y, DEVICE, test=(x, y))
    words: dict[str, Any] = {"participation": 1.0, "rounds": 3, "workers": 1, "loss": loss, **how}
    return feddyn.simulate(model.double(), population, feddyn.FedAvg(), feddyn.SGD(0.5, epochs=2), **words)


@pytest.mark.parametrize(
    ("y", "width", "loss", "kind"),
    [
        (TWO, 1, losses.binary, nn.Linear),
        (TWO[:, None].astype(float), 1, LOGITS, nn.Linear),
        (TWO[:, None].astype(float), 1, nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0).double()), nn.Linear),
        (TWO[:, None].astype(float), 1, functional.binary_cross_entropy, Probability),
        (TWO[:, None].astype(float), 1, lambda z, y: functional.softplus(-(2 * y - 1) * z).mean(), nn.Linear),
        (LABELS, 3, losses.binary, nn.Linear),
        (LABELS.astype(float), 3, nn.BCEWithLogitsLoss(), nn.Linear),
    ],
)
def test_labels_have_an_accuracy(y: Any, width: int, loss: Any, kind: type[nn.Linear]) -> None:
    torch.manual_seed(0)
    run = train(kind(4, width), X, y, loss)
    output = run.predict(X).numpy()
    above = output > (0.5 if kind is Probability else 0)
    figures = run.history[-1]["models"]["all"]
    assert figures["accuracy"] == pytest.approx((above.reshape(y.shape) == y).mean(), abs=1e-12)
    assert 0.6 < figures["accuracy"] < 1


def test_binary_cross_entropy_takes_whole_numbers_and_one_column() -> None:
    z, y = torch.randn(6, 1), torch.tensor([0, 1, 1, 0, 1, 0])
    assert torch.allclose(losses.binary(z, y), LOGITS(z[:, 0], y.float()))
    probability = z[:, 0].sigmoid()
    by_hand = -(y * probability.log() + (1 - y) * (1 - probability).log()).mean()
    assert torch.allclose(losses.binary(z, y), by_hand)


@pytest.mark.parametrize(
    ("y", "loss"),
    [
        (TWO[:, None].astype(float), functional.mse_loss),
        (X[:, :1], LOGITS),
        (TWO[:, None].astype(float), functional.huber_loss),
    ],
    ids=["numbers that happen to be 0 and 1", "numbers", "another loss of numbers"],
)
def test_numbers_have_none(y: Any, loss: Any) -> None:
    figures = train(nn.Linear(4, 1), X, y, loss).history[-1]["models"]["all"]
    assert set(figures) == {"loss"}


class Tagger(nn.Module):
    """Scores of 5 classes for each of 6 places, classes last or, as PyTorch's loss has it, in front."""

    def __init__(self, front: bool):
        super().__init__()
        self.embed, self.head, self.front = nn.Embedding(7, 8), nn.Linear(8, 5), front

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.embed(x))
        return found.movedim(-1, 1) if self.front else found


@pytest.mark.parametrize("front", [False, True], ids=["classes last", "classes in front"])
@pytest.mark.parametrize("left_out", [False, True], ids=["all places", "some places"])
def test_sequences_have_a_perplexity(front: bool, left_out: bool) -> None:
    """exp of the mean cross-entropy over all places that count, whatever the chunks."""
    torch.manual_seed(0)
    tokens = RNG.integers(0, 7, (600, 6))
    targets = tokens % 5
    if left_out:
        targets = np.where(RNG.random(targets.shape) < 0.3, -100, targets)
    chosen: Any = nn.CrossEntropyLoss() if left_out else functional.cross_entropy
    chosen = chosen if front else losses.sequence
    population = feddyn.Population.from_arrays(tokens, targets, np.arange(600) % 3, test=(tokens, targets))
    solver = feddyn.SGD(0.5, steps=5, batch_size=50)
    run = feddyn.simulate(
        Tagger(front).double(), population, feddyn.FedAvg(), solver, participation=2, rounds=2, loss=chosen, workers=1
    )
    scores = run.predict(tokens)
    scores = scores.movedim(1, -1) if front else scores
    counted = torch.tensor(targets >= 0)
    y = torch.tensor(targets)[counted]
    entropy = functional.cross_entropy(scores[counted], y)
    figures = run.history[-1]["models"]["all"]
    assert figures["perplexity"] == pytest.approx(math.exp(entropy), rel=1e-12)
    assert figures["loss"] == pytest.approx(float(entropy), rel=1e-12)
    assert figures["accuracy"] == pytest.approx(float((scores[counted].argmax(-1) == y).double().mean()))
    assert run.headline[1] == "accuracy"


def test_a_perplexity_can_be_a_target_and_ones_own_comes_first() -> None:
    torch.manual_seed(0)
    tokens = RNG.integers(0, 5, (80, 6))
    words: dict[str, Any] = {"target": feddyn.Target("perplexity", 1e9)}
    run = train(Tagger(False), tokens, tokens, losses.sequence, **words)
    assert run.reached is not None
    own = feddyn.Metric("perplexity", lambda output, y: (2.0 * len(y), len(y)), better="lower")
    run = train(Tagger(False), tokens, tokens, losses.sequence, metrics=[own])
    assert run.history[-1]["models"]["all"]["perplexity"] == 2.0


def test_outputs_without_scores_have_no_metric() -> None:
    assert natural({"embedding": torch.zeros(3, 2)}, torch.zeros(3).long(), functional.cross_entropy) == []
    assert natural(torch.zeros(3, 6, 4), torch.zeros(3, 5).long(), losses.sequence) == []
