"""The page of a report while runs go on, served to this machine alone.

Only two addresses are answered, / and /data.json; no file is served, so that no path leads anywhere. A page of another
site cannot read them: browsers keep it from another origin, and a name that was bent to 127.0.0.1 (DNS rebinding) is
refused by the Host that the browser sends.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from feddyn.errors import InputError
from feddyn.records import comparison
from feddyn.records.layout import CLASSES, DEVICES
from feddyn.records.reader import RunRecord, read
from feddyn.reports import page
from feddyn.reports.page_runs import Document, of_record
from feddyn.reports.report import gather
from feddyn.search.driver import FILE as TRIALS

HOST = "127.0.0.1"
EVERY = 2.0
"""Seconds between two looks of a page."""
RECORD = ("setting.toml", "rounds.jsonl", "timings.jsonl", "summary.json", DEVICES, CLASSES)
WATCHED = {*RECORD, TRIALS, comparison.FILE, "candidates.csv", "table.csv"}
PASSED_OVER = ("checkpoint", "code")
"""Folders of records in which nothing is that a page shows."""
Stamps: TypeAlias = Mapping[Path, tuple[int, int]]


class Material:
    """What is in some directories, read again where it changed. A run has the version in which it last did."""

    def __init__(self, directories: Sequence[Path]):
        self._directories = directories
        self._records: dict[Path, tuple[list[Any], RunRecord]] = {}
        self._shown: dict[Path, tuple[RunRecord, Document]] = {}
        self._changed: dict[str, tuple[Document, int]] = {}
        self._stamps: Stamps | None = None
        self._lock = threading.Lock()
        self._version = time.time_ns() // 1_000_000  # later than those of a server before this one
        self._page: Document = page.data((), (), (), "")
        self._look(_stamps(directories))

    def news(self, seen: int) -> Document | None:
        """All that changed since a version, None: nothing."""
        with self._lock:
            try:
                stamps = _stamps(self._directories)
                if stamps != self._stamps:
                    self._look(stamps)
            except (InputError, OSError) as error:  # a directory is gone: what was there stays on the page
                self._stamps = None
                self._show({**self._page, "missing": [str(error)]})
            if seen == self._version:
                return None
            since = seen if seen < self._version else 0
            runs = {run: one for run, (one, version) in self._changed.items() if version > since}
            return {**self._page, "runs": runs, "version": self._version, "every": EVERY}

    def _look(self, stamps: Stamps) -> None:
        self._stamps = None  # unless all goes well, look again
        found = gather(self._directories, None, lambda path: self._read(path, stamps), self._document)
        self._show(found.page)
        self._stamps = stamps

    def _show(self, shown: Document) -> None:
        if shown == self._page:
            return
        self._version += 1
        self._page = shown
        before = self._changed
        self._changed = {
            run: known if (known := before.get(run)) and known[0] is one else (one, self._version)
            for run, one in shown["runs"].items()
        }

    def _read(self, path: Path, stamps: Stamps) -> RunRecord:
        stamp = [stamps.get(path / name) for name in RECORD]
        if path not in self._records or self._records[path][0] != stamp:
            self._records[path] = stamp, read(path)
        return self._records[path][1]

    def _document(self, record: RunRecord) -> Document:
        if record.path not in self._shown or self._shown[record.path][0] is not record:
            self._shown[record.path] = record, of_record(record)
        return self._shown[record.path][1]


def _stamps(directories: Sequence[Path]) -> Stamps:
    """When each file that a page is made of was last written, and its size."""
    found = {}
    for directory in directories:
        for parent, folders, files in os.walk(directory):
            folders[:] = [name for name in folders if name not in PASSED_OVER]
            for name in WATCHED.intersection(files):
                path = Path(parent, name)
                status = path.stat()
                found[path] = status.st_mtime_ns, status.st_size
    return found


class Server(ThreadingHTTPServer):
    """Serves the page of some directories on 127.0.0.1; port 0: one that is free."""

    daemon_threads = True

    def __init__(self, directories: Sequence[Path], port: int = 0):
        self.material = Material(directories)
        page.html({})  # whether it can be made is known before anybody asks
        try:
            super().__init__((HOST, port), _Answer)
        except OSError as error:
            raise InputError(
                f"port {port} of {HOST} cannot be taken ({error.strerror}): choose another --port, or leave it out"
            ) from None

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that is gone is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Answer(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if self.headers.get("Host") not in [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]:
            self._send(HTTPStatus.FORBIDDEN, "text/plain", f"this page is at {self.server.address} only\n")
        elif asked.path == "/":
            self._send(HTTPStatus.OK, "text/html", page.html(self.server.material.news(0) or {}))
        elif asked.path == "/data.json":
            (seen,) = parse_qs(asked.query).get("seen", ["0"])[:1]
            news = self.server.material.news(int(seen) if seen.isdecimal() and len(seen) < 20 else 0)
            status = HTTPStatus.NO_CONTENT if news is None else HTTPStatus.OK
            self._send(status, "application/json", "" if news is None else json.dumps(news, allow_nan=False))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is nothing here\n")

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody needs a line for every look of a page."""
