"""feddyn reproduce, report and sweep from the command line."""

import json
import tomllib
from pathlib import Path

import pytest
import tomli_w

from feddyn.paper import catalogue
from feddyn.paper.catalogue import Experiment, PaperRun, as_setting, experiments
from feddyn.paper.published import Row
from feddyn.paper.trials import Choice
from feddyn.records.lock import lock
from feddyn.reports import report
from feddyn.runs.simulation import Simulation
from feddyn.settings.documents import expand
from tests.cli.test_run import call, real
from tests.paper.tiny import ROUNDS, job, setting

ROWS = {("easy", 90.0): Row("tiny", "", "", "", 90.0, "2", "4", "3", "8+")}
TINY = Experiment(
    "tiny",
    "table",
    "a small table",
    [job(m, "easy", (0.9,)) for m in ("feddyn", "scaffold", "fedavg", "fedprox")]
    + [PaperRun("long", "feddyn", "tiny", setting("feddyn") | {"participation": 1.0})],
    ROWS,
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The paper, but small: one table."""
    monkeypatch.chdir(tmp_path)
    for module in (catalogue, report):
        monkeypatch.setattr(module, "experiments", lambda: {"tiny": TINY})


@pytest.mark.usefixtures("tiny")
def test_a_table_is_made_paused_and_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("reproduce", "tiny", "--out", "out", "--workers", "1")
    assert call(*words, "--row", "easy", "--rounds", "1", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "1+" in said
    assert len(list(Path("out").iterdir())) == 4
    assert call(*words, "--dry-run", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "at round 1 of 8" in said
    assert "new" in said
    assert "5 runs to go" in said
    assert call(*words, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "5 of 5 runs got as far as asked" in said
    before = {path: path.read_bytes() for path in Path("out").rglob("rounds.jsonl")}
    long = next(text for path, text in before.items() if text.count(b"\n") == ROUNDS)
    assert sum(text == long for text in before.values()) == 1
    assert call(*words, monkeypatch=monkeypatch) == 0
    assert {path: path.read_bytes() for path in Path("out").rglob("rounds.jsonl")} == before
    assert call("report", "out", monkeypatch=monkeypatch) == 0
    assert Path("out/report/index.html").stat().st_size > 1_000_000
    assert "a small table" in Path("out/report/tables/tiny.md").read_text()
    assert Path("out/report/figures/tiny-easy.pdf").exists()


@pytest.mark.usefixtures("tiny")
def test_damaged_records_of_its_own_get_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a table, of the synthetic grid, and of a search: its list of trials, and a candidate's record."""
    tables = ("reproduce", "tiny", "--row", "easy", "--method", "feddyn", "--out", "out", "--workers", "1")
    assert call(*tables, "--rounds", "2", monkeypatch=monkeypatch) == 0
    text = tomli_w.dumps(setting("feddyn") | {"sweep": {"space": {"solver": {"lr": [0.1]}}}})
    Path("my.toml").write_text(text)
    sweep = ("sweep", "my.toml", "--out", "sweep", "--workers", "1")
    assert call(*sweep, monkeypatch=monkeypatch) == 0
    (rounds,) = Path("out").glob("tiny-*/rounds.jsonl")
    (candidate,) = Path("sweep").glob("feddyn-*/rounds.jsonl")
    curves, trials = Path("out/synthetic/type1-s0/trials.jsonl"), Path("sweep/trials.jsonl")
    curves.parent.mkdir(parents=True)
    curves.write_text("{}\n")
    grid = ("reproduce", "synthetic", "--rounds", "1", "--row", "type1", "--out", "out", "--dry-run")
    for file, words in ((rounds, tables), (trials, sweep), (candidate, sweep), (curves, grid)):
        good = file.read_text()
        for damage in ("[]", '{"round": 1}', '{"name": "x", "status": 3}', '{"curve": []}', "[" * 100_000):
            if file == candidate:
                trials.unlink(missing_ok=True)
            file.write_text(damage + "\n")
            capsys.readouterr()
            assert call(*words, monkeypatch=monkeypatch) == 2
            said = capsys.readouterr().err.splitlines()
            assert len(said) == 1
            assert said[0].startswith(f"feddyn: {file} is damaged (line 1: ")
        file.write_text(good)


@pytest.mark.usefixtures("tiny")
def test_a_budget_ends_between_rounds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """However long things take: what time there is goes to the cheapest row."""
    words = ("reproduce", "tiny", "--out", "out", "--workers", "1")
    monkeypatch.setattr("feddyn.paper.study.Budget.left", property(lambda self: next(times)))
    times = iter([1.0, 1.0, 1.0, 0.0, *[0.0] * 9])
    assert call(*words, "--budget", "90s", monkeypatch=monkeypatch) == 0
    assert (
        "0 of 5 runs got as far as asked, in out; the same command goes on with the others" in capsys.readouterr().out
    )
    (record,) = Path("out").glob("*/rounds.jsonl")
    assert record.read_text().count("\n") == 3


QUEUE = """
# a comment
tiny --row long
tiny --row 'e*' --method feddyn --seeds 2
tiny --row easy --lower
"""


@pytest.mark.usefixtures("tiny")
def test_a_queue_goes_on_and_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs side by side; interrupted between rounds, it goes on to the bits of single commands."""
    Path("my.txt").write_text(QUEUE)
    words = ("reproduce", "--queue", "my.txt", "--out", "out")
    assert call(*words, "--dry-run", monkeypatch=monkeypatch) == 0
    assert "6 runs to go" in capsys.readouterr().out
    assert not Path("out").exists()
    with monkeypatch.context() as patch:
        times = iter([1.0] * 4)
        patch.setattr("feddyn.paper.study.Budget.left", property(lambda self: next(times, 0.0)))
        assert call(*words, "--workers", "1", monkeypatch=patch) == 0
    capsys.readouterr()
    assert call("reproduce", "--status", "out", monkeypatch=monkeypatch) == 0
    assert "0 of 6 runs of the queue got as far as asked, 0 are running, 6 are left" in capsys.readouterr().out
    assert call(*words, "--workers", "2", monkeypatch=monkeypatch) == 0
    assert "6 of 6 runs got as far as asked" in capsys.readouterr().out
    assert call("reproduce", "tiny", "--seeds", "2", "--out", "alone", "--workers", "1", monkeypatch=monkeypatch) == 0
    for path in Path("out").glob("*/rounds.jsonl"):
        assert path.read_bytes() == Path("alone", *path.parts[1:]).read_bytes()
    capsys.readouterr()
    record = next(Path("out").glob("tiny-feddyn-s0-*"))
    with lock(record):
        assert call("reproduce", "--status", "out", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "6 of 6 runs of the queue got as far as asked, 0 are running, 0 are left" in said
    assert "| tiny           | 1 " in said


@pytest.mark.usefixtures("tiny")
def test_the_status_names_what_is_running(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("reproduce", "tiny", "--row", "long", "--rounds", "2", "--out", "out", "--workers", "1")
    assert call(*words, monkeypatch=monkeypatch) == 0
    (record,) = Path("out").glob("tiny-*")
    with lock(record):
        assert call("reproduce", "--status", "out", monkeypatch=monkeypatch) == 0
        said = capsys.readouterr().out
        assert "running, at round 2 of 8" in said
        assert "0 of 1 runs that were begun got to the end, 1 are running, 0 are left" in said
        monkeypatch.setattr("feddyn.paper.study.PATIENCE", 0.0)
        assert call(*words[:-6], "--out", "out", "--workers", "1", monkeypatch=monkeypatch) == 2
        assert "is in use by a living process" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_the_status_shows_all_runs_that_were_begun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not only the queue's; whatever seed a record of somebody's own has; and it says what cannot be read."""
    Path("my.txt").write_text("tiny --row easy --method fedavg --rounds 1\n", encoding="utf-8-sig")  # as of Notepad
    rest = ("--out", "out", "--workers", "1")
    assert call("reproduce", "--queue", "my.txt", *rest, monkeypatch=monkeypatch) == 0
    for method in ("feddyn", "fedprox"):
        words = ("reproduce", "tiny", "--row", "easy", "--method", method, "--rounds", "1", *rest)
        assert call(*words, monkeypatch=monkeypatch) == 0
    Path("own.toml").write_text(tomli_w.dumps(setting("feddyn") | {"seed": 1_700_000_000, "rounds": 1}))
    assert call("run", "own.toml", "--out", "out/own", "--workers", "1", monkeypatch=monkeypatch) == 0
    (timings,) = Path("out").glob("tiny-fedprox-*/timings.jsonl")
    timings.write_text("[]\n")
    capsys.readouterr()
    assert call("reproduce", "--status", "--out", "out", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert all(f"| {label} " in said for label in ("FedDyn", "FedAvg", "FedProx"))
    assert "1 of 1 runs of the queue got as far as asked" in said
    assert f"left out: the record in {timings.parent} is damaged" in said.replace("\n", " ")
    Path("alone").mkdir()
    (rounds,) = Path("out").glob("tiny-fedprox-*/rounds.jsonl")
    rounds.parent.rename("alone" / Path(rounds.parent.name))
    Path("alone", *rounds.parts[1:]).write_text("[]\n")
    assert call("reproduce", "--status", "alone", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "| cannot go on |" in said
    assert "0 of 1 runs that were begun got to the end, 1 cannot go on, 0 are running, 0 are left" in said.replace(
        "\n", " "
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the queue my.txt is empty"),
        ("tiny --help", "my.txt, line 1: No such option '--help'"),
        ("tiny --row nothing", "my.txt, line 1: tiny has no row 'nothing'"),
        ("\nsynthetic", "my.txt, line 2: 'synthetic' is not made of single runs; known: tiny"),
        ("tiny --out x", "my.txt, line 1: No such option"),
        ("tiny --row 'a", "my.txt, line 1: No closing quotation"),
        (b"\xff", "the queue my.txt cannot be read"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_a_bad_queue_gets_one_sentence(
    text: str | bytes, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert call("reproduce", "--queue", "my.txt", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert [path.name for path in Path().iterdir()] == ["my.txt"]


@pytest.mark.usefixtures("tiny")
def test_a_row_as_a_setting_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("reproduce", "tiny", "--row", "easy", "--toml", monkeypatch=monkeypatch) == 0
    text = capsys.readouterr().out
    document = tomllib.loads(text)
    assert document["target"] == {"metric": "accuracy", "value": 0.9}
    Path("my.toml").write_text(text)
    assert call("run", "my.toml", "--out", "out", "--workers", "1", monkeypatch=monkeypatch) == 0
    for entry in TINY.jobs[:4]:
        found = tomllib.loads((Path("out") / entry.label.lower() / "setting.toml").read_text())
        assert found["algorithm"] == entry.document["algorithm"]
        assert entry.document["solver"].items() <= found["solver"].items()


@pytest.mark.parametrize("name", list(experiments()))
def test_every_row_as_a_setting_is_the_row(name: str) -> None:
    """Of every experiment, printed and read again: no hyperparameter is lost or taken from another method."""
    for row in experiments()[name].rows:
        jobs = [job for job in experiments()[name].jobs if job.row == row]
        singles = expand(tomllib.loads(tomli_w.dumps(as_setting(Choice([row]).jobs(experiments()[name])))))
        for single, (label, document) in zip(jobs, singles, strict=True):
            assert label == single.label
            assert document["algorithm"] == single.document["algorithm"]
            assert document["solver"] == {"name": "sgd", **single.document["solver"]}


def test_many_runs_are_refused_under_torchrun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert call("reproduce", "alpha", monkeypatch=monkeypatch) == 2
    assert "does not run under torchrun" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_an_interrupt_is_resumable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    step = Simulation._answers

    def pull_the_plug(self: Simulation, sampler: object, round: int) -> object:
        if round == 3:
            raise KeyboardInterrupt
        return step(self, sampler, round)  # type: ignore[arg-type]

    words = ("reproduce", "tiny", "--row", "long", "--out", "out", "--workers", "1")
    with monkeypatch.context() as patch:
        patch.setattr(Simulation, "_answers", pull_the_plug)
        assert call(*words, monkeypatch=patch) == 130
    assert "the same command goes on" in capsys.readouterr().err
    (record,) = Path("out").glob("*/rounds.jsonl")
    assert record.read_text().count("\n") == 3
    assert call(*words, monkeypatch=monkeypatch) == 0
    assert record.read_text().count("\n") == ROUNDS


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["reproduce", "participatio"], "did you mean 'participation'?"),
        (["reproduce", "participation", "--row", "mnist-id-10"], "did you mean 'mnist-iid-10'?"),
        (["reproduce", "alpha", "--method", "fedavg"], "alpha has no method 'fedavg'"),
        (["reproduce", "synthetic", "--method", "feddyn"], "leave out --method"),
        (["reproduce", "participation", "--budget", "soon"], "'soon' is not a time"),
        (["reproduce", "participation", "--toml"], "choose it with --row"),
        (["reproduce", "alpha", "--row", "cifar10-iid-10", "--toml", "--rounds", "5"], "leave out --rounds, --seeds"),
        (["reproduce", "participation", "--budget", "0h"], "is no time at all"),
        (["reproduce", "--row", "mnist-iid-10"], "give a NAME with its options"),
        (["reproduce", "alpha", "--list"], "give a NAME with its options"),
        (["reproduce", "--queue", "nowhere.txt"], "the queue nowhere.txt cannot be read"),
        (["reproduce", "--status", "nowhere"], "there is no directory nowhere"),
        (["reproduce", "synthetic", "--toml"], "not made of single runs"),
        (["report", "nowhere"], "there is no directory nowhere"),
        (["sweep", "nowhere.toml"], "there is no settings file"),
    ],
)
def test_bad_words_get_one_sentence(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_list_names_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("feddyn.runs.simulation.Simulation.__init__", None)  # nothing is trained, nor timed
    assert call("reproduce", "--list", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    names = [*experiments(), "synthetic", "heterogeneity", "mnist-search", "shakespeare-search"]
    assert all(f"| {name} " in said for name in names)


SWEEP = """
[sweep]
search = "SEARCH"
[sweep.space]
solver.lr = [0.3, 0.1]
"""


@pytest.mark.parametrize("search", ["grid", "random", "halving"])
def test_a_sweep_goes_on_and_writes_the_best(
    search: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import tomli_w

    monkeypatch.chdir(tmp_path)
    text = tomli_w.dumps(setting("feddyn") | {"stack": 1}) + SWEEP.replace("SEARCH", search)
    if search != "grid":
        text = text.replace(f'"{search}"\n', f'"{search}"\ntrials = 6\n')
    Path("my.toml").write_text(text)
    words = ("sweep", "my.toml", "--out", "out", "--workers", "1")
    assert call(*words, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    names = {json.loads(line)["name"] for line in Path("out/trials.jsonl").read_text().splitlines()}
    assert len(names) == 2
    best = tomllib.loads(Path("out/best.toml").read_text())
    assert best["solver"]["lr"] in (0.3, 0.1)
    first = Path("out/best.toml").read_bytes()
    monkeypatch.setattr("feddyn.cli.engine.simulation", None)  # nothing is trained again
    assert call(*words, monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out.splitlines()[-1] == said.splitlines()[-1]
    assert Path("out/best.toml").read_bytes() == first
    assert call("run", "out/best.toml", "--out", "run", "--workers", "1", monkeypatch=monkeypatch) == 0


def test_a_search_keeps_out_of_other_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import tomli_w

    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(tomli_w.dumps(setting("feddyn")) + SWEEP.replace("SEARCH", "grid"))
    assert call("run", "my.toml", monkeypatch=monkeypatch) == 2
    assert "run it with feddyn sweep" in capsys.readouterr().err
    Path("out").mkdir()
    Path("out/setting.toml").touch()
    assert call("sweep", "my.toml", "--out", "out", monkeypatch=monkeypatch) == 2
    assert "has the record of a run" in capsys.readouterr().err


def test_the_synthetic_table_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One kind, two rounds; then the same command finds everything there, even behind a line that was cut off."""
    monkeypatch.chdir(tmp_path)
    words = ("reproduce", "synthetic", "--row", "homogeneous", "--rounds", "2", "--out", "out", "--workers", "1")
    assert call(*words, monkeypatch=monkeypatch) == 0
    table, trials = Path("out/synthetic/table.csv").read_text(), Path("out/synthetic/homogeneous-s0/trials.jsonl")
    assert trials.read_text().count("\n") == 42
    with trials.open("a") as file:
        file.write('{"kind": "typ')
    monkeypatch.setattr("feddyn.search.batch.Batch.histories", None)
    assert call(*words, monkeypatch=monkeypatch) == 0
    assert Path("out/synthetic/table.csv").read_text() == table
    capsys.readouterr()
    assert call(*words, "--row", "type1", "--dry-run", monkeypatch=monkeypatch) == 0
    assert "2 searches, of which 1 are to go" in capsys.readouterr().out


@real
def test_a_row_of_the_paper_on_real_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (
        "reproduce",
        "participation",
        "--row",
        "mnist-iid-10",
        "--method",
        "fedavg",
        "--rounds",
        "2",
        "--out",
        "out",
    )
    assert call(*words, monkeypatch=monkeypatch) == 0
    assert "2+" in capsys.readouterr().out
    assert call("reproduce", "heterogeneity", "--out", "out", monkeypatch=monkeypatch) == 0
    assert Path("out/heterogeneity/histograms.pdf").exists()
    assert call("report", "out", "--out", "report", monkeypatch=monkeypatch) == 0
    assert "mnist-iid-10" in Path("report/tables/participation.md").read_text()
    assert "Dirichlet" in Path("report/tables/heterogeneity.md").read_text()


def test_a_method_that_shares_a_hyperparameter_with_itself_is_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("reproduce", "participation", "--row", "mnist-iid-10", "--method", "fedavg", "--method", "feddyn")
    assert call(*words, "--seeds", "2", "--dry-run", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "FedDyn, FedAvg " in said
    assert "FedDyn, FedAvg, " not in said
