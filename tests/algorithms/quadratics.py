"""Devices with quadratic losses, f_k(x) = 1/2 <x, A_k x> - <b_k, x>, whose problems are solved in closed form, and a
server that runs a method with them: rounds in milliseconds, without the engine."""

import numpy as np
import torch

import feddyn
from feddyn.algorithms import State


class Quadratics:
    """Devices of unequal shares and curvatures from 0.2 to 3; `run` leaves server and device states in place."""

    def __init__(self, devices: int = 10, size: int = 6, seed: int = 0, *, equal: bool = False):
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.devices, self.size = devices, size
        bases = torch.linalg.qr(random(devices, size, size)).Q
        self.A = (
            bases @ torch.diag_embed(torch.linspace(0.2, 3, size, dtype=torch.float64).expand(devices, -1)) @ bases.mT
        )
        self.b = random(devices, size)
        shares = torch.ones(devices, 1) if equal else torch.linspace(0.3, 1.7, devices)[:, None]
        self.shares = shares.double()

    @property
    def optimum(self) -> torch.Tensor:
        """The minimum of the pooled loss, SUM share_k f_k / m."""
        return _solve((self.shares[..., None] * self.A).mean(0), (self.shares * self.b).mean(0))

    def gradients(self, x: torch.Tensor) -> torch.Tensor:
        """grad f_k(x_k), a row a device."""
        return torch.einsum("kij,kj->ki", self.A, x.expand(self.devices, -1)) - self.b

    def solve(self, problem: feddyn.Problem, who: torch.Tensor) -> torch.Tensor:
        """The exact solutions for some devices."""
        prox = torch.as_tensor(problem.prox, dtype=torch.float64).expand(len(who), 1)
        right = self.b[who]
        right = right if problem.tilt is None else right - problem.tilt
        right = right if problem.center is None else right + prox * problem.center
        eye = torch.eye(self.size, dtype=torch.float64)
        return _solve(self.A[who] + prox[..., None] * eye, right)

    def descend(self, problem: feddyn.Problem, who: torch.Tensor, steps: int, lr: float) -> torch.Tensor:
        """So many gradient steps for some devices."""
        x = problem.start.expand(len(who), -1)
        for _ in range(steps):
            slope = torch.einsum("kij,kj->ki", self.A[who], x) - self.b[who]
            x = x - lr * problem.penalised_slope(slope, x)
        return x

    def run(
        self,
        method: feddyn.Algorithm,
        active: int,
        rounds: int,
        *,
        start: torch.Tensor | None = None,
        steps: int = 0,
        lr: float = 0.0,
    ) -> tuple[State, State, float]:
        """The states after so many rounds, and the largest norm that the server's model had on the way; with `steps`
        of `lr` the problems are not solved exactly."""
        theta = torch.ones(self.size, dtype=torch.float64) if start is None else start
        dice = np.random.default_rng(0)
        server = method.server(theta)
        states = {name: v.expand(self.devices, -1).clone() for name, v in method.device(theta).items()}
        largest = 0.0
        for _ in range(rounds):
            who = torch.from_numpy(np.sort(dice.choice(self.devices, active, replace=False)))
            down, mine, share = method.broadcast(server), {k: v[who] for k, v in states.items()}, self.shares[who]
            problem = method.problem(down, mine, share)
            found = self.descend(problem, who, steps, lr) if steps else self.solve(problem, who)
            after, up = method.report(down, mine, share, feddyn.Solution(found, steps * lr))
            for name, vector in after.items():
                states[name][who] = vector
            server = method.aggregate(server, {k: v.sum(0) for k, v in up.items()}, active, self.devices)
            largest = max(largest, float(server["theta"].norm()))
        return server, states, largest


def _solve(matrix: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    solution: torch.Tensor = torch.linalg.solve(matrix, right)
    return solution
