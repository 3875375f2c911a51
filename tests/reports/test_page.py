"""The report: its files, and its page in a real browser."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from feddyn.errors import InputError
from feddyn.reports.report import make
from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from tests.paper.tiny import setting

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of two methods, and a single run in the middle of which the power failed."""
    home = tmp_path_factory.mktemp("records")
    runs = []
    for method in ("feddyn", "fedavg"):
        ((_, plan),) = plans(setting(method) | {"target": {"metric": "accuracy", "value": 0.5}})
        for _ in Simulation(plan, home / "both" / method, workers=1):
            pass
        runs.append({"label": {"feddyn": "FedDyn", "fedavg": HOSTILE}[method], "setting": {}})
    shutil.move(home / "both" / "fedavg", home / "both" / "script-script-alert-1-script")
    (home / "both" / "comparison.json").write_text(json.dumps({"runs": runs}))
    shutil.copytree(home / "both" / "feddyn", home / "alone")
    (home / "alone" / "summary.json").unlink()
    text = (home / "alone" / "rounds.jsonl").read_text()
    (home / "alone" / "rounds.jsonl").write_text(text + '{"round": 9, "tr')
    for name in ("a-b", "a/b", "alpha-x"):
        shutil.copytree(home / "both" / "feddyn", home / name)
    return home


@pytest.fixture
def odd(records: Path) -> Iterator[Path]:
    """Beside them a record that is damaged, and one of a run that was not evaluated before it was interrupted."""
    shutil.copytree(records / "alone", records / "early")
    lines = [json.loads(line) for line in (records / "both/feddyn/rounds.jsonl").read_text().splitlines()[:2]]
    for line in lines:
        del line["models"]
    (records / "early" / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (records / "broken").mkdir()
    (records / "broken" / "setting.toml").write_text("# feddyn run 0\nrounds =")
    yield records
    shutil.rmtree(records / "early")
    shutil.rmtree(records / "broken")


def test_a_report_of_any_records(records: Path, tmp_path: Path) -> None:
    made = make([records], tmp_path / "report")
    assert not made.missing
    assert all(path.stat().st_size > 0 for path in made.files)
    assert {path.suffix for path in made.files} == {".md", ".csv", ".tex", ".png", ".pdf", ".html"}
    both, everything = made.tables
    assert [row[0] for row in both.rows] == ["FedDyn", HOSTILE]
    assert everything.title.startswith("all runs: accuracy (mean of all devices), and the price of accuracy >= 0.5")
    assert [row[0] for row in everything.rows] == ["FedDyn", "FedAvg"]
    statuses, seeds = (everything.columns.index(name) for name in ("status", "seeds"))
    assert "running" in everything.rows[0][statuses]
    assert everything.rows[0][seeds] == "0, 0, 0, 0, 0"
    shown = " ".join(cell for row in everything.rows for cell in row)
    assert "alone" not in shown  # no run is called by its folder
    assert r"\begin{tabular}" in next(path for path in made.files if path.suffix == ".tex").read_text()
    again = make([records], tmp_path / "report")
    assert again.files == made.files
    assert len({path.name for path in made.files}) == len(made.files) == 3 * 2 + 2 * 2 + 1


def test_records_that_cannot_be_read_are_named(odd: Path, tmp_path: Path) -> None:
    made = make([odd], tmp_path / "report")
    assert len(made.missing) == 2
    assert "broken is damaged" in made.missing[0]
    assert "early: no round of it has been evaluated yet" in made.missing[1]
    assert (tmp_path / "report" / "index.html").exists()


def test_without_records_there_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no record of a run"):
        make([tmp_path], tmp_path / "report")
    with pytest.raises(InputError, match="there is no directory"):
        make([tmp_path / "nowhere"], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_the_page_in_a_browser(records: Path, tmp_path: Path, page: Any) -> None:
    """It loads without an error or a request, a click switches the x axis, a name opens its setting, tables sort."""
    make([records], tmp_path)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "index.html").as_uri())
    title = page.locator("#plot .xtitle")
    assert title.text_content() == "rounds"
    for button, words in (("transmissions", "models transmitted"), ("bytes", "bytes sent"), ("rounds", "rounds")):
        page.locator("#axis").get_by_role("button", name=button).click()
        assert title.text_content().startswith(words)
    assert page.locator("#runs tr.run").count() == 2
    page.locator("#figure").select_option("devices.drift")
    assert page.locator("#plot .ytitle").text_content() == "drift (mean over active devices)"
    page.locator("#figure").select_option("norms.h")
    page.locator("#logy").check()
    assert page.evaluate("document.getElementById('plot').layout.yaxis.type") == "log"
    page.locator("#figure").select_option("models.all.accuracy")
    assert page.evaluate("document.getElementById('plot').data.length") == 2

    first = page.locator("#runs tr.run").first.get_by_role("button")
    first.click()
    assert 'name = "feddyn"' in page.locator("tr.setting pre").text_content()
    first.click()
    assert page.locator("tr.setting").count() == 0

    page.locator("#runs").get_by_role("button", name="run", exact=True).click()
    assert page.locator("#runs td").nth(1).text_content() == HOSTILE
    page.locator("#runs").get_by_role("button", name="run", exact=True).press("Enter")
    assert page.locator("#runs td").nth(1).text_content() == "FedDyn"

    page.goto("about:blank")
    page.goto((tmp_path / "index.html").as_uri() + "#group=all+runs&bands=1&figure=models.all.accuracy")
    assert page.locator("#runs tr.run").count() == 6
    names = "document.getElementById('plot').data.map((trace) => trace.name ?? '')"
    assert page.evaluate(names) == ["", "", "FedDyn", "FedAvg"]
    page.locator("#filter").fill("fedavg seed")
    page.wait_for_function("document.querySelectorAll('#runs tr.run').length === 1")
    page.wait_for_function("document.getElementById('plot').data.length === 1")
    page.locator("#filter").fill("nothing has this")
    page.wait_for_function("document.querySelectorAll('#runs tr.run').length === 0")
    page.locator("#filter").fill("")
    page.wait_for_function("document.querySelectorAll('#runs tr.run').length === 6")
    page.locator("#plot .draglayer").first.hover()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
