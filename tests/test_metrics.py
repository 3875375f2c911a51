"""Metrics of one's own: additive, with a direction, in records, targets, tables and searches like the built-in ones."""

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.metrics import directions, headline, perplexity, spread, top
from feddyn.reports.report import make
from feddyn.views.portrait import devices

BINS = 200


def _counts(output: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """True positives, false positives and false negatives of class 1."""
    found = output.argmax(1) == 1
    return [(found & (y == 1)).sum(), (found & (y != 1)).sum(), (~found & (y == 1)).sum()]


F1 = feddyn.Metric("f1", _counts, lambda s: 2 * s[0] / (2 * s[0] + s[1] + s[2]) if s[0] else 0.0)


def _histograms(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    score = output.softmax(1)[:, 1].double()
    place = (score * BINS).long().clamp(max=BINS - 1)
    return torch.cat([torch.bincount(place[y == 1], minlength=BINS), torch.bincount(place[y != 1], minlength=BINS)])


def _area(sums: Sequence[float]) -> float:
    """The chance that a positive scores above a negative, ties counting half."""
    positive, negative = np.array(sums[:BINS]), np.array(sums[BINS:])
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative / 2)).sum() / (positive.sum() * negative.sum()))


AUC = feddyn.Metric("auc", _histograms, _area)
PERPLEXITY = feddyn.Metric(
    "perplexity",
    lambda output, y: (nn.functional.cross_entropy(output, y, reduction="sum"), len(y)),
    lambda sums: math.exp(sums[0] / sums[1]),
    "lower",
)


def run(population: feddyn.Population, **more: Any) -> feddyn.Run:
    torch.manual_seed(0)
    solver = feddyn.SGD(0.1, epochs=2, batch_size=8)
    arguments = {"participation": 4, "rounds": 3, "workers": 1, **more}
    return feddyn.simulate(nn.Linear(4, 3).double(), population, feddyn.FedDyn(0.1), solver, **arguments)


@pytest.mark.parametrize("workers", [1, 2])
def test_figures_are_those_of_all_samples_together(workers: int) -> None:
    """More samples than one batch has, so that sums are really added up; against scores of the whole set at once."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (3000, 4))
    y = np.argmax(x @ rng.normal(0, 1, (4, 3)) + rng.normal(0, 1, (3000, 3)), 1)
    population = feddyn.Population.from_arrays(x, y, np.arange(3000) % 10)
    metrics = iter([F1, AUC, PERPLEXITY, top(2)])
    found = run(population, metrics=metrics, workers=workers)
    with torch.no_grad():
        output = found.model("server")(torch.from_numpy(x))
    figures, guess = found.history[-1]["models"]["server"], output.argmax(1).numpy()
    assert list(figures) == ["loss", "accuracy", "f1", "auc", "perplexity", "top2", "objective"]
    precision, recall = (y[guess == 1] == 1).mean(), (guess[y == 1] == 1).mean()
    assert figures["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert figures["perplexity"] == pytest.approx(math.exp(figures["loss"]))
    second = output.topk(2).indices.numpy()
    assert figures["top2"] == np.any(second == y[:, None], 1).mean()
    score = output.softmax(1)[:, 1].numpy()
    pairs = score[y == 1][:, None] - score[y != 1]
    assert figures["auc"] == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean(), abs=1 / BINS)


def test_a_metric_has_a_direction_everywhere(unbalanced: Stored, tmp_path: Path) -> None:
    """A perplexity is reached from above; records, reports and the headline know it from the setting alone."""
    first = run(unbalanced, metrics=[PERPLEXITY], out=tmp_path / "all")
    values = [line["models"]["all"]["perplexity"] for line in first.history]
    assert values[2] < values[1] < values[0]
    target = feddyn.Target("perplexity", (values[0] + values[1]) / 2)
    second = run(unbalanced, metrics=[PERPLEXITY], target=target, out=tmp_path / "target")
    assert (second.status, len(second.history)) == ("target reached", 2)
    record = feddyn.load(tmp_path / "all")
    assert record.headline == first.headline == ("all", "perplexity")
    assert (record.better, record.best) == ("lower", min(values))
    assert directions(record.setting)["perplexity"] == "lower"
    report = make([tmp_path], tmp_path / "report")
    assert not report.missing
    (table,) = report.tables
    at = [table.columns.index(name) for name in ("ran", "perplexity at the end", "best")]
    ends = [["3", f"{values[2]:.4f}", f"{values[2]:.4f}"], ["2", f"{values[1]:.4f}", f"{values[1]:.4f}"]]
    assert [[row[place] for place in at] for row in table.rows] == ends


def test_the_rule_for_the_headline_is_one() -> None:
    names = ["loss", "accuracy"]
    both = {"all": names, "server": names}
    assert headline({}, both) == ("all", "accuracy")
    assert headline({}, {"active": names, "server": ["loss"]}) == ("server", "loss")
    assert headline({}, {"server": [*names, "objective"]}) == ("server", "objective")
    assert (
        headline({"evaluation": {"metrics": [{"name": "f1", "better": "higher"}]}}, {"all": [*names, "f1"]})[1] == "f1"
    )
    assert headline({"target": {"model": "server", "metric": "loss"}}, both) == ("server", "loss")


def test_run_and_report_show_the_same_figure(tmp_path: Path) -> None:
    """Also where the mean of all devices is not the last model that is evaluated."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (400, 4)), rng.integers(0, 3, 400)
    population = feddyn.Population.from_arrays(x[:200], y[:200], np.arange(200) % 5, test=(x[200:], y[200:]))
    found = run(population, evaluation=feddyn.Evaluation(models=["all", "server"]), out=tmp_path / "r")
    assert found.headline == feddyn.load(tmp_path / "r").headline == ("all", "accuracy")


