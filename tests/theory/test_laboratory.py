"""The laboratory is the product: a simulated run of the same devices goes through the same states."""

import pytest
import torch
from torch import nn

import feddyn
from feddyn.theory.problems import Logistic
from feddyn.theory.verification.laboratory import Laboratory

DECAY = 0.1
COPIES = torch.tensor([1, 3, 2, 1, 2])
SCHEDULE = [[0, 3], [1, 2], [0, 4], [2, 4], [1, 3], [0, 1]] * 4


def logistic_loss(output: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return nn.functional.softplus(-output).mean()


@pytest.mark.parametrize("one_step", [False, True])
def test_a_run_goes_through_the_laboratorys_states(one_step: bool) -> None:
    """The devices hold their samples once, twice or three times: the same losses, other shares."""
    losses = Logistic(len(COPIES), 3, decay=DECAY, spread=2, seed=0)
    losses.share = (COPIES / COPIES.double().mean()).unsqueeze(-1)
    x = torch.cat([rows.repeat(int(copies), 1) for rows, copies in zip(losses.yx, COPIES, strict=True)])
    owner = torch.arange(len(COPIES)).repeat_interleave(COPIES * losses.yx.shape[1])
    population = feddyn.Population.from_arrays(x, torch.zeros(len(x)), owner)
    torch.manual_seed(0)
    model = nn.Linear(3, 1, bias=False).double()
    algorithm = feddyn.FedDyn(20.0 * losses.L)
    solver = feddyn.OneStep(weight_decay=DECAY) if one_step else feddyn.Exact(1e-13, weight_decay=DECAY)
    plan = feddyn.Plan(
        model,
        population,
        algorithm,
        solver,
        SCHEDULE,
        len(SCHEDULE),
        loss=logistic_loss,
        evaluation=feddyn.Evaluation(every=len(SCHEDULE)),
    )
    simulation = feddyn.Simulation(plan)
    federation = simulation.federation
    laboratory = Laboratory(algorithm, losses, one_step)
    state = laboratory.start(model.weight.detach().squeeze(0))
    for line in simulation:
        active = torch.zeros(1, len(COPIES), dtype=torch.bool)
        active[0, line["active"]] = True
        state = laboratory.complete(state, laboratory.offer(state), active)
        for name in ("theta", "h"):
            assert torch.allclose(federation.server[name], state.server[name][0, 0], rtol=0, atol=1e-11)
        for k in federation.ever_active:
            assert torch.allclose(federation.state(k)["lambda"], state.devices["lambda"][0, k], rtol=0, atol=1e-11)
            assert torch.allclose(federation.latest(k), state.models[0, k], rtol=0, atol=1e-12)
    assert line["round"] == len(SCHEDULE)
