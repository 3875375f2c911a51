"""`feddyn report --live`: the page while runs go on."""

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from feddyn.errors import InputError
from feddyn.reports.live import Server
from feddyn.reports.report import _about
from tests.cli.test_run import call
from tests.reports.test_curves import record
from tests.reports.test_damage import write_record


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, Server]]:
    """A folder without records yet, and the server of its page."""
    home = tmp_path / "runs"
    home.mkdir()
    with Server([home]) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield home, server
        server.shutdown()
        thread.join()


def ask(server: Server, path: str, host: str | None = None) -> tuple[int, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", server.server_port)
    link.request("GET", path, headers={"Host": host} if host else {})
    reply = link.getresponse()
    found = reply.status, reply.read()
    link.close()
    return found


def test_only_this_machine_and_only_the_page(served: tuple[Path, Server]) -> None:
    home, server = served
    (home / "secret").write_text("secret")
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, "/")[0] == 200
    for path in ("/secret", "/../secret", "/%2e%2e/runs/secret", f"/{home}/secret"):
        assert ask(server, path)[0] == 404
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1"):
        status, text = ask(server, "/data.json", host)
        assert status == 403
        assert b"runs" not in text
    assert ask(server, "/data.json", f"localhost:{server.server_port}")[0] == 200


def test_only_what_changed_is_sent(served: tuple[Path, Server]) -> None:
    home, server = served
    write_record(home / "a")
    shutil.copytree(home / "a", home / "b")
    first = json.loads(ask(server, "/data.json")[1])
    assert len(first["runs"]) == 2
    assert ask(server, f"/data.json?seen={first['version']}") == (204, b"")
    (home / "b" / "summary.json").unlink()
    second = json.loads(ask(server, f"/data.json?seen={first['version']}")[1])
    (changed,) = second["runs"].values()
    assert changed["name"] == "b"
    assert len(second["groups"][0]["members"]) == 2
    shutil.rmtree(home)
    gone = json.loads(ask(server, "/data.json")[1])
    assert "there is no directory" in gone["missing"][0]
    assert len(gone["runs"]) == 2


def test_new_rounds_and_runs_come_up_and_the_view_stays(served: tuple[Path, Server], page: Any) -> None:
    home, server = served
    page.goto(server.address)
    assert page.locator("#nothing").is_visible()
    write_record(home / "a")
    page.wait_for_function("document.querySelectorAll('#runs tr.run').length === 1")
    page.locator("#filter").fill("feddyn")
    page.locator("#runs tr.run input").check()
    page.evaluate("Plotly.relayout('plot', { 'xaxis.range[0]': 1.5, 'xaxis.range[1]': 2.5 })")
    rounds = home / "a" / "rounds.jsonl"
    line = json.loads(rounds.read_text().splitlines()[-1])
    (home / "a" / "summary.json").unlink()
    with rounds.open("a") as file:
        file.write(json.dumps(line | {"round": 4}) + "\n")
    page.wait_for_function("document.getElementById('plot').data[0].x.length === 4")
    shutil.copytree(home / "a", home / "b")
    page.wait_for_function("document.querySelectorAll('#runs tr.run').length === 2")
    assert page.locator("#filter").input_value() == "feddyn"
    assert page.locator("#runs tr.chosen").count() == 1
    assert page.evaluate("document.getElementById('plot').layout.xaxis.range") == [1.5, 2.5]
    server.shutdown()
    server.socket.close()
    page.wait_for_function("document.getElementById('live').textContent.startsWith('No longer live')")


def test_one_is_not_many() -> None:
    """The head of the page while the first round of the first run is all there is."""
    first = record(0.1, [0.5])
    assert _about([first], 0) == "1 run, 1 round, 1 s of computing."
    assert _about([first, record(0.1, [0.5, 0.6])], 2).startswith(
        "2 runs, 3 rounds, 2 s of computing; and 2 candidates"
    )


def test_what_cannot_be_served_is_said(
    served: tuple[Path, Server], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, server = served
    for words, said in (
        (("--live", "--port", str(server.server_port)), "choose another --port"),
        (("--live", "--out", "x"), "leave out --out"),
        (("--port", "18000"), "--port is for --live"),
    ):
        assert call("report", str(home), *words, monkeypatch=monkeypatch) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(InputError, match="there is no directory"):
        Server([home / "nowhere"])


def test_ctrl_c_ends_it_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupt)
    assert call("report", "--live", str(tmp_path), monkeypatch=monkeypatch) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("open http://127.0.0.1:")
    assert last == "the page is no longer served; the records are as they were"
