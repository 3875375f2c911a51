"""What stands in a setting for something that exists only in memory: its name, and a hash of all that it does.

Functions are known by their code, what they close over, their default arguments and the names of their own module that
they use; objects by their class and what they hold; modules by their layers, parameters and attributes. Libraries do
not change under a run, so of their functions and classes the name is enough. What cannot be seen into (a lock, an open
file, compiled code) is named as `unseen`.
"""

import dis
import functools
import hashlib
import logging
import types
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from feddyn.origin import of_a_library

if TYPE_CHECKING:
    from feddyn.metrics import Evaluation

PLAIN: set[type] = {type(None), bool, int, float, complex, str, bytes, range, types.EllipsisType}
PLAIN |= {torch.dtype, torch.layout, torch.device, torch.memory_format}
"""What its representation tells all of."""
BOOKKEEPING = frozenset(vars(torch.nn.Module()))
COMPILED = (torch.jit.ScriptModule, torch.jit.ScriptFunction)


def raw_bytes(data: torch.Tensor) -> bytes:
    """The memory of a tensor of any type, for a hash."""
    return data.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def describe(part: object) -> dict[str, Any]:
    """A function, module or other object by its name and a hash; where something in it cannot be seen, also by that.

    >>> def scale(k):
    ...     return lambda x: k * x
    >>> describe(scale(1.0)) == describe(scale(1.0)), describe(scale(1.0)) == describe(scale(2.0))
    (True, False)
    """
    reader = _Reader()
    try:
        digest = reader.read(part, "")
    except RecursionError:
        digest, reader.unseen = "", {"what is nested too deeply"}
    return {"name": _qualified(part), "sha256": digest} | ({"unseen": sorted(reader.unseen)} if reader.unseen else {})


def unseen_in(*parts: object) -> dict[str, list[str]]:
    """What cannot be seen into in some objects, as `describe` says it; empty where there is nothing."""
    found = [name for part in parts for name in describe(part).get("unseen", ())]
    return {"unseen": found} if found else {}


def told_unseen(description: object) -> list[str]:
    """What a description, or one that stands anywhere in it, names as unseen."""
    if isinstance(description, Mapping):
        within = [name for part in description.values() for name in told_unseen(part)]
        described = isinstance(description.get("sha256"), str)  # others may have a parameter or a column of this name
        return [*description.get("unseen", ()), *within] if described else within
    if isinstance(description, list | tuple):
        return [name for part in description for name in told_unseen(part)]
    return []


def by_hash(description: object) -> bool:
    """Whether a description, or one that stands anywhere in it, is of something that exists only in memory."""
    if isinstance(description, Mapping):
        return "sha256" in description or any(map(by_hash, description.values()))
    return isinstance(description, list | tuple) and any(map(by_hash, description))


