"""What a server keeps of a federation: a record like a simulation's, the ledger, and what happened beside the rounds.

setting.toml, rounds.jsonl, timings.jsonl, summary.json, models.safetensors    as in any record
ledger.safetensors    where the federation stands; its write counts a round
events.jsonl          sessions, sites that joined, uploads that were lost, late or refused
"""

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import torch
from safetensors.torch import save

from feddyn.batches import owned
from feddyn.flower import ledger as ledgers
from feddyn.flower.judge import Judge
from feddyn.flower.ledger import EVENTS, Ledger
from feddyn.records.layout import Line, Setting, Status, summary
from feddyn.records.lines import append_lines
from feddyn.records.writer import Record

LOG = logging.getLogger("flwr")
"""Flower shows this log to whoever asks for that of a run."""


def note(directory: Path, kind: str, **words: Any) -> None:
    """Note what happened to the federation in a directory, for `feddyn deploy status`, and in the log."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "event": kind, **words}
    with (directory / EVENTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    LOG.info("%s %s", kind, " ".join(f"{name}={value}" for name, value in words.items()))


@final
class Journal:
    """The record of a federation in a directory, begun or gone on with; while it is open nobody else can open it.
    Models are judged every few rounds and after the last of `rounds`."""

    def __init__(
        self,
        directory: Path,
        setting: Setting,
        rounds: int,
        judge: Judge,
        inputs: Mapping[str, Any] | None = None,
        code: Mapping[str, bytes] | None = None,
    ):
        self.directory, self.setting, self.rounds, self.judge = directory, setting, rounds, judge
        self.inputs = inputs or {}
        self._said = set[str]()
        begun = (directory / "setting.toml").exists()
        self.record = Record.resume(directory, setting) if begun else Record(directory, setting, code)
        try:
            self.ledger = ledgers.read(directory)
            recorded, done = (self.ledger.recorded, self.ledger.round) if self.ledger else (0, 0)
            self.history = self.record.cut(recorded, done)
            (directory / "summary.json").unlink(missing_ok=True)  # of the session before
            append_lines(directory / EVENTS, [])  # without one that a crash cut off
        except BaseException:
            self.record.release()
            raise
        self.models: dict[str, torch.Tensor] = {}

    def commit(self, ledger: Ledger) -> None:
        """Write the ledger."""
        ledgers.write(self.directory, ledger)
        self.ledger = ledger

    def count(self, ledger: Ledger, words: Mapping[str, Any], models: Mapping[str, torch.Tensor]) -> Ledger:
        """Record a round, and count it: the ledger that was written knows how much of the record belongs to it."""
        line: Line = {**ledger.totals.line(ledger.round), **words}
        if ledger.round % self.judge.every == 0 or ledger.round == self.rounds:
            figures = {name: found for name, theta in models.items() if (found := self.judge.figures(theta))}
            line |= {"models": figures} if figures else {}
        self.record.line(line)
        counted = replace(ledger, recorded=self.record.recorded())
        self.commit(counted)
        self.history.append(line)
        self.models = dict(models)
        self._said.clear()
        shown = json.dumps(line.get("models", {}))
        LOG.info("round %d is counted: %d uploads %s", ledger.round, len(line["active"]), shown)
        return counted

    def event(self, kind: str, **words: Any) -> None:
        """Note what happened."""
        note(self.directory, kind, **words)

    def once(self, kind: str, **words: Any) -> None:
        """Note what is noticed again and again only once between two rounds."""
        if (said := f"{kind} {sorted(words.items())}") not in self._said:
            self._said.add(said)
            self.event(kind, **words)

    def close(self, status: Status, message: str = "") -> None:
        """Write down how far the federation is, if it was begun; another session may go on with it."""
        if self.ledger is None:
            self.record.release()
            return
        if not self.models:  # a session that counted nothing
            self.models = {"server": torch.from_numpy(self.ledger.vectors["theta"].copy())}
        ended = summary(self.setting, status, message, self.history)
        models = owned(self.models)
        headline = models[list(models)[-1]]
        self.record.close(ended, save(models), save(self.judge.named(headline)), self.inputs, {})
