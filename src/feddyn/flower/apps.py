"""The two apps that Flower runs, made of the objects that `feddyn.simulate` takes."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from feddyn.errors import InputError
from feddyn.flower.device import Device, Worker
from feddyn.flower.letters import BadLetterError, Letter
from feddyn.flower.wire import KINDS, WHO, GridPost, answered, letter_in
from feddyn.records.layout import Setting, Status
from feddyn.records.lock import InUseError, in_use

if TYPE_CHECKING:
    from torch import nn

    from feddyn.algorithms.base import Algorithm
    from feddyn.data.population import Array, Population
    from feddyn.flower.journal import Journal
    from feddyn.flower.rules import Rules
    from feddyn.metrics import Metric
    from feddyn.models.flat import FlatModel, Loss
    from feddyn.solvers.base import Solve
    from feddyn.wire.base import Compressor

T = TypeVar("T")
Config: TypeAlias = Mapping[str, Any]
"""A node's configuration, as `flower-supernode --node-config` gives it."""
STATE_DIR = "FEDDYN_STATE_DIR"
"""The environment variable that says where sites keep their states, if their configuration does not."""
OVERRIDES = ("rounds", "seed", "sites", "least", "deadline", "welcome", "poll", "norm_limit")
"""Terms that a run's configuration may change, with - for _; 0 leaves them as they are."""


class Service(NamedTuple):
    """What a server needs: its method and initial model, its terms, what it evaluates models on (None: nothing), what
    its record gets (the setting, what the model's inputs are, code that the setting names), and how uploads and
    broadcasts are compressed (None: not at all)."""

    algorithm: "Algorithm"
    model: "nn.Module"
    rules: "Rules"
    population: "Population | None"
    loss: "Loss"
    weight_decay: float
    metrics: "Sequence[Metric]"
    every: int
    setting: Setting
    inputs: Mapping[str, Any] = {}
    code: Mapping[str, bytes] = {}
    uplink: "Compressor | None" = None
    downlink: "Compressor | None" = None


def server_app(
    algorithm: "Algorithm",
    model: "nn.Module",
    rules: "Rules",
    *,
    test: "tuple[Array, Array] | Population | None" = None,
    loss: "Loss | None" = None,
    metrics: "Sequence[Metric]" = (),
    every: int = 1,
    uplink: "Compressor | None" = None,
    downlink: "Compressor | None" = None,
) -> ServerApp:
    """The server's app: trains `model` (from its parameters on) with a method, on the sites of a federation.

    test: samples and targets that the server's model is evaluated on, every so many rounds (None: it is not).
    uplink, downlink: how uploads and broadcasts are compressed, as in `feddyn.simulate`; the sites' must be the same.
    The run's configuration must say where the federation is kept: `out`, an absolute path.
    """

    def make() -> Service:
        from torch.nn.functional import cross_entropy

        from feddyn.data.population import Population
        from feddyn.identity import describe, evaluation_table, table
        from feddyn.metrics import Evaluation

        chosen = loss or cross_entropy
        held = one_device(*test, test=True) if isinstance(test, tuple) else test
        assert held is None or isinstance(held, Population)
        needs = ["model", *(["loss"] if chosen is not cross_entropy else []), *(["evaluation"] if metrics else [])]
        setting: Setting = {"needs": needs, "seed": rules.seed, "algorithm": table(algorithm)}
        evaluation = evaluation_table(Evaluation(every, ("server",), metrics))
        setting |= {"model": {"memory": True, **describe(model)}, "evaluation": evaluation}
        setting |= {"loss": describe(chosen)} if "loss" in needs else {}
        setting |= {name: table(how) for name, how in (("uplink", uplink), ("downlink", downlink)) if how}
        service = Service(algorithm, model, rules, held, chosen, 0.0, metrics, every, setting)
        return service._replace(uplink=uplink, downlink=downlink)

    return serving(make)


def client_app(
    algorithm: "Algorithm",
    solver: "Solve",
    model: "nn.Module",
    data: "Callable[[Config], tuple[Array, Array] | Population]",
    *,
    loss: "Loss | None" = None,
    uplink: "Compressor | None" = None,
    downlink: "Compressor | None" = None,
) -> ClientApp:
    """A site's app: `data` is given the node's configuration and gives the site's samples and targets, or a population
    of one device. The parameters of `model` do not matter: the server's are sent. uplink, downlink: the server's."""

    def make(config: Config) -> Worker:
        from torch.nn.functional import cross_entropy

        from feddyn.data.population import Population
        from feddyn.flower.worker import SiteWorker

        def load() -> Population:
            found = data(config)
            return found if isinstance(found, Population) else one_device(*found)

        return SiteWorker(algorithm, solver, model, loss or cross_entropy, load, uplink, downlink)

    return working(make)


