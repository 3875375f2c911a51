"""The package as others get it: what is in the sdist and the wheel, and the wheel at work far from the repository."""

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
from markdown_it import MarkdownIt

import feddyn
from tests.test_readme import README

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INFO = f"feddyn-{PROJECT['version']}.dist-info"


def run(*words: str | Path, cwd: Path, **variables: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, cwd=cwd, env=clean | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The files of the repository; what only lies about is not built."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is not a git repository")
    return run("git", "ls-files", cwd=ROOT).splitlines()


@pytest.fixture(scope="module")
def dist(tracked: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel built from it, of a copy of the repository; nothing is downloaded."""
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in tracked:
        if (ROOT / name).exists() and name.split("/")[0] not in ("docs", "joss"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, source, cwd=dist)
    return dist


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    assert found.name == f"feddyn-{PROJECT['version']}-py3-none-any.whl"
    return found


def test_the_wheel_has_all_files_of_the_package_and_nothing_else(wheel: Path, tracked: list[str]) -> None:
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/feddyn/")}
    assert {"feddyn/py.typed", "feddyn/settings/demo.toml", "feddyn/reports/web/page.html"} <= package
    own = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
    with ZipFile(wheel) as archive:
        assert set(archive.namelist()) == package | {f"{INFO}/{name}" for name in own}
        for name in package:
            assert archive.read(name) == (ROOT / "src" / name).read_bytes(), name
        assert archive.read(f"{INFO}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


def test_the_sdist_can_be_built_from_and_has_no_half_of_the_tests(dist: Path, tracked: list[str]) -> None:
    with tarfile.open(dist / f"feddyn-{PROJECT['version']}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    package = {name for name in tracked if name.startswith("src/feddyn/")}
    others = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "constraints.txt"}
    assert package | others <= names
    assert not {name for name in names if name.startswith("tests/")}


def test_the_metadata_is_true(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        about: Message = email.message_from_bytes(archive.read(f"{INFO}/METADATA"))
        scripts = archive.read(f"{INFO}/entry_points.txt").decode()
    assert (about["Name"], about["Version"]) == ("feddyn", PROJECT["version"])
    assert (about["License-Expression"], about["License-File"]) == ("MIT", "LICENSE")
    assert about["Requires-Python"] == ">=3.11"
    assert about.get_all("Project-URL") is None  # it has no home yet: an address would be invented
    assert set(about.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert "feddyn = feddyn.cli:main" in scripts
    assert about["Description-Content-Type"] == "text/markdown"
    text = about.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert text.decode() == README
    page = MarkdownIt("commonmark").enable("table").render(README)
    assert "<h1>feddyn</h1>" in page
    assert "<table>" in page


def test_the_version_is_said_once(wheel: Path) -> None:
    """In pyproject.toml: the rest is the same, or made of it."""
    version = PROJECT["version"]
    assert feddyn.__version__ == version, "pip install --editable . has an older version"
    cited = (ROOT / "CITATION.cff").read_text()
    newest, date = re.findall(r"^## (\d\S*)(?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == version
    assert f"\nversion: {version}\ndate-released: {date}\n" in cited


@pytest.fixture(scope="module")
def far(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs a command of an environment that has the wheel, and of this one only what it depends on.

    A path that a .pth file names is searched, but its own .pth files, by which this environment finds the repository,
    are not read.
    """
    home = tmp_path_factory.mktemp("far")
    run(sys.executable, "-m", "venv", "--without-pip", home / "env", cwd=home)
    python = home / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=home)
    (folder,) = (home / "env").glob("lib/*/site-packages")
    (folder / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def call(command: str, *words: str) -> str:
        return run(home / "env" / "bin" / command, *words, cwd=home)

    place = call("python", "-c", "import feddyn; print(feddyn.__file__, feddyn.__version__)").split()
    assert place == [str(folder / "feddyn" / "__init__.py"), PROJECT["version"]]
    return call


def test_the_demo_runs_far_from_the_repository(far: Callable[..., str]) -> None:
    """Also its report, of which the page has its script and its library within."""
    printed = far("feddyn", "run")
    assert re.search(r"\| FedDyn +\| 69 +\|", printed), printed
    record = printed.split()[-1]
    pytest.importorskip("plotly", reason="there is no plotly: pip install 'feddyn[report]'")
    assert "index.html" in far("feddyn", "report", record)
    page = far("python", "-c", f"print(open('{record}/report/index.html').read())")
    assert (ROOT / "src/feddyn/reports/web/main.js").read_text().strip().splitlines()[-1] in page


def test_every_file_that_commands_read_is_there(far: Callable[..., str]) -> None:
    assert far("feddyn", "--version").split()[-1] == PROJECT["version"]
    assert "feddyn-onegd" in far("feddyn", "methods")
    assert "participation-1pct" in far("feddyn", "reproduce", "--list")
    assert "mnist-iid-10" in far("feddyn", "reproduce", "participation", "--row", "mnist-iid-10", "--toml")
    assert "mnist" in far("feddyn", "data", "list")
    assert "leaderboard.md" in far("feddyn", "leaderboard", "--show-only")
    far("feddyn", "init", "mine")
    assert "FedDyn" in far("feddyn", "run", "mine/setting.toml", "--set", "rounds=1")
    pytest.importorskip("flwr", reason="there is no Flower: pip install 'feddyn[flower]'")
    far("python", "-c", f"open('my.toml', 'w').write({SETTING!r})")
    assert "README.md" in far("feddyn", "deploy", "init", "my.toml", "fed")


SETTING = """
rounds = 2
participation = 1.0
population = { source = "synthetic", kind = "type2", devices = 3 }
model = { name = "linear" }
algorithm = { name = "feddyn", alpha = 0.1 }
solver = { lr = 0.1, epochs = 1, batch_size = 10 }
"""
