"""FedDyn where 1 or 2 of 100 devices are active: what holds its server's model back, and whether that helps.

    FEDDYN_DATA=... python examples/low_participation.py 1 300       # 1 device a round, 300 rounds; MNIST, minutes

Two variants, as methods of one's own. Both keep h = 1/m SUM share_k lambda_k and the optimum as their resting point:

    Damped:  theta = mean_P x_k - damp h/alpha
    Smooth:  bar <- (1 - blend) bar + blend mean_P x_k ,   theta = bar - h/alpha
"""

import sys
from dataclasses import dataclass

import torch

import feddyn
from feddyn.algorithms import Scalar, State, Vector
from feddyn.data.datasets.federations import images
from feddyn.models import zoo

SOLVER = feddyn.SGD(0.1, epochs=2, batch_size=50, weight_decay=1e-4, clip=10.0, lr_decay=0.998)


@dataclass(frozen=True)
class Held(feddyn.Algorithm):
    """FedDyn with `damp` and `blend`; 1 and 1 is FedDyn itself."""

    alpha: float
    damp: float = 1.0
    blend: float = 1.0

    def server(self, theta: Vector) -> State:
        return {"theta": theta, "bar": theta, "h": torch.zeros_like(theta)}

    def device(self, theta: Vector) -> State:
        return {"lambda": torch.zeros_like(theta)}

    def broadcast(self, server: State) -> State:
        return {"theta": server["theta"]}

    def problem(self, down: State, device: State, share: Scalar) -> feddyn.Problem:
        return feddyn.Problem(down["theta"], -device["lambda"], self.alpha / share, down["theta"])

    def report(self, down: State, device: State, share: Scalar, found: feddyn.Solution) -> tuple[State, State]:
        moved = found.theta - down["theta"]
        return {"lambda": device["lambda"] - self.alpha / share * moved}, {"theta": found.theta}

    def aggregate(self, server: State, total: State, count: int, devices: int) -> State:
        h = server["h"] - self.alpha / devices * (total["theta"] - count * server["theta"])
        bar = server["bar"] + self.blend * (total["theta"] / count - server["bar"])
        return {"theta": bar - self.damp * h / self.alpha, "bar": bar, "h": h}

    def weight(self, share: Scalar) -> Scalar:
        return 1.0


METHODS: tuple[feddyn.Algorithm, ...] = (
    feddyn.FedAvg(),
    feddyn.FedACG(0.75, 0.002),
    feddyn.FedDyn(0.01),
    feddyn.FedDyn(0.05),
    feddyn.FedDyn(0.25),
    Held(0.01, damp=0.3),
    Held(0.01, blend=0.5),
    Held(0.01, blend=0.2),
    feddyn.FedDR(0.01),
    feddyn.FedDR(0.05, 1.6),
)


def main(active: int, rounds: int) -> None:
    """The mean accuracy of the last three evaluations (of fifteen) of each model, and the norm of the server's."""
    populations = [images("mnist", split="dirichlet", concentration=0.3, seed=seed) for seed in (0, 1)]
    for method in METHODS:
        for seed, population in enumerate(populations):
            torch.manual_seed(seed)
            run = feddyn.simulate(
                zoo.mlp(784, 10, 50),
                population,
                method,
                SOLVER,
                participation=active,
                rounds=rounds,
                seed=seed,
                evaluation=feddyn.Evaluation(every=rounds // 15),
            )
            last = [line["models"] for line in run.history if "models" in line][-3:]
            means = {name: sum(models[name]["accuracy"] for models in last) / len(last) for name in last[0]}
            words = ", ".join(f"{name} {mean:.2%}" for name, mean in means.items())
            print(f"{method}, seed {seed}: {words}, norm {run.history[-1]['norms']['theta']:.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
