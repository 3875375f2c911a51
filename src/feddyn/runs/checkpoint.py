"""Checkpoints of a run: everything that the next round depends on, written so that a crash at any instant leaves the
one before or the new one whole.

    000120.server.safetensors    the server's state and the means that are reported, after round 120
    000120.devices.safetensors   the states of the devices that changed since the checkpoint before
    000120.json                  which files make up the checkpoint, their hashes, and where the record stood

The last file is written last and makes the checkpoint one. It has a hash of its own; a checkpoint of which any file is
missing or differs from its hash is passed over for the one before. Two are kept. Files of other names are left alone.
"""

import hashlib
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save

from feddyn.algorithms.base import Vector
from feddyn.batches import owned
from feddyn.engine.store import Store
from feddyn.errors import FeddynError, InputError
from feddyn.records.files import sha256, write_whole
from feddyn.records.lines import count, strictly, table, text

KEPT = 2
NAME = re.compile(r"(\.)?\d{6,}\.(json|(server|devices)\.safetensors)(?(1)\.part)")
"""Names of files of ours, or with a dot of those that are being written."""
ROWS = 64
"""Device states that are in memory at a time."""
TYPES = {torch.float32: "F32", torch.float64: "F64"}


class Position(NamedTuple):
    """Where a run stands after a round: counts so far, bytes of its record, and vectors by name."""

    round: int
    totals: Sequence[int]
    recorded: int
    vectors: Mapping[str, Vector]


class Checkpoints:
    """The checkpoints in a directory, of the run with this key; those with one of its `other` keys are its own too."""

    def __init__(self, directory: Path, key: str, *other: str):
        self.directory, self.key, self._keys = directory, key, {key, *other}
        self._segments: list[dict[str, Any]] = []
        self._damaged: set[str] = set()
        self.passed_over: list[str] = []

    def save(self, position: Position, store: Store, last: bool = False) -> None:
        """Write a checkpoint; of the devices only those that changed, unless most of what is on disk is out of date, or
        it is the last one, of which all is written and which replaces all others."""
        changed, name, segments = sorted(store.changed), f"{position.round:06d}", list(self._segments)
        if last or sum(segment["devices"] for segment in segments) + len(changed) > 2 * len(store.slots) + ROWS:
            changed, segments = sorted(store.slots), []
        try:
            self.directory.mkdir(exist_ok=True)
            if changed and store.width:
                file = self.directory / f"{name}.devices.safetensors"
                digest = write_whole(file, _rows(changed, store))
                segments.append({"file": file.name, "sha256": digest, "devices": len(changed)})
            file = self.directory / f"{name}.server.safetensors"
            vectors = owned(position.vectors)
            server = {"file": file.name, "sha256": write_whole(file, [save(vectors)])}
            body = {
                "key": self.key,
                "round": position.round,
                "totals": list(position.totals),
                "recorded": position.recorded,
                "server": server,
                "devices": segments,
            }
            text = json.dumps({"sha256": _digest(body), "checkpoint": body}, indent=1)
            write_whole(self.directory / f"{name}.json", [text.encode()])
        except OSError as error:
            kept = "the one before it is kept" if list(self.directory.glob("*.json")) else "there is none before it"
            raise FeddynError(
                f"the checkpoint after round {position.round} cannot be written to {self.directory} "
                f"({error.strerror}); {kept}; feddyn resume goes on when there is room"
            ) from None
        self._segments = segments
        self._damaged.discard(f"{name}.json")
        store.changed.clear()
        self._tidy(1 if last else KEPT)

    def load(self, store: Store) -> Position | None:
        """The newest whole checkpoint, its device states put into the store; None where there is none."""
        for file in self._newest():
            body = self._whole(file)
            if body is None:
                self._damaged.add(file.name)
                self.passed_over.append(file.name)
                continue
            self._segments = body["devices"]
            for segment in self._segments:
                for devices, rows in _read_rows(self.directory / segment["file"], store):
                    fresh = store.stage(devices)
                    store.write(fresh, store.named(rows))
                    store.commit(devices, fresh)
            store.changed.clear()
            server = self.directory / body["server"]["file"]
            try:
                vectors = load(server.read_bytes())
            except SafetensorError as error:
                raise _refusal(server, error) from None
            return Position(body["round"], body["totals"], body["recorded"], vectors)
        return None

    def _whole(self, file: Path) -> dict[str, Any] | None:
        """What a checkpoint says, if all of it is there as it was written; one of another setting is refused, and one
        that was altered and given its hashes again."""
        try:
            outer = table(strictly(file.read_bytes()), "it")
            body = table(outer.get("checkpoint"), "checkpoint")
            if outer.get("sha256") != _digest(body):
                return None
        except (OSError, ValueError, RecursionError):
            return None
        try:
            parts = _parts(body)
        except ValueError as error:
            raise _refusal(file, error) from None
        try:
            whole = all(sha256(self.directory / part["file"]) == part["sha256"] for part in parts)
        except (OSError, ValueError):
            return None
        if whole and body["key"] not in self._keys:
            raise InputError(
                f"the checkpoint {file} belongs to another setting (its run is {body['key']}, this one {self.key}): "
                "resume in the directory of its own run"
            )
        return body if whole else None

    @property
    def there(self) -> bool:
        """Whether there are any, whole or not."""
        return bool(self._newest())

    def remove(self) -> None:
        """Remove all checkpoints, and the directory unless it has something else."""
        with suppress(OSError):
            for file in self._own():
                file.unlink()
            self.directory.rmdir()

    def _own(self) -> list[Path]:
        """The files in the directory that have names of ours."""
        return [file for file in self.directory.iterdir() if NAME.fullmatch(file.name)]

    def _newest(self) -> list[Path]:
        """The naming files, of the latest round first."""
        named = [file for file in self._own() if file.suffix == ".json"] if self.directory.is_dir() else []
        return sorted(named, key=lambda file: int(file.stem), reverse=True)

    def _tidy(self, kept: int) -> None:
        """Remove what no checkpoint that is kept refers to."""
        whole = [file for file in self._newest() if file.name not in self._damaged]
        needed = {file.name for file in whole[:kept]}
        for file in whole[:kept]:
            body = json.loads(file.read_bytes())["checkpoint"]
            needed |= {part["file"] for part in (body["server"], *body["devices"])}
        for file in self._own():
            if file.name not in needed:
                file.unlink(missing_ok=True)


