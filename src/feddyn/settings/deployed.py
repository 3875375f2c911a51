"""What a deployment computes with, from the settings file that `feddyn run` takes."""

from collections.abc import Callable
from pathlib import Path

import torch

from feddyn.data.population import Population
from feddyn.errors import InputError
from feddyn.flower.apps import Config, Service
from feddyn.flower.arithmetic import uplink_of
from feddyn.flower.rules import Rules
from feddyn.flower.worker import SiteWorker
from feddyn.models.flat import FlatModel
from feddyn.runs.parts import describe_inputs
from feddyn.runs.plan import Plan
from feddyn.settings.building import plans
from feddyn.settings.documents import Document, read

SIMULATED = ("rounds", "participation", "stack", "target", "patience")
"""What a record of a deployment does not say: it may change from session to session, or has no meaning there."""


def service(file: Path) -> Service:
    """What the server of a settings file needs; it evaluates models as a simulation does, on the file's data."""
    plan = deployable(file)
    setting = {name: value for name, value in plan.setting().items() if name not in SIMULATED}
    setting["evaluation"] = {**setting["evaluation"], "models": ["server"]}
    return Service(
        plan.algorithm,
        plan.model,
        rules(plan),
        plan.population,
        plan.loss,
        plan.local_solver.weight_decay,
        plan.evaluation.metrics,
        plan.evaluation.every,
        setting,
        inputs=describe_inputs(plan.population, next(plan.model.parameters()).dtype),
        code=plan.code,
        uplink=plan.uplink,
        downlink=plan.downlink,
    )


def rules(plan: Plan, least: int = 1) -> Rules:
    """The terms of a plan's deployment, which refuse what no round could follow."""
    return Rules(rounds=plan.rounds, participation=plan.participation, seed=plan.seed, least=least)


def worker(file: Path, data: Callable[[Config], Population] | None, config: Config) -> SiteWorker:
    """What a site of a settings file computes with; `data` loads its samples (None: those of the file's device)."""
    plan = deployable(file)

    def load() -> Population:
        return data(config) if data else alone(plan.population, config.get("partition-id"))

    return SiteWorker(plan.algorithm, plan.solver, plan.model, plan.loss, load, plan.uplink, plan.downlink)


def deployable(file: Path, fetch: Callable[[str], None] | None = None) -> Plan:
    """The one run of a settings file; `fetch` is called with the name of its data before that is read."""
    document = read(file)
    _require_reachable(document, file)
    found = plans(document, folder=file.parent, fetch=fetch)
    if len(found) != 1:
        raise InputError(f"{file} compares {len(found)} methods: a deployment runs one, so write an [algorithm] table")
    plan = found[0].plan
    if plan.links is not None:
        raise InputError(f"{file} has a [links] table, which is simulated and not deployed: leave it out")
    if plan.uplink is not None:
        model = FlatModel(plan.model, plan.loss)
        uplink_of(plan.uplink, plan.algorithm, model.theta, model.sizes)  # which refuses what cannot be sent
    return plan


def _require_reachable(document: Document, file: Path) -> None:
    """Flower carries code to the sites, but no data."""
    population = document.get("population")
    if not isinstance(population, dict) or population.get("source") != "table":
        return
    table = str(population.get("file", ""))
    if table and not Path(table).expanduser().is_absolute():
        raise InputError(
            f"{file} takes its rows from {table}, which Flower does not carry to the sites: read each site's own by a "
            'function, population.source = "my_data.py:load", or give an absolute path at which the server and every '
            "site have the whole table"
        )


def alone(population: Population, device: object) -> Population:
    """One device of a population, as a population."""
    if not isinstance(device, int) or not 0 <= device < population.devices:
        raise InputError(
            f"the node's configuration must say which device of the setting this site is: partition-id=0 to "
            f"{population.devices - 1}, not {device!r}"
        )
    x, y = population.samples(device)
    return Population.from_arrays(x, y, torch.zeros(len(y), dtype=torch.int64), transform=population.transform)
