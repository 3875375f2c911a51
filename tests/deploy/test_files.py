"""What `feddyn deploy` writes and shows, without starting a deployment."""

import os
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path

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

from feddyn.deploy.files import init

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
    assert len(scripts) == 5 + 2 * len(SITES)
    for script in scripts:
        subprocess.run(["sh", "-n", str(script)], check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_units_are_units(place: Path, tmp_path: Path) -> None:
    for unit in place.rglob("*.service"):
        copy = tmp_path / unit.name
        copy.write_text(unit.read_text().replace("User=feddyn\n", ""))  # who does not exist here
        words = ["systemd-analyze", "verify", "--man=no", str(copy)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert unit.name not in done.stderr, done.stderr
        assert "Restart=always" in unit.read_text()


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


def test_status(logistic: nn.Module, tmp_path: Path) -> None:
    three: Stored = make_logistic([10, 24, 15])
    town = Town(tmp_path, three, feddyn.FedDyn(0.1), feddyn.SGD(0.1, epochs=1), logistic)
    town.fate = lambda name, letter: "lost" if name == "site-1" and letter.kind == "train" else "answered"
    town.run(rounds=3)
    done = CliRunner().invoke(cli, ["deploy", "status", str(tmp_path / "server")], catch_exceptions=False)
    assert "round 3 is counted, session 1" in done.output
    assert "site-1" in done.output
    assert "never" in done.output
    assert done.output.count("lost") == 3
    nowhere = CliRunner().invoke(cli, ["deploy", "status", str(tmp_path / "nowhere")])
    assert "there is no federation" in str(nowhere.exception)
