"""The illnesses that a record shows, one function each. Every limit stands beside what was seen in sound runs: the
records in docs/results, and the small runs of the tests."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence

from feddyn.doctor.evidence import Evidence, Finding, early_late
from feddyn.doctor.wires import compressed_broadcasts, compression
from feddyn.metrics import best, directions
from feddyn.records.layout import Status
from feddyn.views.naming import named

GROWTH = 1.5
"""Factor, early to late, from which on a norm is growing; in sound runs whose loss no longer falls it is below 1.1."""
FALLEN = 0.97
"""A loss of the server that is above this part, late, of what it was halfway has not fallen."""
DRIFTING = 0.15
"""Drift over the norm of the model, late in a run, from which on it counts; in sound runs it is below 0.1."""
CLIPPED = 0.4
"""Part of the longest way that the clip allows from which on steps are cut short; in sound runs it is below 0.15."""
DOMINATES = 0.5
"""Part of all training from which on the one device that does it dominates."""
UNSEEN = 0.3
"""Part of the devices from which on too many were never active."""
BEHIND = 0.1
"""Part of the gain of the server's model from which on the mean of all devices, which lacks it, is behind."""
STILL = 0.001
"""Part of the whole gain: less than that in the last third of a run is a plateau, as in MNIST's that went on at 98%."""
LINES = 15
"""Evaluated rounds before which nothing is called a plateau."""
FAR = 0.05
"""Part of the way from the first figure to the target: a run that has come less far will hardly reach it."""
PULL = (0.002, 10.0)
"""alpha * lr * steps; the paper's runs have 0.004 to 1.8, those with 100 devices from 0.05 on."""


def diverged(evidence: Evidence) -> Finding | None:
    """It ended in numbers that are none."""
    run = evidence.run
    if run.status is not Status.DIVERGED:
        return None
    figures = {"rounds before it": str(len(run.history))}
    for name in evidence.lines[-1]["norms"] if evidence.lines else ():
        figures[f"||{name}||"] = _ends(evidence.series("norms", name))
    advice = "a smaller solver.lr, or a clip (solver.clip = 10)"
    if evidence.method == "feddyn":
        advice += ", and an alpha with which alpha * lr is far below 1"
    return Finding("diverged", run.message or "the figures exploded", figures, advice)