def _parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files of a checkpoint, of which everything else is as it should be."""
    for name in ("round", "recorded"):
        count(body, name)
    totals, devices = body.get("totals"), body.get("devices")
    if not isinstance(totals, list) or not isinstance(devices, list):
        raise ValueError("totals and devices are not both lists")
    for total in totals:
        count({"a total": total}, "a total")
    for segment in devices:
        count(table(segment, "a segment"), "devices")
    parts = [table(body.get("server"), "server"), *devices]
    for part in parts:
        text(part, "sha256")
        if Path(name := text(part, "file")).name != name:
            raise ValueError(f"the file {name!r} is not one beside it")
    text(body, "key")
    return parts


def _refusal(file: Path, why: object) -> FeddynError:
    words = f"the checkpoint file {file} is not what it should be ({why})"
    return FeddynError(f"{words}: remove all files of its round to go on from the checkpoint before it")


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _rows(devices: Sequence[int], store: Store) -> Iterator[bytes]:
    """A safetensors file of device numbers and their rows, made piece by piece: it may be larger than memory."""
    numbers = torch.tensor(devices, dtype=torch.int64).numpy().tobytes()
    size = len(devices) * store.width * store.dtype.itemsize
    header = json.dumps(
        {
            "devices": {"dtype": "I64", "shape": [len(devices)], "data_offsets": [0, len(numbers)]},
            "rows": {
                "dtype": TYPES[store.dtype],
                "shape": [len(devices), store.width],
                "data_offsets": [len(numbers), len(numbers) + size],
            },
        }
    ).encode()
    header += b" " * (-len(header) % 8)
    yield struct.pack("<Q", len(header)) + header + numbers
    for at in range(0, len(devices), ROWS):
        rows = store.read([store.slots[k] for k in devices[at : at + ROWS]])
        yield rows.contiguous().view(torch.uint8).numpy().tobytes()


def _read_rows(file: Path, store: Store) -> Iterator[tuple[list[int], torch.Tensor]]:
    try:
        with safe_open(file, framework="pt") as opened:
            numbers, rows = opened.get_tensor("devices"), opened.get_slice("rows")
            if numbers.dtype != torch.int64 or numbers.dim() != 1 or bool((numbers.diff() <= 0).any()):
                raise ValueError("its devices are not numbers in rising order")
            devices: list[int] = numbers.tolist()
            if not devices or devices[0] < 0 or devices[-1] >= store.devices:
                raise ValueError(f"its devices are not from 0 to {store.devices - 1}")
            if rows.get_shape() != [len(devices), store.width] or rows.get_dtype() != TYPES[store.dtype]:
                raise ValueError("its states are of another shape or type than the devices'")
            for at in range(0, len(devices), ROWS):
                yield devices[at : at + ROWS], rows[at : at + ROWS]
    except (SafetensorError, KeyError, ValueError) as error:
        raise _refusal(file, error) from None
