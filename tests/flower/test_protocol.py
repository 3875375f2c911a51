"""The protocol in one process: deployment = simulation, and nothing that is lost, late, killed or forged breaks it."""

import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import feddyn
from feddyn.data.stored import Stored
from feddyn.flower import desk as desks
from feddyn.flower import ledger as ledgers
from feddyn.flower.judge import Judge
from feddyn.flower.letters import Letter, ticket
from feddyn.flower.membership import admit
from feddyn.models.flat import FlatModel
from feddyn.records.files import sync_directory
from tests.algorithms.test_rounds import ALL
from tests.conftest import make_logistic
from tests.engine.cases import cases
from tests.flower.town import Town, unreliable
from tests.runs.test_power import Disk
from tests.runs.test_resume import Crash, Faults

SGD = feddyn.SGD(0.1, epochs=1, batch_size=8, weight_decay=1e-3)


def town(root: Path, population: Stored, model: nn.Module, method: Any = None, **more: Any) -> Town:
    return Town(root, population, method or feddyn.FedDyn(0.1), SGD, model, **more)


def events(root: Path, kind: str) -> list[dict[str, Any]]:
    import json

    lines = (root / "server" / "events.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == kind]


@pytest.mark.parametrize("method", ALL)
def test_the_same_bits_as_a_simulation(
    method: feddyn.Algorithm, unbalanced: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """Six of ten sites a round; every figure of the server's model, and every bit of it."""
    common: dict[str, Any] = {"participation": 6, "rounds": 4, "seed": 3}
    simulated = feddyn.simulate(logistic, unbalanced, method, SGD, stack=1, **common)
    judge = Judge(FlatModel(logistic), unbalanced, SGD.weight_decay)
    deployed = town(tmp_path, unbalanced, logistic, method)
    deployed.require_held(deployed.run(judge, **common))
    record = feddyn.load(tmp_path / "server")
    assert torch.equal(record.models["server"], simulated.models["server"])
    if "active" in record.models:
        assert torch.equal(record.models["active"], simulated.models["active"])
    for line, other in zip(record.history, simulated.history, strict=True):
        for name in ("round", "transmitted", "bytes_up", "bytes_down", "gradients", "active", "norms"):
            assert line[name] == other[name], name
        assert line["models"]["server"] == other["models"]["server"]


@pytest.mark.parametrize("name", ["random layers", "images"])
def test_the_same_bits_with_random_layers_and_augmented_images(name: str, tmp_path: Path) -> None:
    case = {**cases()[name], "stack": 1}
    simulated = feddyn.simulate(**case)
    deployed = Town(tmp_path, case["population"], case["algorithm"], case["solver"], case["model"])
    deployed.run(rounds=case["rounds"], participation=case["participation"], seed=case.get("seed", 0))
    assert torch.equal(deployed.theta(), simulated.models["server"])


@pytest.mark.parametrize(("method", "seed"), [(feddyn.FedDyn(0.1), 0), (feddyn.FedDyn(0.1), 1), (feddyn.Scaffold(), 2)])
def test_lost_letters_and_lost_answers(
    method: feddyn.Algorithm, seed: int, few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """15% of the letters and 30% of the answers are lost; rounds with fewer than two uploads are repeated."""
    deployed = town(tmp_path, few, logistic, method, fate=unreliable(seed, 0.15, 0.3))
    server = deployed.server(rounds=12, least=2)
    admit(server.desk)
    for _ in range(12):
        server.round()
        deployed.require_held(server)
    server.settle()
    deployed.require_held(server)
    history = server.journal.history
    assert all(len(line["active"]) >= 2 for line in history)
    assert any(line["late"] for line in history)
    assert any(line["lost"] for line in history)
    assert any(line["attempts"] > 1 for line in history)
    assert history[-1]["wasted"] > 0


def crashing(town: Town, at: int, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """The call with this number that changes a file is the last of the process that makes it: of a site, which is
    started again, or of the server, which raises `Crash`."""
    faults, deliver = Faults(monkeypatch, at), town.deliver

    def delivered(name: str, letter: Letter) -> Letter | None:
        try:
            return deliver(name, letter)
        except Crash:
            faults.at = None
            return None

    monkeypatch.setattr(town, "deliver", delivered)
    return faults


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # who crashes closes no files
@pytest.mark.parametrize(("power", "step"), [(True, 1), (False, 3)])
def test_a_crash_at_every_call_that_changes_a_file(
    power: bool, step: int, logistic: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the server or of a site: the federation goes on to the same bits, since both sites are waited for. Where the
    power fails, everybody crashes, and what was not synced is lost."""
    two = make_logistic([10, 24])
    rules: dict[str, Any] = {"rounds": 2, "least": 2}
    undisturbed = town(tmp_path / "undisturbed", two, logistic)
    with monkeypatch.context() as patch:
        faults = crashing(undisturbed, 10**9, patch)
        undisturbed.run(**rules)
    assert faults.calls > 90
    survived = 0
    for at in range(1, faults.calls + 1, step):
        disturbed = town(tmp_path / str(at), two, logistic)
        with monkeypatch.context() as patch:
            disk = Disk(patch, disturbed.root)
            if power:
                crashing(disturbed, at, patch)
            else:
                Faults(patch, at)
            with suppress(Crash):
                disturbed.run(**rules)
                survived += 1
        if not power:
            disk.fail()
        last = disturbed.run(**rules)
        disturbed.require_held(last)
        assert torch.equal(disturbed.theta(), undisturbed.theta()), f"call {at} of {faults.calls}"
        assert len(feddyn.load(disturbed.root / "server").history) == 2
        shutil.rmtree(disturbed.root)
    assert (20 < survived < faults.calls - 20) if power else survived == 0  # processes of both kinds crashed, or all


def hostile(kind: str, first: dict[str, Letter]) -> Callable[[str, Letter], Letter]:
    """A site that answers as it should until it is asked to train, and then not."""

    def forge(name: str, answer: Letter) -> Letter:
        if name != "site-1" or not answer.vectors:
            return answer
        words, vectors = dict(answer.words), {key: value.copy() for key, value in answer.vectors.items()}
        theta = vectors["theta"]
        if kind == "nan":
            theta[3] = np.nan
        elif kind == "infinite":
            theta[0] = np.inf
        elif kind == "huge":
            theta[0] = 1e300
        elif kind == "norm":
            theta *= 1e4
        elif kind == "shape":
            vectors["theta"] = theta[:-1]
        elif kind == "matrix":
            vectors["theta"] = theta[None]
        elif kind == "type":
            vectors["theta"] = theta.astype(np.float32)
        elif kind == "text":
            vectors["theta"] = theta.astype("U8")
        elif kind == "more":
            vectors["more"] = theta
        elif kind == "less":
            vectors = {}
        elif kind == "replay":
            return first.setdefault(name, answer) if first else first.setdefault(name, answer)._replace(kind="failed")
        elif kind == "ticket":
            words["ticket"] = ticket(1, 1)
        elif kind == "no ticket":
            words.pop("ticket")
        elif kind == "path":
            words["ticket"] = "../../etc/passwd"
        elif kind == "gradients":
            words["gradients"] = -1
        elif kind == "words":
            return Letter("failed", {"why": "\x1b[2J" + "x" * 1000})
        return Letter(answer.kind, words, vectors)

    return forge


KINDS = ["nan", "infinite", "huge", "norm", "shape", "matrix", "type", "text", "more", "less", "replay", "ticket"]
KINDS += ["no ticket", "path", "gradients", "words"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_upload_is_left_out(
    kind: str, few: Stored, logistic: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is the one that the others make alone, and the site goes on from what was counted of it."""
    monkeypatch.setattr(desks, "AGAIN", 0)  # nobody is left alone
    without = town(tmp_path / "without", few, logistic)
    without.fate = lambda name, letter: "lost" if name == "site-1" and letter.kind == "train" else "answered"
    without.run(rounds=3)
    bad = town(tmp_path / "bad", few, logistic, forge=hostile(kind, {}))
    server = bad.run(rounds=3)
    bad.require_held(server)
    assert torch.equal(bad.theta(), without.theta())
    assert [line["refused"] for line in server.journal.history] == [[1]] * 3
    whys = [event["why"] for kind in ("refused", "failed") for event in events(tmp_path / "bad", kind)]
    assert len(whys) == 3
    told = [letter.words["refused"] for name, letter, _ in bad.seen if name == "site-1" and letter.kind == "train"]
    assert told[0] == ""
    assert all(0 < len(word) <= 32 and word.isprintable() for word in told[1:])
    assert all(any(why.startswith(word) for why in whys) for word in told[1:])


def test_of_two_uploads_the_huge_one_is_refused_and_alone_one_is_compared_with_the_rounds_before(
    few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    deployed = town(tmp_path, few, logistic, forge=hostile("norm", {}))
    deployed.open = ["site-0", "site-1"]
    server = deployed.server(rounds=3)
    admit(server.desk)
    server.round()
    deployed.open = ["site-1"]
    server.rules = replace(server.rules, least=1)
    gathered = server._gather(["site-1"])
    assert server.journal.history[0]["active"] == [0]
    assert gathered.refused == {"site-1": "norm beyond the limit"}


def test_sites_join_at_any_time(unbalanced: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """h <- h N/N'. A site that could not join is asked again some rounds later."""
    deployed = town(tmp_path, unbalanced, logistic, open=["site-2", "site-10", "site-0"])
    deployed.devices["site-10"] = deployed.devices.pop("site-9")
    server = deployed.server(rounds=20)
    admit(server.desk)
    assert list(server.desk.ledger.sites) == ["site-0", "site-2", "site-10"]
    for round in range(1, 13):
        if round == 3:
            deployed.open += ["site-7", "site-4"]
            deployed.fate = lambda name, _: "lost" if name == "site-4" else "answered"
        if round == 5:
            deployed.fate = lambda *_: "answered"
        if round == 8:
            deployed.open.remove("site-0")
        server.desk.next_turn()
        admit(server.desk)
        server.round()
        deployed.require_held(server)
        joined = len(server.desk.ledger.sites)
        assert joined == (3 if round < 3 else 4 if round < 8 else 5)
    assert server.journal.history[-1]["offline"] == [0]
    assert {name: site.number for name, site in server.desk.ledger.sites.items()} == {
        "site-0": 0,
        "site-2": 1,
        "site-10": 2,
        "site-7": 3,
        "site-4": 4,
    }


def test_another_method_a_bad_name_and_a_second_node_of_a_name_are_not_admitted(
    few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    deployed = town(tmp_path, few, logistic, open=["site-0", "site-1", "site-2", "../x", "", "twin", "twin", "a b"])
    other = town(tmp_path, few, logistic, feddyn.FedDyn(0.2))
    deployed.devices["site-2"] = other.devices["site-2"]
    deployed.run(rounds=2, sites=2)
    record = feddyn.load(tmp_path / "server")
    assert [line["active"] for line in record.history] == [[0, 1]] * 2
    assert events(tmp_path, "not admitted") == [
        {**events(tmp_path, "not admitted")[0], "site": "site-2", "why": "another method or model"}
    ]
    assert {event["site"] for event in events(tmp_path, "bad name")} == {"'../x'", "''", "'a b'"}
    assert {event["site"] for event in events(tmp_path, "two nodes of one name")} == {"twin"}


def test_a_lost_disk_is_a_mismatch_until_it_is_restored(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=20)
    admit(server.desk)
    server.round()
    server.settle()
    (tmp_path / "disk-1").rename(tmp_path / "backup")
    for _ in range(3):
        server.desk.next_turn()
        server.round()
    assert not any((tmp_path / "disk-1").rglob("*.safetensors"))
    assert [line["active"] for line in server.journal.history] == [[0, 1, 2], [0, 2], [0, 2], [0, 2]]
    assert server.journal.history[1]["refused"] == [1]  # then it is left alone for a while
    (tmp_path / "backup").rename(tmp_path / "disk-1")
    for _ in range(4):
        server.desk.next_turn()
        server.round()
    assert server.journal.history[-1]["active"] == [0, 1, 2]
    deployed.require_held(server)


@pytest.mark.parametrize("method", ALL)
def test_a_resync_makes_up_for_a_lost_disk_and_strikes_off_who_left(
    method: feddyn.Algorithm, unbalanced: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    deployed = town(tmp_path, unbalanced, logistic, method)
    server = deployed.server(rounds=20)
    admit(server.desk)
    for _ in range(3):
        server.round()
    server.settle()
    shutil.rmtree(tmp_path / "disk-4")
    deployed.open.remove("site-6")
    before = server.desk.ledger
    with pytest.raises(feddyn.FeddynError, match="site-6 cannot be reached"):
        server.resync()
    with pytest.raises(feddyn.InputError, match="site-5 is online, and would join again at once: unregister its key"):
        server.resync(without=["site-5"])
    assert server.desk.ledger == before
    server.resync(without=["site-6"])
    assert "site-6" not in server.desk.ledger.sites
    deployed.require_held(server)
    for _ in range(2):
        server.round()
        deployed.require_held(server)
    assert len(server.journal.history[-1]["active"]) == 9
    deployed.open.append("site-6")
    admit(server.desk)
    server.round()
    deployed.require_held(server)
    assert len(server.journal.history[-1]["active"]) == 10
    assert server.desk.ledger.sites["site-6"].number == 10  # its rounds of before are those of number 6
    deployed.open.remove("site-6")
    server.resync(without=["site-6"])
    deployed.open.append("site-6")
    admit(server.desk)
    assert server.desk.ledger.sites["site-6"].number == 11  # and those with the highest number are of number 10
    with pytest.raises(feddyn.InputError, match="site-99 is no site"):
        server.resync(without=["site-99"])


@pytest.mark.parametrize(("number", "why"), [(float("nan"), "not finite"), (1e300, "too large")])
def test_a_state_that_is_no_state_is_not_resynced(
    unbalanced: Stored, logistic: nn.Module, tmp_path: Path, number: float, why: str
) -> None:
    deployed = town(tmp_path, unbalanced, logistic, feddyn.FedDyn(0.1))
    server = deployed.server(rounds=20)
    admit(server.desk)
    server.round()
    before = server.desk.ledger

    def forged(name: str, answer: Letter) -> Letter:
        return (
            answer._replace(vectors={key: v * number for key, v in answer.vectors.items()})
            if name == "site-3"
            else answer
        )

    deployed.forge = forged
    with pytest.raises(feddyn.FeddynError, match=f"resync: site-3 did not give its state .{why}.; nothing is changed"):
        server.resync()
    assert server.desk.ledger == before


def test_a_server_that_is_restored_from_its_last_backup_finds_its_sites(
    few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """One round back: sites still hold what the round before was computed from; two back they do not."""
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=20)
    admit(server.desk)
    backups = []
    for _ in range(4):
        server.round()
        backups.append((tmp_path / "server" / ledgers.FILE).read_bytes())
    server.settle()
    server.journal.record.release()
    (tmp_path / "server" / ledgers.FILE).write_bytes(backups[-2])
    again = deployed.server(rounds=20)
    assert len(again.journal.history) == 3
    deployed.require_held(again)
    again.round()
    deployed.require_held(again)
    assert again.journal.history[-1]["active"] == [0, 1, 2]
    again.journal.record.release()
    (tmp_path / "server" / ledgers.FILE).write_bytes(backups[0])
    older = deployed.server(rounds=20)
    assert older._gather(["site-0", "site-1"]).refused == {"site-0": "mismatch", "site-1": "mismatch"}


def test_a_letter_that_was_overtaken_changes_nothing(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """An orphan of a killed process trains long after its round: what was counted since stays."""
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=20)
    admit(server.desk)
    server.round()
    server.round()
    overtaken = next(letter for name, letter, _ in deployed.seen if name == "site-1" and letter.kind == "train")
    assert deployed.deliver("site-1", overtaken) is not None
    deployed.require_held(server)
    server.round()
    deployed.require_held(server)
    assert server.journal.history[-1]["active"] == [0, 1, 2]


def test_what_a_site_keeps_is_its_owners_alone_and_not_much(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    deployed = town(tmp_path, few, logistic)
    deployed.run(rounds=6)
    kept = list((tmp_path / "disk-0").rglob("*"))
    for path in [tmp_path / "disk-0", *kept]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert len([path for path in kept if path.is_file()]) == 2  # the state, and what it was computed from


def test_a_federation_goes_on_with_more_rounds_and_only_one_server_at_a_time(
    few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    straight = town(tmp_path / "straight", few, logistic)
    straight.run(rounds=5)
    deployed = town(tmp_path / "in two", few, logistic)
    deployed.run(rounds=2)
    server = deployed.server(rounds=5)
    with pytest.raises(feddyn.InputError, match="in use by a living process"):
        deployed.server(rounds=5)
    server.run()
    server.journal.close(feddyn.load(tmp_path / "straight" / "server").status)
    assert torch.equal(deployed.theta(), straight.theta())
    assert deployed.run(rounds=5).journal.history == server.journal.history
    replaced = town(tmp_path / "in two", few, logistic, feddyn.FedDyn(0.2))
    with pytest.raises(feddyn.InputError, match="another method or model"):
        replaced.server(rounds=9)


def test_damage_is_noticed(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    deployed = town(tmp_path, few, logistic)
    server = deployed.run(rounds=2)
    ledger, file = server.desk.ledger, tmp_path / "server" / ledgers.FILE
    state = tmp_path / "disk-0" / ledger.federation / "site-0" / f"{ledger.sites['site-0'].counted}.safetensors"
    whole_state = state.read_bytes()
    for path in (state, file):
        whole = path.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", whole[:-4] + b"abcd"):
            path.write_bytes(damaged)
            if path == file:
                with pytest.raises(feddyn.FeddynError, match="is damaged"):
                    ledgers.read(tmp_path / "server")
        path.write_bytes(whole)
    assert ledgers.read(tmp_path / "server") is not None
    again = deployed.server(rounds=3)
    for damaged in (whole_state[:-8], whole_state[:-8] + bytes(8), whole_state[:-1] + bytes([whole_state[-1] ^ 1])):
        state.write_bytes(damaged)  # zeros, and one bit, too
        assert again._gather(["site-0"]).refused == {"site-0": "mismatch"}
    state.write_bytes(whole_state)
    assert again._gather(["site-0"]).refused == {}


def test_a_site_that_fails_says_so_with_a_fixed_word(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """Neither the text of an exception nor a path reaches the server."""
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=3)
    admit(server.desk)

    def solve(problem: feddyn.Problem, work: feddyn.Work) -> feddyn.Solution:
        raise ValueError("patient 17 in /data/patients.csv")

    deployed.solver = solve
    assert server._gather(["site-0"]).refused == {"site-0": "error"}
    deployed.solver = lambda problem, work: feddyn.Solution(problem.start * float("nan"))
    assert server._gather(["site-0"]).refused == {"site-0": "diverged"}


def test_a_site_refuses_names_that_lead_out_of_its_directory(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    device = town(tmp_path, few, logistic).devices["site-0"]
    good = {"federation": "f", "site": "s", "ticket": ticket(1, 1)}
    theta = {"theta": np.zeros(15)}
    for key, bad in (("federation", "../x"), ("site", "a/b"), ("site", ".."), ("ticket", "../../t"), ("site", 3)):
        assert device.answer(Letter("hello", {**good, key: bad}, theta)) == Letter("failed", {"why": "bad letter"})
    assert not (tmp_path / "disk-0").exists()
    assert device.answer(Letter("hello", good, theta)).kind == "done"
    sync_directory(tmp_path / "disk-0")


def test_a_site_that_fails_again_and_again_is_left_alone(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """So that the others do not train in vain where a round needs all; and it is asked again, later and later."""
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=40)
    admit(server.desk)
    failed = Letter("failed", {"why": "error"})
    deployed.forge = lambda name, answer: failed if name == "site-1" and answer.vectors else answer
    for _ in range(20):
        server.desk.next_turn()
        server.round()
    asked = [round for round, line in enumerate(server.journal.history, 1) if line["refused"]]
    assert asked == [1, 2, 7, 17]
    deployed.forge = lambda name, answer: answer
    for _ in range(20):
        server.desk.next_turn()
        server.round()
    assert server.journal.history[-1]["active"] == [0, 1, 2]
    deployed.require_held(server)
    (event, *_) = events(tmp_path, "failed")
    assert event["why"] == "error: the site's own log says more"


def test_attempts_that_come_to_nothing_leave_nothing(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    """At sites that answer in time, while another one is late every time; and at the late one."""
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=40)
    admit(server.desk)
    deployed.fate = lambda name, letter: "late" if name == "site-1" and letter.kind == "train" else "answered"
    for _ in range(12):
        server._gather(["site-0", "site-1", "site-2"])
    for name in ("site-0", "site-1"):
        assert len(list((tmp_path / f"disk-{name[-1]}").rglob("*.safetensors"))) == 2  # what was counted, and the last
    deployed.fate = lambda name, letter: "answered"
    server.round()
    deployed.require_held(server)


def test_a_site_with_another_version_of_feddyn_is_noted(
    few: Stored, logistic: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feddyn.flower.device.__version__", "0.9.9")
    town(tmp_path, few, logistic).run(rounds=1)
    noted = {(event["site"], event["feddyn"]) for event in events(tmp_path, "another version")}
    assert noted == {(f"site-{k}", "0.9.9") for k in range(3)}
    town(tmp_path / "same", few, logistic).run(rounds=1)


def test_a_federation_goes_on_with_fewer_sites_than_it_began_with(
    few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """`sites` must have joined before the first round; one that is struck off later is not waited for."""
    deployed = town(tmp_path, few, logistic)
    deployed.run(rounds=2)
    deployed.open.remove("site-2")
    server = deployed.server(rounds=4, sites=3)
    server.resync(without=["site-2"])
    server.run()
    assert [line["active"] for line in server.journal.history[2:]] == [[0, 1], [0, 1]]


def test_a_site_that_was_left_alone_is_asked_at_once_when_it_comes_back(
    few: Stored, logistic: nn.Module, tmp_path: Path
) -> None:
    """Whoever restored its disk has started it again. Until then the events say who is left alone, and for how long."""
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=90)
    admit(server.desk)

    def rounds(count: int) -> None:
        for _ in range(count):
            server.desk.next_turn()
            server.round()

    rounds(1)
    (tmp_path / "disk-1").rename(tmp_path / "backup")
    rounds(60)
    assert [event["attempts"] for event in events(tmp_path, "left alone")] == [5, 10, 20, 20, 20]
    assert server.desk.left_alone() == ["site-1"]
    (tmp_path / "backup").rename(tmp_path / "disk-1")
    deployed.open.remove("site-1")
    rounds(1)
    deployed.open.append("site-1")
    rounds(1)
    assert server.journal.history[-1]["active"] == [0, 1, 2]
    deployed.require_held(server)


def test_who_waits_for_sites_that_are_left_alone_says_so(few: Stored, logistic: nn.Module, tmp_path: Path) -> None:
    deployed = town(tmp_path, few, logistic)
    server = deployed.server(rounds=1, least=3)
    admit(server.desk)
    failed = Letter("failed", {"why": "error"})
    deployed.forge = lambda name, answer: failed if server.desk._turn < 4 and answer.vectors else answer
    server.round()
    assert server.journal.history[-1]["active"] == [0, 1, 2]
    assert [event["left_alone"] for event in events(tmp_path, "waiting for sites")] == [["site-0", "site-1", "site-2"]]


def test_rules_that_no_round_could_follow_are_refused() -> None:
    feddyn.flower.Rules(rounds=2, least=2, participation=[[0, 1], [1, 2], [0]])  # the third is not run
    for more in ({"participation": 2}, {"participation": [[0, 1, 2], [0, 1]]}):
        with pytest.raises(
            feddyn.InputError, match="least is 3, but participation lets 2 of the sites train in a round"
        ):
            feddyn.flower.Rules(rounds=2, least=3, **more)