def growing_states(evidence: Evidence) -> Finding | None:
    """Norms that grow while the loss does not fall: FedDyn's states add up what devices did not get done."""
    if not evidence.long:
        return None
    grown = dict[str, str]()
    for kind, name in (("norms", "theta"), ("norms", "h"), ("norms", "c"), ("devices", "lambda"), ("devices", "c")):
        if len(values := evidence.series(kind, name)) >= 5:
            before, now = early_late(values)
            if now > GROWTH * before and (kind == "norms" or grown):  # devices' states begin at zero, and may grow long
                grown[f"||{name}||"] = f"{before:.3g} -> {now:.3g}"
    losses = [line["models"]["server"]["loss"] for line in evidence.run.evaluated if "server" in line["models"]]
    if not grown or len(losses) < 5:
        return None
    (_, end), count = early_late(losses), len(losses)
    middle = statistics.median(losses[2 * count // 5 : 3 * count // 5])
    if end < FALLEN * middle:
        return None
    few = f"with {_participation(evidence)}" if evidence.devices else ""
    advice = "more devices a round, a smaller solver.lr with lr_decay below 1, a weight decay"
    if evidence.method == "feddyn":
        advice = "a larger algorithm.alpha, which is what holds the states; then " + advice
    return Finding(
        "states grow",
        f"the norms keep growing while the server's loss no longer falls {few}".rstrip(),
        {**grown, "server's loss": f"{middle:.3g} halfway, {end:.3g} late"},
        advice,
    )


def drift(evidence: Evidence) -> Finding | None:
    """Devices that go their own way, round after round."""
    drifts, norms = evidence.series("devices", "drift"), evidence.series("norms", "theta")
    if not evidence.long or not norms or len(drifts) != len(norms) or min(norms) == 0:
        return None
    shares = [way / norm for way, norm in zip(drifts, norms, strict=True)]
    (before, now), (_, share) = early_late(drifts), early_late(shares)
    if share < DRIFTING or now < 0.7 * before:
        return None
    steps = f"; a device takes {evidence.steps:.0f} steps a round" if evidence.steps else ""
    return Finding(
        "drift",
        f"devices still move far from the model that they are sent, and it does not become less{steps}",
        {"drift": f"{before:.3g} -> {now:.3g}", "drift / ||theta|| late": f"{share:.2f}"},
        "a smaller solver.lr, lr_decay below 1, fewer epochs or steps, or a method that corrects drift, such as FedDyn",
    )


def clip(evidence: Evidence) -> Finding | None:
    """Steps that are cut short. A device that takes n steps of lr, none longer than the clip, gets lr * n * clip far at
    most; the part of it that devices really get is the least that their steps have of the clip on average."""
    solver, steps = evidence.table("solver"), evidence.steps
    if not isinstance(solver.get("clip"), int | float) or "schedule" in solver or not steps or not evidence.long:
        return None
    late = evidence.lines[len(evidence.lines) // 2 :]
    if not all("drift" in line.get("devices", {}) for line in late):  # as in deployments, where nobody knows
        return None
    ways = [line["devices"]["drift"] / (evidence.rate(line["round"] - 1) * steps * solver["clip"]) for line in late]
    share = sum(ways) / len(ways)
    if share < CLIPPED:
        return None
    return Finding(
        "clip",
        f"the clip cuts most steps: on average they are at least {min(share, 1.0):.0%} as long as it allows",
        {"clip": f"{solver['clip']:g}", "drift / (lr * steps * clip)": f"{share:.2f}"},
        "a larger solver.clip (the paper's is 10), or none and a smaller solver.lr",
    )


def dominance(evidence: Evidence) -> Finding | None:
    """One device that does most of the training."""
    times = Counter(device for line in evidence.lines for device in line["active"])
    sizes, names = evidence.run.on_devices.get("samples"), evidence.run.on_devices.get("device")
    if not evidence.devices or evidence.devices < 3 or len(evidence.lines) < 3:
        return None
    work = {device: count * (sizes[device] if sizes else 1) for device, count in times.items()}
    device = max(work, key=lambda k: work[k])
    share = work[device] / sum(work.values())
    if share < DOMINATES:
        return None
    figures = {"its part of the training": f"{share:.0%}", "active": f"{times[device]} of {len(evidence.lines)} rounds"}
    if sizes:
        figures["samples"] = f"{sizes[device]} of {sum(sizes)}"
    return Finding(
        "one device dominates",
        f"device {names[device] if names else device} does most of the training, so the model is mostly its own",
        figures,
        "splitting its data over several devices, leaving some of it out, or asking the others more often; "
        "evaluation.devices = true shows how they fare",
    )


def unseen(evidence: Evidence) -> Finding | None:
    """The mean of all devices is behind because most of it is the initial model."""
    run = evidence.run
    if not evidence.devices or not run.evaluated or not {"all", "server"} <= set(run.evaluated[-1]["models"]):
        return None
    never = 1 - len(evidence.ever_active) / evidence.devices
    metric = run.headline[1] if run.headline[1] in run.evaluated[-1]["models"]["server"] else "loss"
    last, first = run.evaluated[-1]["models"], run.initial or run.evaluated[0]["models"]
    gain = abs(last["server"][metric] - first.get("server", first.get("all", last["all"]))[metric])
    sign = 1 if directions(run.setting)[metric] == "higher" else -1
    lag = sign * (last["server"][metric] - last["all"][metric])
    if never < UNSEEN or gain == 0 or lag < BEHIND * gain:
        return None
    return Finding(
        "devices never active",
        "the mean of all devices lags behind the server's model, because those never active count with the initial one",
        {
            "never active": f"{never:.0%} of {evidence.devices} devices",
            f"{metric}, server and all": f"{last['server'][metric]:.4g}, {last['all'][metric]:.4g}",
        },
        "more rounds, a larger participation, or judging by the server's model: target.model = 'server'",
    )


def plateau(evidence: Evidence) -> Finding | None:
    """No gain for a third of the run."""
    run = evidence.run
    figures = run.figures if run.evaluated else []
    if len(figures) < LINES or run.status in (Status.DIVERGED, Status.REACHED):
        return None
    cut = 2 * len(figures) // 3
    before, whole, first = best(figures[:cut], run.better), run.best, figures[0]
    if abs(whole - before) > STILL * abs(before - first):
        return None
    model, metric = run.headline
    since = run.evaluated[figures.index(before)]["round"]
    own = [name for name in evidence.table("algorithm") if name != "name"]
    others = f", another {' or '.join(own)} (feddyn sweep)" if own else ""
    return Finding(
        "plateau",
        f"{named(metric, model)} has hardly improved since round {since}",
        {f"{metric}": f"{first:.4g} -> {before:.4g} in two thirds of the run, {whole:.4g} in all of it"},
        f"ending sooner; or a smaller step late in the run (solver.lr_decay, solver.schedule){others}, a larger model",
    )


def alpha(evidence: Evidence) -> Finding | None:
    """FedDyn's alpha beside what its solver can do with it: over n steps of lr a device is drawn back by a factor of
    about exp(-alpha lr n); far below 1 the penalty does nothing, far above it devices cannot leave the start."""
    value, steps = evidence.table("algorithm").get("alpha"), evidence.steps
    if evidence.method != "feddyn" or not isinstance(value, int | float) or not steps:
        return None
    lr = float(evidence.table("solver")["lr"])
    pull = value * lr * steps
    if PULL[0] <= pull <= PULL[1] and value * lr < 1:
        return None
    low, high = (f"{bound / (lr * steps):.2g}" for bound in (0.05, 2.0))
    words = "alpha is so large that devices hardly leave the model that they are sent"
    if value * lr >= 1:
        words = "alpha * lr is so large that the steps towards the model that devices are sent overshoot"
    if pull < PULL[0]:
        words = "alpha is so small that the penalty hardly acts within a round: devices drift as in FedAvg"
    return Finding(
        "alpha far from its useful range",
        words,
        {"alpha": f"{value:g}", "lr": f"{lr:g}", "steps": f"{steps:.0f}", "alpha * lr * steps": f"{pull:.2g}"},
        f"an alpha between {low} and {high}, for which alpha * lr * steps is 0.05 to 2 as in the paper's runs, or "
        "what feddyn alpha suggests",
    )


def far_target(evidence: Evidence) -> Finding | None:
    """A target that is out of reach, such as 95 for a figure that is at most 1."""
    run, target = evidence.run, evidence.table("target")
    if not evidence.long or not target or not run.evaluated:
        return None
    first, value = run.figures[0], float(target["value"])
    if abs(run.best - first) >= FAR * abs(value - first) or run.first_at(value):
        return None
    return Finding(
        "target far away",
        "the run has hardly begun its way to the target",
        {"target": f"{target['metric']} {value:.4g}", "first": f"{first:.4g}", "best": f"{run.best:.4g}"},
        "a target.value in the unit of the metric (0.95 for 95%), or one that is nearer",
    )


DIAGNOSES: Sequence[Callable[[Evidence], Finding | None]] = (
    diverged,
    growing_states,
    alpha,
    drift,
    clip,
    compression,
    compressed_broadcasts,
    dominance,
    unseen,
    plateau,
    far_target,
)


def _ends(values: Sequence[float]) -> str:
    return f"{values[0]:.3g} -> {values[-1]:.3g}"


def _participation(evidence: Evidence) -> str:
    active = sum(len(line["active"]) for line in evidence.lines) / len(evidence.lines)
    return f"{active:.3g} of {evidence.devices} devices a round"
