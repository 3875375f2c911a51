"""What `feddyn deploy` writes and shows, without starting a deployment."""

import os
import shutil
import stat
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

import feddyn
from feddyn.cli import cli
from feddyn.data.stored import Stored
from tests.conftest import make_logistic
from tests.flower.test_apps import SETTING
from tests.flower.town import Town

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'feddyn[flower]'")

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from torch import nn

from feddyn.deploy import demo as stage
from feddyn.deploy import warm
from feddyn.deploy.files import init
from feddyn.deploy.status import status
from feddyn.flower import ledger as ledgers
from feddyn.flower.apps import Service, serve
from feddyn.flower.rules import Rules
from feddyn.records.layout import Status

SITES = ["clinic-a", "clinic-b"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("deployment") / "fed"
    setting = directory.parent / "setting.toml"
    setting.write_text(SETTING)
    words = ["deploy", "init", str(setting), str(directory), "--sites", ",".join(SITES), "--address", "fed.example.org"]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return directory


def test_everything_is_written_and_secrets_are_their_owners(place: Path) -> None:
    app = tomllib.loads((place / "app" / "pyproject.toml").read_text())
    assert app["tool"]["flwr"]["app"]["config"]["sites"] == 2
    assert (place / "app" / "feddyn_app" / "setting.toml").read_text() == SETTING
    secrets = [*place.rglob("*.key")]
    assert len(secrets) == 2 + len(SITES)
    for secret in secrets:
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    for name in SITES:
        assert (place / "server" / "sites" / f"{name}.pub").read_text().startswith("ecdsa-sha2-nistp384 ")
        assert "--superlink fed.example.org:8443" in (place / "sites" / name / "supernode.sh").read_text()
        assert not list((place / "sites" / name).glob("ca.key"))


def test_the_certificate_is_for_the_address_and_signed(place: Path) -> None:
    ca, server = (
        x509.load_pem_x509_certificate((place / "server" / f"{n}.crt").read_bytes()) for n in ("ca", "server")
    )
    server.verify_directly_issued_by(ca)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["fed.example.org", "localhost"]
    assert isinstance(server.public_key(), ec.EllipticCurvePublicKey)


def test_scripts_are_shell(place: Path) -> None:
    scripts = list(place.rglob("*.sh"))
    assert len(scripts) == 8 + 2 * len(SITES)
    for script in scripts:
        subprocess.run(["sh", "-n", str(script)], check=True)


def asked(
    place: Path, script: str, answers: list[str], *more: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """A script of the server's with a `flwr` that gives these answers, always with 0 as Flower's; and what it heard."""
    fake = place / "bin"
    fake.mkdir()
    for number, answer in enumerate(answers, 1):
        (fake / f"answer.{number}").write_text(answer)
    (fake / "flwr").write_text(f'#!/bin/sh\necho "$@" >>{fake}/heard\ncat {fake}/answer.$(wc -l <{fake}/heard)\n')
    (fake / "sleep").write_text("#!/bin/sh\n")
    for program in fake.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake}:{os.environ['PATH']}", "FEDDYN_TRIES": "2"}
    words = ["sh", str(place / "server" / script), *more]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    heard = fake / "heard"
    return done, heard.read_text().splitlines() if heard.exists() else []


DONE = '{"success": true, "run-id": "7"}'
STARTING = '{"success": false, "error-message": "Connection to the SuperLink is unavailable."}'
KNOWN = '{"success": false, "error-message": "Public key already in use."}'
REGISTERED = '{"success": true, "node-id": "4"}'
BROKEN = '{"success": false, "error-message": "broken"}'


@pytest.mark.parametrize(
    ("script", "answers", "code"),
    [
        ("run.sh", [DONE], 0),
        ("run.sh", [STARTING, DONE], 0),
        ("run.sh", [STARTING, STARTING], 1),
        ("run.sh", [BROKEN], 1),
        ("register.sh", [REGISTERED, REGISTERED], 0),
        ("register.sh", [BROKEN], 1),
    ],
)
def test_scripts_fail_when_flower_does(place: Path, tmp_path: Path, script: str, answers: list[str], code: int) -> None:
    """In a folder that was moved, too."""
    moved = Path(shutil.copytree(place, tmp_path / "moved"))
    done, heard = asked(moved, script, answers)
    assert done.returncode == code, done.stderr
    assert len(heard) == len(answers)
    assert ("error-message" in done.stderr) == bool(code)
    configuration = tomllib.loads((moved / "server" / "flwr" / "config.toml").read_text())
    assert configuration["superlink"]["local"]["root-certificates"] == str(moved / "server" / "ca.crt")


def test_a_table_that_is_not_at_the_sites_is_refused(tmp_path: Path) -> None:
    CliRunner().invoke(cli, ["init", str(tmp_path / "mine")], catch_exceptions=False)
    setting = tmp_path / "mine" / "setting.toml"
    done = CliRunner().invoke(cli, ["deploy", "init", str(setting), str(tmp_path / "fed")])
    assert isinstance(done.exception, feddyn.InputError)
    assert "takes its rows from data.csv, which Flower does not carry" in str(done.exception)
    assert not (tmp_path / "fed").exists()


def test_other_sites_than_devices_are_told(place: Path, tmp_path: Path) -> None:
    setting = place / "app" / "feddyn_app" / "setting.toml"
    done = CliRunner().invoke(cli, ["deploy", "init", str(setting), str(tmp_path / "fed"), "--sites", "2"])
    assert "the setting has 3 devices, not 2" in " ".join(done.output.split())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_units_are_units(place: Path, tmp_path: Path) -> None:
    for unit in place.rglob("*.service"):
        copy = tmp_path / unit.name
        copy.write_text(unit.read_text().replace("User=feddyn\n", ""))  # who does not exist here
        words = ["systemd-analyze", "verify", "--man=no", str(copy)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert unit.name not in done.stderr, done.stderr
        assert "Restart=always" in unit.read_text()


def test_compose_files_start_scripts_that_are_there(place: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    files = sorted(place.rglob("*.yaml"))
    assert {file.parent for file in files} == {place / "server", *(place / "sites" / name for name in SITES)}
    for file in files:
        for service in yaml.safe_load(file.read_text())["services"].values():
            assert service["image"] == "feddyn-deploy"
            script = Path(service["command"][-1])
            assert (file.parent / script.name).is_file()


def test_the_image_is_made_of_known_instructions(place: Path) -> None:
    (file,) = place.rglob("Dockerfile")
    lines = file.read_text().splitlines()
    words = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert words[0] == "FROM"
    assert set(words) <= {"FROM", "RUN", "USER", "WORKDIR"}


@pytest.mark.skipif(
    shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") is None, reason="nginx is not installed"
)
def test_the_proxys_configuration_is_one(place: Path) -> None:
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    (place / "server" / "proxy").mkdir(exist_ok=True)
    server = str(place / "server")
    words = [str(nginx), "-t", "-p", server, "-e", f"{server}/proxy/error.log", "-c", f"{server}/nginx.conf"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sites", "a,../b"], "cannot be used: it becomes a directory"),
        (["--sites", "a,a"], "each with a name of its own"),
        (["--address", "a b"], "neither a name nor an IPv4 address"),
    ],
)
def test_bad_names_are_refused(tmp_path: Path, words: list[str], sentence: str) -> None:
    setting = tmp_path / "setting.toml"
    setting.write_text(SETTING)
    done = CliRunner().invoke(cli, ["deploy", "init", str(setting), str(tmp_path / "fed"), *words])
    assert isinstance(done.exception, feddyn.InputError)
    assert sentence in str(done.exception)
    assert not (tmp_path / "fed").exists()


def test_nothing_is_overwritten(place: Path, tmp_path: Path) -> None:
    with pytest.raises(feddyn.InputError, match="is in use"):
        init(place, place / "app" / "feddyn_app" / "setting.toml", {}, sites=["a"])


def test_status_tells_for_how_many_sites_it_waits(logistic: nn.Module, tmp_path: Path) -> None:
    town = Town(tmp_path, make_logistic([10, 24]), feddyn.FedDyn(0.1), feddyn.SGD(0.1, epochs=1), logistic)
    town.run(rounds=1)
    place = tmp_path / "server"
    ledger = ledgers.read(place)
    assert ledger is not None
    ledgers.write(place, replace(ledger, round=0))
    with (place / "events.jsonl").open("a") as file:
        file.write('{"event": "waiting for sites", "least": 5}\n')
    assert "waiting for 3 of 5 sites" in status(place).sentence


def test_status(logistic: nn.Module, tmp_path: Path) -> None:
    three: Stored = make_logistic([10, 24, 15])
    town = Town(tmp_path, three, feddyn.FedDyn(0.1), feddyn.SGD(0.1, epochs=1), logistic)
    town.fate = lambda name, letter: "lost" if name == "site-1" and letter.kind == "train" else "answered"
    town.run(rounds=3)
    done = CliRunner().invoke(cli, ["deploy", "status", str(tmp_path / "server")], catch_exceptions=False)
    assert "round 3 is counted, session 1" in done.output
    assert "site-1" in done.output
    assert "never" in done.output
    assert "lost (3 times)" in done.output
    assert "all rounds that were asked for are counted" in done.output
    nowhere = CliRunner().invoke(cli, ["deploy", "status", str(tmp_path / "nowhere")])
    assert "there is no federation" in str(nowhere.exception)


def test_status_says_whether_a_servers_app_is_at_work(logistic: nn.Module, tmp_path: Path) -> None:
    """While one holds the record, after it was ended, and why one could not begin."""
    town = Town(tmp_path, make_logistic([10, 24, 15]), feddyn.FedDyn(0.1), feddyn.SGD(0.1, epochs=1), logistic)
    server = town.server(rounds=2)
    assert "; a server's app is at work" in status(tmp_path / "server").sentence
    server.journal.close(Status.INTERRUPTED, "the SuperLink is gone")
    words = "no server's app is at work (the last one stopped: the SuperLink is gone): sh server/run.sh goes on"
    assert words in status(tmp_path / "server").sentence
    service = Service(town.algorithm, logistic, Rules(2), None, nn.functional.cross_entropy, 0.0, (), 1, {})
    for config, why in (
        ({"without": "site-1"}, "without strikes sites off in a resync"),
        ({"sites": -1}, "sites must be a whole number of at least 1"),
    ):
        with pytest.raises(feddyn.InputError, match=why):
            serve(cast(Any, None), {"out": str(tmp_path / "server"), **config}, lambda: service)
        (*_, last) = status(tmp_path / "server").events.rows
        assert last[1] == "not started"
        assert why in last[2]
    with (tmp_path / "server" / "events.jsonl").open("a") as file:
        file.write('{"time": "2026-01-01T00')  # the power failed

    def broken() -> Service:
        raise feddyn.InputError("the setting is broken")

    with pytest.raises(feddyn.InputError, match="the setting is broken"):
        serve(cast(Any, None), {"out": str(tmp_path / "server")}, broken)
    (*_, last) = status(tmp_path / "server").events.rows
    assert last[1:] == ["not started", "why the setting is broken"]


def test_a_federation_with_fewer_sites_than_a_round_needs_is_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(feddyn.InputError, match="least is 3, but there are 2 sites: no round could be closed"):
        init(tmp_path / "fed", place / "app" / "feddyn_app" / "setting.toml", {}, sites=["a", "b"], least=3)
    assert not (tmp_path / "fed").exists()


@pytest.mark.parametrize(("participation", "least"), [("1.0", 3), ("0.5", 1), ("1", 1), ("2", 2), ("[[0, 1], [2]]", 1)])
def test_the_demonstration_needs_as_many_uploads_as_its_setting_gives(
    participation: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = stage.SETTING.read_text().replace("participation = 1.0", f"participation = {participation}")
    (tmp_path / "my.toml").write_text(text.replace("rounds = 8", "rounds = 2"))
    written = Mock(side_effect=InterruptedError)
    monkeypatch.setattr(stage, "init", written)
    with pytest.raises(InterruptedError):
        stage.demo(stage.Scene(tmp_path / "demo", tmp_path / "my.toml"), print)
    assert written.call_args.kwargs["least"] == least


def test_a_deployment_that_asks_for_more_than_its_setting_gives_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(stage.SETTING.read_text().replace("participation = 1.0", "participation = 2"))
    words = ["deploy", "init", str(tmp_path / "my.toml"), str(tmp_path / "fed"), "--least", "3"]
    with pytest.raises(feddyn.InputError, match="least is 3, but participation lets 2 of the sites train in a round"):
        CliRunner().invoke(cli, words, catch_exceptions=False)
    assert not (tmp_path / "fed").exists()


def test_a_key_is_taken_away_by_the_name_of_its_site(place: Path, tmp_path: Path) -> None:
    """By the node that Flower named when the site was registered."""
    moved = Path(shutil.copytree(place, tmp_path / "moved"))
    done, heard = asked(moved, "register.sh", ['{"success": true, "node-id": 17}', '{"success": true, "node-id": "4"}'])
    assert done.returncode == 0, done.stderr
    shutil.rmtree(moved / "bin")
    done, heard = asked(moved, "unregister.sh", [DONE], "clinic-b")
    assert done.returncode == 0, done.stderr
    assert heard == ["supernode unregister 4 local --format json"]
    shutil.rmtree(moved / "bin")
    done, heard = asked(moved, "register.sh", [KNOWN])  # nobody but clinic-a is left
    assert done.returncode == 0, done.stderr
    assert "clinic-a.pub is known already" in done.stdout
    shutil.rmtree(moved / "bin")
    done, heard = asked(moved, "register.sh", [], "clinic-b")
    assert done.returncode == 1
    assert "clinic-b.pub: put the site's public key there" in done.stderr
    shutil.rmtree(moved / "bin")
    (moved / "server" / "sites" / "clinic-b.pub.unregistered").rename(moved / "server" / "sites" / "clinic-b.pub")
    done, heard = asked(moved, "register.sh", [KNOWN], "clinic-b")
    assert done.returncode == 1
    assert "Flower takes none again that was unregistered" in done.stderr
    shutil.rmtree(moved / "bin")
    done, heard = asked(moved, "unregister.sh", [DONE], "clinic-b")
    assert done.returncode == 1
    assert "no site clinic-b was registered from this folder" in done.stderr
    assert not heard


def test_warm_sites_keep_their_command_where_they_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the unit, a home directory cannot be written to."""
    monkeypatch.setenv("FEDDYN_WARM_HOME", str(tmp_path / "warm"))
    monkeypatch.setenv("HOME", "/nonexistent")
    assert warm._warm_home() == tmp_path / "warm"
    assert os.access(tmp_path / "warm" / "flower-superexec", os.X_OK)
