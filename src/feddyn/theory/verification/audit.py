"""Whether an algorithm does, round by round, what the proofs say: all identities and inequalities, by enumeration."""

from dataclasses import dataclass, field

import torch

from feddyn.algorithms.base import Vector
from feddyn.theory.theorems import Theorem
from feddyn.theory.verification.identities import EXACT, identities
from feddyn.theory.verification.laboratory import Laboratory, draws
from feddyn.theory.verification.lemmas import inequalities
from feddyn.theory.verification.rounds import Round


@dataclass
class Audit:
    """What was checked: identities with their largest relative error, inequalities with their largest left / right."""

    errors: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    violated: list[str] = field(default_factory=list)
    """What does not hold, each once."""
    histories: int = 0
    """Rounds of paths."""

    def add(self, other: "Audit") -> None:
        """Two audits as one."""
        for mine, theirs in ((self.errors, other.errors), (self.ratios, other.ratios)):
            mine |= {name: max(value, mine.get(name, 0.0)) for name, value in theirs.items()}
        self.violated += [name for name in other.violated if name not in self.violated]
        self.histories += other.histories


def audit(
    laboratory: Laboratory, theorem: Theorem, theta: Vector, *, rounds: int, paths: int, seed: int, every: int = 1
) -> Audit:
    """Follow random paths from theta^0, and check every round of each, or each `every`th, over all active sets."""
    found, random = Audit(), torch.Generator().manual_seed(seed)
    state = laboratory.start(theta, paths)
    for t in range(rounds):
        if t % every == 0:
            found.add(audit_round(Round(laboratory, state, theorem.P, theorem.alpha), theorem))
        active = draws(paths, theorem.m, theorem.P, random)
        state = laboratory.complete(state, laboratory.offer(state), active)
    return found


def audit_round(round: Round, theorem: Theorem) -> Audit:
    """One round, of all paths."""
    errors, claims = identities(round, theorem), inequalities(round, theorem)
    violated = [name for name, error in errors.items() if not error <= EXACT]
    violated += [claim.name for claim in claims if not claim.holds]
    return Audit(errors, {claim.name: claim.ratio for claim in claims}, violated, len(round.gamma))
