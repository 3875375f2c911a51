"""A federation of devices that solve their problems exactly, with compressed uploads and downloads, and ways to get it
wrong."""

from typing import Literal, NamedTuple

import torch

from feddyn.algorithms import Algorithm, Problem, Solution
from feddyn.theory.problems import Losses
from feddyn.wire import Compressor
from feddyn.wire.common import CommonModel
from feddyn.wire.uplink import Uplink

Way = Literal["right", "true update", "extra feedback"]


class Outcome(NamedTuple):
    """The distance of the server's model from the optimum at the end, the largest distance from the invariant
    h = 1/m SUM share_k lambda_k in any round, in the largest norm of a lambda_k, and the server's model."""

    error: float
    invariant: float
    theta: torch.Tensor


def run(
    losses: Losses,
    algorithm: Algorithm,
    rounds: int,
    uplink: Compressor | None = None,
    downlink: Compressor | None = None,
    active: int | None = None,
    lost: float = 0.0,
    way: Way = "right",
    lr: float | None = None,
) -> Outcome:
    """FedDyn, or another method, with the devices' exact solutions or, with an `lr`, after five gradient steps of that
    length; `active` devices a round (None: all), of whose uploads each is `lost` with a probability."""
    random = torch.Generator().manual_seed(0)
    m, d = losses.m, losses.d
    start = torch.zeros(d, dtype=torch.float64)
    server, sizes = algorithm.server(start), (d - d // 3, d // 3)
    devices = {name: vector.repeat(m, 1) for name, vector in algorithm.device(start).items()}
    up = Uplink(uplink, algorithm, start, sizes) if uplink else None
    common = CommonModel(downlink, sizes, algorithm.broadcast(server), m) if downlink else None
    unsent, invariant = torch.zeros(m, d, dtype=torch.float64), 0.0
    for t in range(rounds):
        asked = torch.randperm(m, generator=random)[: active or m]
        who = asked[torch.rand(len(asked), generator=random) >= lost]
        wanted = down = algorithm.broadcast(server)
        sent_server = server
        if common:
            sent = common.broadcast(down, t)
            down, sent_server = sent.down, server | {name: sent.down[name] for name in algorithm.as_sent or ()}
            common.commit(sent, asked.tolist())
        if len(who) == 0:
            continue
        problem = algorithm.problem(down, devices, losses.share)
        solved = losses.minimise(problem) if lr is None else _steps(losses, problem, lr)
        found = seen = solved.theta[who]
        if up:
            error = unsent[who] if up.feedback or way == "extra feedback" else None
            reference = up.reference(down, devices, problem.start, solved.path)
            reference = reference if reference.dim() == 1 else reference[who]
            seen, rest, *_ = up.send(reference, found, error, [1000 * t + int(k) for k in who])
            if rest is not None:
                unsent[who] = rest
        state, share = {name: vectors[who] for name, vectors in devices.items()}, losses.share[who]
        after, _ = algorithm.report(down, state, share, Solution(found if way == "true update" else seen, solved.path))
        _, upload = algorithm.report(down, state, share, Solution(seen, solved.path))
        for name, vectors in after.items():
            devices[name][who] = vectors
        total = {name: vectors.sum(0) for name, vectors in upload.items()}
        server = algorithm.aggregate(sent_server, total, len(who), m)
        if common:
            server = algorithm.carry(server, {name: wanted[name] - down[name] for name in common.moved})
        if "h" in server:
            held = (losses.share * devices["lambda"]).mean(0)
            scale = float(devices["lambda"].norm(dim=1).max())
            invariant = max(invariant, float((server["h"] - held).norm()) / max(scale, 1e-300))
        if not float(server["theta"].norm()) < 1e6:
            return Outcome(float("inf"), invariant, server["theta"])
    return Outcome(float((server["theta"] - losses.theta_star).norm()), invariant, server["theta"])


def _steps(losses: Losses, problem: Problem, lr: float) -> Solution:
    theta = problem.start + torch.zeros_like(losses.share)
    for _ in range(5):
        theta = theta - lr * problem.penalised_slope(losses.gradients(theta), theta)
    return Solution(theta, 5 * lr)
