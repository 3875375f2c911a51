"""Your own nn.Module and arrays: five hospitals that see different patients, two of which answer each round."""

import numpy as np
import torch

import feddyn

rng = np.random.default_rng(0)
y = rng.integers(0, 10, 4000)  # ten diagnoses
x = rng.normal(0, 1, (10, 12))[y] + rng.normal(0, 1, (4000, 12))
hospital = np.where(rng.random(4000) < 0.9, y // 2, rng.integers(0, 5, 4000))  # most patients go to the specialist

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)).double()
population = feddyn.Population.from_arrays(x[:3000], y[:3000], hospital[:3000], test=(x[3000:], y[3000:]))
solver = feddyn.SGD(lr=0.1, epochs=20, batch_size=20, weight_decay=1e-3)
for method in (feddyn.FedDyn(alpha=0.3), feddyn.FedAvg()):
    run = feddyn.simulate(model, population, method, solver, participation=2, rounds=20, seed=0)
    figures = run.history[-1]["models"]["all"]  # of the mean of all devices' models, on the test set
    print(f"{method}: accuracy {figures['accuracy']:.1%}, loss {figures['loss']:.3f}")
trained = run.model("all")  # an nn.Module like yours, with the trained parameters