def test_the_servers_model_on_every_device(unbalanced: Stored, tmp_path: Path) -> None:
    evaluation = feddyn.Evaluation(models=["server"], devices=True)
    results = [
        run(unbalanced, evaluation=evaluation, out=tmp_path / str(workers), workers=workers) for workers in (1, 2)
    ]
    assert results[0].history == results[1].history
    model, columns = results[0].model("server"), results[0].on_devices
    with torch.no_grad():
        hits = [
            float((model(unbalanced.samples(k)[0]).argmax(1) == unbalanced.samples(k)[1]).double().mean())
            for k in range(10)
        ]
    assert columns["accuracy"] == pytest.approx(hits)
    assert columns["samples"] == unbalanced.sizes
    line = results[0].history[-1]["on_devices"]["accuracy"]
    assert line["worst"] == min(hits)
    assert line["median"] == pytest.approx(np.median(hits))
    assert line["q10"] == pytest.approx(np.quantile(hits, 0.1))
    assert line["deviation"] == pytest.approx(np.std(hits))
    record = feddyn.load(tmp_path / "1")
    assert record.on_devices == json.loads(json.dumps(columns))
    assert record.columns["on_devices.loss.worst"][-1] == max(columns["loss"])
    assert spread([3.0], "lower") == {**dict.fromkeys(("worst", "q10", "median", "q90", "best"), 3.0), "deviation": 0.0}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: feddyn.Metric("two words", _counts), "a metric's name is a word"),
        (lambda: feddyn.Metric("f1", _counts, better="up"), "better must be 'higher' or 'lower'"),  # type: ignore[arg-type]
        (lambda: feddyn.Evaluation(metrics=[feddyn.Metric("accuracy", _counts)]), "two metrics 'accuracy'"),
        (lambda: feddyn.Evaluation(metrics=[F1, F1]), "two metrics 'f1'"),
        (lambda: feddyn.Evaluation(metrics=["f1"]), "must be a Metric, not 'f1'"),  # type: ignore[list-item]
    ],
)
def test_bad_metrics_are_refused(make: Any, words: str) -> None:
    with pytest.raises(feddyn.InputError, match=words):
        make()


def test_a_metric_of_nothing_is_zero_unless_it_says_otherwise(unbalanced: Stored) -> None:
    """The precision of a model that finds nobody ill, from the first evaluation on, before anything was learnt."""
    nobody = feddyn.Metric("precision", lambda output, y: (0, 0))
    assert run(unbalanced, metrics=[nobody]).history[-1]["models"]["server"]["precision"] == 0
    other = feddyn.Metric("precision", lambda output, y: (0, 0), finish=lambda sums: sums[0] / sums[1])
    with pytest.raises(
        feddyn.InputError, match=r"the metric precision has no figure for .*\(ZeroDivisionError: .*finish"
    ):
        run(unbalanced, metrics=[other])
    broken = feddyn.Metric("broken", lambda output, y: (1 / 0, 1))
    with pytest.raises(feddyn.InputError, match=r"the metric broken does not work on outputs of shape .*ZeroDivision"):
        run(unbalanced, metrics=[broken])


