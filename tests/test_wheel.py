"""The package as others get it: what is in the sdist and the wheel, and the wheel at work far from the repository.

There it sees the distributions that it declares, and theirs, and no other: what it does not declare, it cannot import.
(`.ci/wheel` lets pip do the same in an empty environment, which takes longer.)
"""

import email
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from markdown_it import MarkdownIt
from packaging.requirements import Requirement

import feddyn

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
    others = {"pyproject.toml", "setup.py", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "constraints.txt"}
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
    page = MarkdownIt("commonmark").enable("table").render(text.decode())
    assert "<h1>feddyn</h1>" in page
    assert "<table>" in page
    assert set(re.findall(r'<a href="([a-z]*)', page)) == {"https"}  # an index has no other files


def test_links_of_the_index_lead_to_the_home_as_soon_as_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setuptools.setup", lambda **about: None)
    description = runpy.run_path(str(ROOT / "setup.py"))["description"]
    text = "# a\n\n[b](docs/b.md) first.\n\nOf [c](https://c) and [d](#d).\n\n## All pages\n\n[e](e.md)\n"
    assert description(text, None) == "# a\n\nOf [c](https://c) and d.\n"
    place = f"https://home/blob/v{PROJECT['version']}"
    assert f"[b]({place}/docs/b.md) first.\n\nOf [c](https://c)" in description(text, "https://home")


def test_the_version_is_said_once(wheel: Path) -> None:
    """In pyproject.toml: the rest is the same, or made of it."""
    version = PROJECT["version"]
    assert feddyn.__version__ == version, "pip install --editable . has an older version"
    cited = (ROOT / "CITATION.cff").read_text()
    newest, date = re.findall(r"^## (\d\S*)(?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == version
    assert f"\nversion: {version}\ndate-released: {date}\n" in cited


def declared(name: str, extras: frozenset[str]) -> set[str]:
    """The distributions of this environment that one asks for, directly or through others."""
    found, waiting = set(), [(name, extras)]
    while waiting:
        asking, wanted = waiting.pop()
        for line in distribution(asking).requires or []:
            needed = Requirement(line)
            if needed.marker and not any(needed.marker.evaluate({"extra": extra}) for extra in (wanted or {""})):
                continue
            if needed.name not in found:
                found.add(needed.name)
                waiting.append((needed.name, frozenset(needed.extras)))
    return found


@pytest.fixture(scope="module")
def far(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Callable[..., str]]:
    """Makes environments that have the wheel and what it declares with some extras, and gives how to run a command."""

    def environment(*extras: str) -> Callable[..., str]:
        home = tmp_path_factory.mktemp("far")
        run(sys.executable, "-m", "venv", "--without-pip", home / "env", cwd=home)
        pip = (sys.executable, "-m", "pip", "--python", home / "env/bin/python", "--quiet")
        run(*pip, "--disable-pip-version-check", "install", "--no-deps", "--no-index", wheel, cwd=home)
        (folder,) = (home / "env").glob("lib/*/site-packages")
        for name in declared("feddyn", frozenset(extras)):
            try:
                files = distribution(name).files or []
            except PackageNotFoundError:
                pytest.skip(f"there is no {name}: pip install 'feddyn[{','.join(extras)}]'")
            for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
                if not (folder / top).exists():
                    (folder / top).symlink_to(Path(str(distribution(name).locate_file(top))))

        def call(command: str, *words: str) -> str:
            return run(home / "env" / "bin" / command, *words, cwd=home)

        place = call("python", "-c", "import feddyn; print(feddyn.__file__, feddyn.__version__)").split()
        assert place == [str(folder / "feddyn" / "__init__.py"), PROJECT["version"]]
        return call

    return environment


def test_a_plain_installation_has_all_that_its_commands_read(far: Callable[..., Callable[..., str]]) -> None:
    plain = far()
    with pytest.raises(AssertionError, match="ModuleNotFoundError"):
        plain("python", "-c", "import pandas")
    assert re.search(r"\| FedDyn +\| 69 +\|", plain("feddyn", "run"))
    assert plain("feddyn", "--version").split()[-1] == PROJECT["version"]
    assert "feddyn-onegd" in plain("feddyn", "methods")
    assert "participation-1pct" in plain("feddyn", "reproduce", "--list")
    assert "mnist-iid-10" in plain("feddyn", "reproduce", "participation", "--row", "mnist-iid-10", "--toml")
    assert "mnist" in plain("feddyn", "data", "list")
    assert "leaderboard.md" in plain("feddyn", "leaderboard", "--show-only")
    plain("feddyn", "init", "mine")
    assert "FedDyn" in plain("feddyn", "run", "mine/setting.toml", "--set", "rounds=1")


def test_with_the_extra_report_a_page_has_its_script_and_its_library_within(
    far: Callable[..., Callable[..., str]],
) -> None:
    reporting = far("report")
    reporting("feddyn", "run", "--out", "demo")
    assert "index.html" in reporting("feddyn", "report", "demo")
    page = reporting("python", "-c", "print(open('demo/report/index.html').read())")
    assert (ROOT / "src/feddyn/reports/web/main.js").read_text().strip().splitlines()[-1] in page


def test_with_the_extra_flower_a_deployment_is_made(far: Callable[..., Callable[..., str]]) -> None:
    deploying = far("flower")
    deploying("python", "-c", f"open('my.toml', 'w').write({SETTING!r})")
    assert "README.md" in deploying("feddyn", "deploy", "init", "my.toml", "fed")


SETTING = """
rounds = 2
participation = 1.0
population = { source = "synthetic", kind = "type2", devices = 3 }
model = { name = "linear" }
algorithm = { name = "feddyn", alpha = 0.1 }
solver = { lr = 0.1, epochs = 1, batch_size = 10 }
"""
