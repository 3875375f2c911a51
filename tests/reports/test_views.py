"""What the page shows of runs: groups over each other, selections, sweeps, devices, splits, smoothing, seconds."""

import json
from pathlib import Path
from typing import Any

import pytest

from feddyn.reports.report import make
from feddyn.runs.simulation import Simulation
from feddyn.search.driver import Searching
from feddyn.settings.building import plans
from feddyn.views.drawing import COLORS
from tests.paper.test_study import start
from tests.paper.tiny import setting

SPACE = {"solver": {"lr": [1.0, 0.1, 0.01]}, "algorithm": {"alpha": [0.1, 0.01]}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two comparisons that use the same labels, evaluated in every second round and on devices, and a batched sweep."""
    home = tmp_path_factory.mktemp("home")
    for folder, lr in (("one", 0.1), ("two", 0.2)):
        for method in ("feddyn", "fedavg"):
            document = setting(method)
            document["solver"]["lr"] = lr
            document["evaluation"] = {"models": ["all"], "every": 2, "devices": True}
            ((_, plan),) = plans(document)
            for _ in Simulation(plan, home / folder / method, workers=1):
                pass
        runs: list[dict[str, Any]] = [{"label": label, "setting": {}} for label in ("FedDyn", "FedAvg")]
        (home / folder / "comparison.json").write_text(json.dumps({"runs": runs}))
    searching = Searching(setting("feddyn") | {"sweep": {"space": SPACE}}, home / "sweep", start)
    assert len(list(searching.outcomes())) == 6
    assert not list((home / "sweep").glob("*/setting.toml"))
    return home


@pytest.fixture
def view(home: Path, tmp_path: Path, page: Any) -> Any:
    """The page with both comparisons chosen."""
    make([home], tmp_path)
    page.goto((tmp_path / "index.html").as_uri())
    page.locator("#groups summary").click()
    page.locator("#groups").get_by_label(str(home / "two")).check()
    return page


def traces(page: Any, place: str = "plot") -> list[dict[str, Any]]:
    """What a plot draws."""
    words = "({name, x, y, z, opacity, line}) => ({name, x, y, z, width: line?.width})"
    found: list[dict[str, Any]] = page.evaluate(f"document.getElementById('{place}').data.map({words})")
    return found


def lines(record: Path, file: str = "rounds.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (record / file).read_text().splitlines()]


def test_groups_lie_over_each_other(view: Any, home: Path) -> None:
    names = [f"{label} · {home / folder}" for folder in ("one", "two") for label in ("FedAvg", "FedDyn")]
    assert sorted(trace["name"] for trace in traces(view)) == sorted(names)
    heads = view.locator("#runs th").all_text_contents()
    assert {"group", "method", "lr", "alpha"} <= set(heads)
    assert "epochs" not in heads
    place = heads.index("lr") + 1
    assert view.locator(f"#runs td:nth-child({place})").all_text_contents() == ["0.1", "0.1", "0.2", "0.2"]


def test_a_selection_stands_out_and_is_in_the_address(view: Any, browser: Any, home: Path) -> None:
    view.locator("#runs").get_by_label(f"select FedDyn · {home / 'two'}, seed 0").check()
    widths = {trace["name"]: trace["width"] for trace in traces(view)}
    assert max(widths, key=lambda name: widths[name]) == f"FedDyn · {home / 'two'}"
    view.evaluate("document.getElementById('plot').emit('plotly_click', { points: [{ data: { meta: ['x'] } }] })")
    assert "2 selected" in view.locator("#count").text_content()
    view.evaluate("toggle(['x'])")
    view.locator("#only").check()
    view.locator("#figure").select_option("norms.h")
    view.locator("#axis").get_by_role("button", name="bytes").click()
    shown = traces(view)
    assert [trace["name"] for trace in shown] == [f"FedDyn · {home / 'two'}"]
    other = browser.new_page()
    other.set_default_timeout(0)
    other.goto(view.url)
    assert traces(other) == shown
    other.locator("#clear").click()
    assert len(traces(other)) == 2  # FedAvg has no h


def test_smoothing_passes_over_missing_points(view: Any, home: Path) -> None:
    assert view.evaluate("smoothed([1, null, 3, 5], 0.5)") == pytest.approx([1, None, 3.5 / 1.5, 6.75 / 1.75])
    view.locator("#smooth").fill("0.5")
    view.wait_for_function("document.getElementById('plot').data.length === 8")
    raw, curve = traces(view)[:2]
    objectives = [line["models"]["all"]["objective"] for line in lines(home / "one/feddyn") if "models" in line]
    other = [line["models"]["all"]["objective"] for line in lines(home / "one/fedavg") if "models" in line]
    truth = objectives if "FedDyn" in curve["name"] else other
    assert raw["x"] == [2, 4, 6, 8]
    assert raw["y"] == pytest.approx(truth, rel=1e-5)
    assert curve["y"][1] == pytest.approx((truth[1] + truth[0] / 2) / 1.5, rel=1e-5)


def test_curves_over_seconds(view: Any, home: Path) -> None:
    view.locator("#axis").get_by_role("button", name="seconds").click()
    spent = [line["seconds"] for line in lines(home / "one/feddyn", "timings.jsonl") if "round" in line]
    (mine,) = (trace for trace in traces(view) if trace["name"] == f"FedDyn · {home / 'one'}")
    assert mine["x"] == pytest.approx([sum(spent[:n]) for n in (2, 4, 6, 8)], rel=1e-5)


def test_a_brush_selects_candidates_of_a_sweep(home: Path, tmp_path: Path, page: Any) -> None:
    """Also of one that kept no settings."""
    trials = home / "sweep" / "trials.jsonl"
    for keeps in (True, False):
        if not keeps:
            old = [
                {key: value for key, value in line.items() if key != "setting"}
                for line in lines(home, "sweep/trials.jsonl")
            ]
            trials.write_text("".join(json.dumps(line) + "\n" for line in old))
        make([home], tmp_path)
        page.goto("about:blank")
        page.goto(f"{(tmp_path / 'index.html').as_uri()}#group=search:+{home / 'sweep'}")
        assert page.locator("#parallel path").count() == 6
        assert len(traces(page)) == 6
        held = page.locator("#parallel").get_by_role("slider", name="lr", exact=True)
        held.focus()
        held.press("ArrowUp")
        chosen = page.locator("#runs tr.chosen button").all_text_contents()
        assert chosen == ["FedDyn, lr 0.01, alpha 0.1", "FedDyn, lr 0.01, alpha 0.01"]
        area = held.bounding_box()
        x, top = area["x"] + area["width"] / 2, area["y"] + 6
        for to, count in ((150, 4), (20, 2)):  # three values by magnitude: 1 on top, 0.1 in the middle of 240 pixels
            page.mouse.move(x, top - 4)
            page.mouse.down()
            page.mouse.move(x, top + to)
            page.mouse.up()
            assert page.locator("#runs tr.chosen").count() == count
        assert "brush=" in page.url


def test_three_groups_over_each_other(home: Path, tmp_path: Path, page: Any) -> None:
    """Runs are said to be of their search and not of all runs, what was swept has an axis, and what a method's curves
    look like is one colour in different dashes."""
    make([home], tmp_path)
    page.goto((tmp_path / "index.html").as_uri())
    page.evaluate("state.groups = new Set(data.groups.map(({ name }) => name)); refresh()")
    assert data_groups(page)[-1].startswith("all runs")
    groups = page.locator("#runs td:nth-child(4)").all_text_contents()
    assert set(groups) == {str(home / "one"), str(home / "two"), f"search: {home / 'sweep'}"}
    axes = page.evaluate("axesOf(membersOfGroups()).axes.map(({ column }) => column.name)")
    assert axes[:3] == ["method", "lr", "alpha"]
    assert not {"rounds", "model.features", "model.classes", "every"} & set(axes)
    looks = page.evaluate("strands(membersOfGroups()).map(({ name, color, dash }) => [name.slice(0, 6), color, dash])")
    assert len({tuple(look) for look in looks}) == 2 + 6  # there are six dash patterns for the 8 curves of FedDyn
    assert {color for name, color, _ in looks if name == "FedDyn"} == {COLORS["FedDyn"]}
    assert {color for name, color, _ in looks if name == "FedAvg"} == {COLORS["FedAvg"]}
    figures = page.locator("#figure option").all_text_contents()
    assert "objective (mean of all devices)" in figures
    assert not any(name.startswith("all ") for name in figures)
    assert page.evaluate("shortened(['1.5912', '1.5931', '1.5950'], 3)") == ["1.591", "1.593", "1.595"]
    assert page.evaluate("shortened(['0.160519', '150', '-', '1234.5'])") == ["0.1605", "150", "-", "1234.5"]


def data_groups(page: Any) -> list[str]:
    found: list[str] = page.evaluate("data.groups.map(({ name }) => name)")
    return found


def test_targets_are_named_and_only_those_of_what_is_drawn(view: Any) -> None:
    view.evaluate("data.groups[0].targets = [0.2]; data.groups[1].targets = [0.4, 0.2]; refresh()")
    words = "(document.getElementById('plot').layout.annotations ?? []).map(({ text }) => text)"
    low, high = view.evaluate(words)
    assert low == "target 0.2"  # of both groups
    assert high.startswith("target 0.4 · ")
    view.locator("#filter").fill(data_groups(view)[0])
    view.wait_for_function(f"{words}.length === 1")
    view.locator("#figure").select_option("norms.h")
    assert view.evaluate(words) == []


def test_a_single_round_has_a_sensible_axis(view: Any) -> None:
    view.evaluate("""() => {
        for (const run of Object.values(data.runs)) {
            run.series = { round: [1], "models.all.accuracy": [0.25] };
        }
        state.figure = "models.all.accuracy";
        refresh();
    }""")
    assert view.evaluate("document.getElementById('plot').layout.yaxis.range") == [0, 1]


def test_no_name_of_six_devices_is_hidden(view: Any) -> None:
    """A legend has no part that only a scroll shows."""
    for legend in ("#legend", "#devices-legend"):
        assert view.locator(legend).evaluate("(one) => one.scrollHeight <= one.clientHeight + 1")
    view.set_viewport_size({"width": 390, "height": 800})
    assert view.locator("#devices-legend").evaluate("(one) => one.scrollHeight <= one.clientHeight + 1")


def test_devices_and_the_split(view: Any, home: Path) -> None:
    last = lines(home / "one/feddyn")[-1]["on_devices"]["accuracy"]
    drawn = {trace["name"]: trace for trace in traces(view, "spread-plot")}
    name = f"FedDyn · {home / 'one'}"
    assert drawn[f"{name}: worst"]["y"][-1] == pytest.approx(last["worst"])
    assert drawn[f"{name}: median"]["y"][-1] == pytest.approx(last["median"])
    (ends,) = (trace for trace in traces(view, "ends-plot") if trace["name"] == name)
    devices = json.loads((home / "one/feddyn/devices.json").read_text())
    assert ends["x"] == pytest.approx(sorted(devices["accuracy"]), rel=1e-5)
    counts = json.loads((home / "one/feddyn/classes.json").read_text())["samples"]
    heat, bars = traces(view, "split-plot")
    assert heat["z"] == [[row[label] / 30 for row in counts] for label in range(len(counts[0]))]
    assert bars["y"] == [30] * 6


def test_a_phone_and_three_hundred_runs(view: Any) -> None:
    """The page is as wide as the phone, tables scroll, and what is drawn and named has bounds."""
    view.set_viewport_size({"width": 390, "height": 800})
    for part in ("#runs", "#tables .scroll"):
        assert view.locator(part).first.evaluate("(part) => getComputedStyle(part).overflowX") == "auto"
    view.evaluate("""() => {
        const [group] = data.groups, run = data.runs[group.members[0].run];
        const long = Array.from({ length: 1000 }, (_, i) => i);
        for (let i = 0; i < 300; i++) {
            const series = { round: long, [run.figure]: long.map((x) => (x * i) % 7) };
            data.runs[`copy${i}`] = { ...run, id: `copy${i}`, series };
            group.members.push({ run: `copy${i}`, label: `copy ${i}`, status: "finished" });
        }
        refresh();
    }""")
    drawn = traces(view)
    assert len(drawn) == 304
    assert sum(len(trace["x"]) for trace in drawn) < 50_000
    assert max(max(trace["y"]) for trace in drawn) == 6  # no peak is lost
    assert view.locator("#legend button").count() == 16
    assert view.evaluate("document.documentElement.scrollWidth") <= 390