@pytest.mark.parametrize("nothing", [math.nan, math.inf])
def test_a_metric_without_a_figure_is_refused_before_anything_is_trained(
    nothing: float, unbalanced: Stored, tmp_path: Path
) -> None:
    """No JSON has it, and no best round, patience or target could be told by it."""
    metric = feddyn.Metric("undefined", lambda output, y: (0, len(y)), lambda sums: nothing)
    with pytest.raises(feddyn.InputError, match=rf"the metric undefined has no figure .*\(it is {nothing}\): let its"):
        run(unbalanced, metrics=[metric], out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_metric_that_has_no_figure_later_loses_no_round(unbalanced: Stored) -> None:
    """The error has the run as far as it got, which in memory is nowhere else."""
    asked = itertools.count()

    def finish(sums: Any) -> float:
        return math.nan if next(asked) > 3 else 1.0

    metric = feddyn.Metric("fading", lambda output, y: (0, len(y)), finish)
    with pytest.raises(feddyn.InputError, match="the metric fading has no figure") as caught:
        run(unbalanced, evaluation=feddyn.Evaluation(models=["server"], metrics=[metric]))
    assert len(caught.value.run.history) == 2


@pytest.mark.parametrize("gap", [lambda sums: math.nan, lambda sums: sums[0] / sums[2]])
def test_devices_that_a_metric_says_nothing_about(gap: Any, unbalanced: Stored, tmp_path: Path) -> None:
    """The sensitivity on a device without anybody ill: it has none, and the spread is that of the others."""

    def sums(output: torch.Tensor, y: torch.Tensor) -> list[Any]:
        return [((output.argmax(1) == 1) & (y == 1)).sum(), (y == 1).sum(), 0]

    metric = feddyn.Metric("sensitivity", sums, lambda sums: sums[0] / sums[1] if sums[1] else gap(sums))
    y = np.arange(60) // 10 % 2
    y[:10] = 0
    x = np.random.default_rng(0).normal(0, 1, (60, 4))
    population = feddyn.Population.from_arrays(x, y, np.arange(60) // 10)
    evaluation = feddyn.Evaluation(devices=True, metrics=[metric])
    found = run(population, evaluation=evaluation, out=tmp_path / "r")
    loaded = feddyn.load(tmp_path / "r")
    for column in (found.on_devices["sensitivity"], loaded.on_devices["sensitivity"]):
        assert [math.isnan(value) for value in column] == [True, False, True, False, True, False]
    known = found.on_devices["sensitivity"][1::2]
    assert found.history[-1]["on_devices"]["sensitivity"]["worst"] == min(known)
    assert found.history[-1]["on_devices"]["sensitivity"]["median"] == sorted(known)[1]
    assert json.loads((tmp_path / "r" / "devices.json").read_text())["sensitivity"][0] is None
    told = found.evaluate(population)
    assert math.isnan(told.devices["sensitivity"][0])
    assert told.spread["sensitivity"]["worst"] == min(told.devices["sensitivity"][1::2])
    shown = devices(loaded.on_devices, "sensitivity", "higher")
    assert [row[shown.columns.index("sensitivity")] for row in shown.rows[3:]] == ["-"] * 3
    make([tmp_path / "r"], tmp_path / "page")


def test_places_that_do_not_count_have_no_perplexity() -> None:
    """Their targets are below 0; that the model rules out class 0 everywhere makes no difference."""
    output = torch.zeros(1, 3, 4)
    output[..., 0] = -torch.inf
    found = perplexity(-1)
    assert found.finish(found.batch(output, torch.tensor([[1, 2, -100]]))) == pytest.approx(3.0)


def test_a_metric_that_does_not_fit_is_refused_before_anything_is_trained(unbalanced: Stored) -> None:
    broken = feddyn.Metric("broken", lambda output, y: (output @ y, 1))
    with pytest.raises(
        feddyn.InputError,
        match=r"the metric broken does not work on outputs of shape .*size mismatch.* \(test_metrics.py, line",
    ):
        run(unbalanced, metrics=[broken])
    with pytest.raises(feddyn.InputError, match="metric 'f1' is not known"):
        run(unbalanced, target=feddyn.Target("f1", 0.5))