class _Reader:
    """Hashes whatever can be reached from an object; `unseen` collects what cannot be looked into."""

    def __init__(self) -> None:
        self.unseen: set[str] = set()
        self._hashes: dict[int, str] = {}
        self._open: dict[int, int] = {}
        self._alive: list[object] = []

    def read(self, part: object, where: str) -> str:
        """A hash of the part, which is reached by the path `where`."""
        if type(part) in PLAIN:
            return _hash([type(part).__name__, repr(part)])
        if id(part) in self._open:
            return f"as {len(self._open) - self._open[id(part)]} above"
        if id(part) not in self._hashes:
            self._alive.append(part)  # or another object could get its id
            self._open[id(part)] = len(self._open)
            self._hashes[id(part)] = _hash([type(part).__name__, *self._content(part, where)])
            del self._open[id(part)]
        return self._hashes[id(part)]

    def _all(self, named: Mapping[str, object], where: str) -> list[str]:
        return [f"{name} {self.read(value, f'{where}.{name}'.strip('.'))}" for name, value in sorted(named.items())]

    def _content(self, part: Any, where: str) -> Iterator[str]:
        if isinstance(part, types.ModuleType | logging.Logger):
            yield part.__name__ if isinstance(part, types.ModuleType) else part.name
        elif isinstance(part, types.CodeType):
            yield repr([part.co_code, part.co_names, part.co_varnames, part.co_freevars, part.co_flags])
            yield from (self.read(constant, where) for constant in part.co_consts)
        elif isinstance(part, types.FunctionType):
            yield from self._function(part, where)
        elif isinstance(part, type):
            yield from self._class(part, where)
        elif isinstance(part, COMPILED) or (isinstance(part, torch.Tensor) and part.is_meta):
            yield self._blind(part, where)
        elif isinstance(part, torch.nn.Module):
            yield from self._module(part, where)
        elif isinstance(part, torch.Tensor) and part.layout == torch.strided:
            yield repr((part.dtype, tuple(part.shape))) + hashlib.sha256(raw_bytes(part)).hexdigest()
        elif isinstance(part, np.ndarray) and not part.dtype.hasobject:
            yield repr((part.dtype.str, part.shape)) + hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest()
        elif isinstance(part, Mapping):
            yield from sorted(
                self.read(key, where) + self.read(value, f"{where}[{key!r}]") for key, value in part.items()
            )
        elif isinstance(part, list | tuple):
            yield from (self.read(item, f"{where}[{i}]") for i, item in enumerate(part))
        elif isinstance(part, set | frozenset):
            yield from sorted(self.read(item, where) for item in part)
        else:
            yield from self._object(part, where)

    def _function(self, function: types.FunctionType, where: str) -> Iterator[str]:
        yield _qualified(function)
        yield self.read(function.__defaults__, where) + self.read(function.__kwdefaults__, where)
        yield from self._all(vars(function), where)
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        yield from self._all({name: _inside(cell) for name, cell in zip(names, cells, strict=True)}, where)
        if not of_a_library(function):
            yield self.read(function.__code__, where)
            used = _globals(function.__code__)
            own = {name: value for name, value in function.__globals__.items() if name in used}
            yield from self._all(own, where)

    def _class(self, kind: type, where: str) -> Iterator[str]:
        yield _qualified(kind)
        if not of_a_library(kind):
            yield from (self.read(base, where) for base in kind.__bases__)
            functions = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property)
            own = {
                name: value
                for name, value in vars(kind).items()
                if isinstance(value, functions) or not (name.startswith("__") or name == "_abc_impl")
            }
            yield from self._all(own, where)

    def _module(self, module: torch.nn.Module, where: str) -> Iterator[str]:
        """Layers, parameters and buffers by name, hooks in their order, and attributes; not whether it trains."""
        yield self.read(type(module), where)
        inside = vars(module)
        for kind in ("_modules", "_parameters", "_buffers"):
            yield from self._all(inside[kind], where)
        hooks = [hook for name in sorted(BOOKKEEPING) if name.endswith("_hooks") for hook in inside[name].values()]
        yield self.read(hooks, f"{where}.hooks".strip("."))
        yield from self._all({name: value for name, value in inside.items() if name not in BOOKKEEPING}, where)

    def _object(self, part: Any, where: str) -> Iterator[str]:
        """Any other object, as it would be taken apart to be copied."""
        if isinstance(part, types.BuiltinFunctionType):
            yield part.__qualname__ + self.read(part.__self__, where)
        elif isinstance(part, types.MethodType):
            yield self.read(part.__func__, where) + self.read(part.__self__, where)
        elif isinstance(part, weakref.ref):
            yield self.read(part(), where)
        elif isinstance(part, staticmethod | classmethod):
            yield self.read(part.__func__, where)
        elif isinstance(part, property):
            yield "".join(self.read(function, where) for function in (part.fget, part.fset, part.fdel))
        elif isinstance(part, torch.Generator):
            yield self.read(part.get_state(), where)
        elif isinstance(wrapped := getattr(part, "__wrapped__", None), types.FunctionType):
            yield self.read(wrapped, where)
        else:
            try:
                pieces = part.__reduce_ex__(4)
            except Exception:  # whatever somebody's own class raises, it does not want to be taken apart
                yield self._blind(part, where)
                return
            if isinstance(pieces, str):
                yield _qualified(part)
                return
            make, arguments, state, *items = (*pieces, None, None, None)[:5]
            yield _qualified(make) + self.read(arguments, where)
            yield from self._all(state, where) if _named(state) else [self.read(state, where)]
            yield from (self.read(list(item), where) for item in items if item is not None)

    def _blind(self, part: object, where: str) -> str:
        kind = _qualified(type(part))
        self.unseen.add(f"{where} ({kind})" if where else kind)
        return kind


def _hash(parts: list[str]) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _qualified(part: object) -> str:
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}.{named.__qualname__}"


def _named(state: object) -> bool:
    return isinstance(state, dict) and all(isinstance(name, str) for name in state)


def _inside(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # what it is to hold is not made yet
        return None


def _globals(code: types.CodeType) -> set[str]:
    """The global names that a piece of code and the functions in it use."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return found.union(*map(_globals, inner))


def table(part: object) -> dict[str, Any]:
    """An algorithm, solver or compressor as a table: its name, the class's in lower case, and its parameters.

    >>> from feddyn.algorithms import FedDyn
    >>> table(FedDyn(alpha=0.1))
    {'name': 'feddyn', 'alpha': 0.1}
    """
    known = type(part).__module__.startswith("feddyn.")
    if not known:
        return {"memory": True, **describe(part), **fields_of(part)}
    return {"name": type(part).__name__.lower(), **fields_of(part)}


def evaluation_table(evaluation: "Evaluation") -> dict[str, Any]:
    """How models are evaluated, as a table: metrics of one's own by the hash of what they compute. What is not the
    default stands there only where it is asked for."""
    found: dict[str, Any] = {"every": evaluation.every, "models": list(evaluation.models)}
    if evaluation.metrics:
        found["metrics"] = [
            {"name": metric.name, "better": metric.better, **_unnamed(describe((metric.sums, metric.finish)))}
            for metric in evaluation.metrics
        ]
    return found | ({"devices": True} if evaluation.devices else {})


def _unnamed(description: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in description.items() if key != "name"}


def fields_of(part: object) -> dict[str, Any]:
    """A dataclass's fields that TOML can hold; None, and what a field's metadata has as `unsaid`, is said by leaving a
    field out."""
    if not is_dataclass(part):
        return {}
    values = {f.name: getattr(part, f.name) for f in fields(part) if getattr(part, f.name) is not None}
    unsaid = {f.name: f.metadata["unsaid"] for f in fields(part) if "unsaid" in f.metadata}
    return {name: _plain(value) for name, value in values.items() if name not in unsaid or value != unsaid[name]}


def _plain(value: object) -> object:
    """NumPy's and torch's numbers as Python's; what is no plain data by its description."""
    if isinstance(value, torch.Tensor | np.generic):
        return value.tolist()
    if is_dataclass(value) and type(value).__module__.startswith("feddyn."):
        return table(value)
    plain = isinstance(value, str | bool | int | float | list | tuple | dict)
    return value if plain else describe(value)
