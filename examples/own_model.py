"""Your own nn.Module and arrays: five hospitals with data of their own, two of which answer each round."""

import numpy as np
import torch

import feddyn

rng = np.random.default_rng(0)
hospital = rng.integers(0, 5, 600)  # which hospital each patient belongs to: numbers from 0, or names
x = (rng.normal(0, 1, (600, 12)) + hospital[:, None] / 2).astype(np.float32)
y = (x[:, :3].sum(1) > hospital).astype(int)

model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
population = feddyn.Population.from_arrays(x[:500], y[:500], hospital[:500], test=(x[500:], y[500:]))
solver = feddyn.SGD(lr=0.1, epochs=5, batch_size=20, weight_decay=1e-4)
for method in (feddyn.FedDyn(alpha=0.1), feddyn.FedAvg()):
    run = feddyn.simulate(model, population, method, solver, participation=2, rounds=40, seed=0)
    print(method, run.history[-1]["models"]["all"])  # {'loss': ..., 'accuracy': ...}
trained = run.model("all")  # an nn.Module like yours, with the trained parameters
