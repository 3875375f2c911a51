"""Whether a method takes many devices at once, found by trying: a `report` with d / d.norm() does not, and would train
wrongly without a word."""

from collections.abc import Sequence

import torch

from feddyn.algorithms.base import Algorithm, Solution, State, Vector
from feddyn.origin import told

SHARES = (0.5, 1.0, 1.75)
PATHS = (0.3, 0.6, 0.9)


def refusal(algorithm: Algorithm, theta: Vector) -> str:
    """Why devices of a method cannot be stacked: three of them, with states and solutions of their own, are taken one
    by one and together. Empty where both are the same."""
    random, name = torch.Generator().manual_seed(0), type(algorithm).__name__

    def near(state: State) -> State:
        return {key: v + torch.randn(v.shape, generator=random).to(v) for key, v in state.items()}

    shares, paths = (torch.tensor(numbers).to(theta)[:, None] for numbers in (SHARES, PATHS))
    try:
        down = algorithm.broadcast(near(algorithm.server(theta)))
        states = [near(algorithm.device(theta)) for _ in SHARES]
        thetas = [near({"theta": theta})["theta"] for _ in SHARES]
        each = zip(states, shares, thetas, paths, strict=True)
        single = [_outcome(algorithm, down, state, share, Solution(*found)) for state, share, *found in each]
    except Exception:  # it is somebody's own code, and fails alone too: the run will say so
        return ""
    try:
        together = _outcome(algorithm, down, _stack(states), shares, Solution(torch.stack(thetas), paths))
    except Exception as error:
        return f"{name} does not take stacked devices ({told(error)})"
    for what, alone in _stack(single).items():
        found = together.get(what, torch.zeros(0))
        alike = found.shape in (alone.shape, alone.shape[1:])
        if not (alike and torch.allclose(found.expand_as(alone), alone, 1e-3, 1e-4, equal_nan=True)):
            return f"{name} gives another {what} for stacked devices than alone: reduce along the last axis only"
    return ""


def _stack(states: Sequence[State]) -> State:
    return {name: torch.stack([state[name] for state in states]) for name in states[0]}


def _outcome(algorithm: Algorithm, down: State, state: State, share: torch.Tensor, found: Solution) -> State:
    """All that a method makes of devices, by name."""
    problem = algorithm.problem(down, state, share)
    after, upload = algorithm.report(down, state, share, found)
    parts = {"start": problem.start, "tilt": problem.tilt, "prox": problem.prox, "center": problem.center}
    parts |= {f"state {name}": vector for name, vector in after.items()}
    parts |= {f"upload {name}": vector for name, vector in upload.items()}
    parts["weight"] = algorithm.weight(share)
    return {name: torch.as_tensor(part).to(found.theta) for name, part in parts.items() if part is not None}
