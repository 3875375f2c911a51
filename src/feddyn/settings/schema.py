"""Tables of a setting checked against the signature of what they make: unknown, missing or ill-typed keys are named."""

import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import torch

from feddyn.errors import FeddynError, InputError, nearest
from feddyn.origin import told
from feddyn.wire import Compressor

T = TypeVar("T")


def parameters(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a class or function by their names, with their types."""
    found = _signature(make).parameters.items()
    unnamed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: parameter for name, parameter in found if parameter.kind not in unnamed}


def takes(make: Callable[..., Any], key: str) -> bool:
    """Whether a class or function has a parameter of a name, or takes any."""
    return key in parameters(make) or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in _signature(make).parameters.values()
    )


def check(
    make: Callable[..., Any], table: Mapping[str, Any], where: str, name: str = "", later: Collection[str] = ()
) -> None:
    """Refuse keys that `make` does not have, values of other types, and tables without a key that it needs and that is
    not filled in `later`; `name` says what is made if `where` does not."""
    known = parameters(make)
    what = f"{where} {name!r}" if name else where
    for key, value in table.items():
        if not takes(make, key):
            hint = nearest(key, known) if known else "it has no parameters"
            raise InputError(f"{where}.{key} is not known for {what}; {hint}")
        if key in known and not _fits(value, known[key].annotation):
            raise InputError(f"{where}.{key} must be {_say(known[key].annotation)}, not {value!r}")
    for key, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and key not in table and key not in later:
            raise InputError(f"{where}.{key} is missing: {what} needs it")


def build(make: Callable[..., T], table: Mapping[str, Any], where: str, name: str = "") -> T:
    """make(**table), after a check of every key and type; `name` says what is made if `where` does not."""
    check(make, table, where, name)
    try:
        return make(**table)
    except FeddynError:
        raise
    except Exception as error:  # whatever somebody's own code raises
        what = f"{where} {name!r}" if name else where
        raise InputError(f"{what} cannot be made of {dict(table)}: {told(error)}") from None


def choose(known: Mapping[str, T], table: Mapping[str, Any], key: str, where: str) -> T:
    """What a table's `key` names."""
    if key not in table:
        raise InputError(f"{where}.{key} is missing; known: {', '.join(sorted(known))}")
    name = table[key]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"{where}.{key} {name!r} is not known; {nearest(str(name), known)}")
    return known[name]


def _signature(make: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(make, eval_str=True)
    except Exception as error:  # whatever somebody's own annotations raise
        raise InputError(f"the parameters of {make!r} cannot be read: {told(error)}") from None


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type; one that cannot be checked is somebody else's to refuse."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if _is_list(origin):
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in value)
    if isinstance(origin, type):
        return isinstance(value, origin)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is Path:
        return isinstance(value, str | Path)
    return hint in (inspect.Parameter.empty, Any) or not isinstance(hint, type) or isinstance(value, hint)


def _is_list(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Sequence)


def _say(hint: Any) -> str:
    """A type in words."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_say(part) for part in get_args(hint) if part not in (type(None), torch.Tensor))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    if _is_list(origin):
        return f"a list, each {_say(get_args(hint)[0])}"
    return {
        float: "a number",
        int: "a whole number",
        str: "a text",
        Path: "a path",
        bool: "true or false",
        dict: "a table",
        Compressor: 'a table such as { name = "quantized", bits = 4 }',
    }.get(origin or hint, str(hint))