def one_device(x: "Array", y: "Array", *, test: bool = False) -> "Population":
    """Samples and targets as a population of one device, which with `test` are its test set too."""
    import torch

    from feddyn.data.population import Population

    owner = torch.zeros(len(torch.as_tensor(y)), dtype=torch.int64)
    return Population.from_arrays(x, y, owner, test=(x, y) if test else None)


def working(make: Callable[[Config], Worker]) -> ClientApp:
    """A site's app that makes what it computes with when it is needed, since importing torch takes seconds."""
    app = ClientApp()

    def answer(message: Message, context: Context) -> Message:
        config = dict(context.node_config)
        try:
            letter = letter_in(message)
        except BadLetterError:
            return answered(message, Letter("failed", {"why": "bad letter"}))
        if letter.kind == WHO:
            return answered(message, Letter("done", {"partition": int(config.get("partition-id", -1))}))
        root = Path(str(config.get("state-dir") or os.environ.get(STATE_DIR) or _home()))
        return answered(message, Device(root, lambda: make(config)).answer(letter))

    app.train()(answer)
    for kind in KINDS:
        app.query(kind)(answer)
    return app


def _home() -> Path:
    return Path.home() / ".local" / "state" / "feddyn"


def serving(make: Callable[[], Service]) -> ServerApp:
    """A server's app that makes what it needs when it is run."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        serve(grid, dict(context.run_config), make)

    return app


def _patiently(make: Callable[[], T], rules: "Rules") -> T:
    """Make what a process may still hold: an app whose SuperLink was killed notices it only after a while."""
    end = time.monotonic() + rules.welcome
    while True:
        try:
            return make()
        except InUseError:
            if time.monotonic() > end:
                raise
        time.sleep(rules.poll)


def _journal(out: Path, service: Service, model: "FlatModel", rules: "Rules") -> "Journal":
    from feddyn.flower.journal import Journal
    from feddyn.flower.judge import Judge

    judge = Judge(model, service.population, service.weight_decay, service.metrics, service.every)
    setting = {**service.setting, "deployment": {"engine": "flower"}}
    return _patiently(lambda: Journal(out, setting, rules.rounds, judge, service.inputs, service.code), rules)


def serve(grid: Grid, config: Config, make: Callable[[], Service]) -> None:
    """One session of a server: it goes on with the federation in `config["out"]`, or begins it there."""
    from feddyn.flower.arithmetic import Arithmetic
    from feddyn.flower.journal import note
    from feddyn.flower.ledger import EVENTS, FILE
    from feddyn.flower.server import Server
    from feddyn.models.flat import FlatModel
    from feddyn.records.lines import append_lines

    out = Path(str(config.get("out") or ""))
    if not out.is_absolute():
        raise InputError(f"the run's configuration must say where the federation is kept: out='/a/path', not {out}")
    without = [name.strip() for name in str(config.get("without", "")).split(",") if name.strip()]
    try:
        if without and not config.get("resync"):
            raise InputError("without strikes sites off in a resync: say 'resync=true without=\"...\"'")
        service = make()
        known = {name: config.get(name.replace("_", "-"), 0) for name in OVERRIDES}
        rules = replace(service.rules, **{name: value for name, value in known.items() if value})
        model = FlatModel(service.model, service.loss)
        arithmetic = Arithmetic(service.algorithm, model, service.uplink, service.downlink)
        journal = _journal(out, service, model, rules)
    except Exception as error:
        if (out / FILE).exists():
            with suppress(OSError):  # a disk that is full is not why
                if not in_use(out):
                    append_lines(out / EVENTS, [])  # without one that a crash cut off
                note(out, "not started", why=str(error))
        raise
    status, message = Status.INTERRUPTED, ""
    try:
        server = Server(arithmetic, rules, GridPost(grid, rules.poll, rules.welcome), journal)
        if config.get("resync"):
            server.resync(without)
        server.run()
        status = Status.FINISHED
    except Exception as error:
        message = str(error)
        journal.event("stopped", why=message)
        raise
    finally:
        journal.close(status, message)
