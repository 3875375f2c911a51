"""Tables of a setting checked against the signature of what they make: unknown, missing or ill-typed keys are named."""

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import torch

from feddyn.errors import InputError, nearest

T = TypeVar("T")


def parameters(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a class or function, with their types."""
    return dict(inspect.signature(make, eval_str=True).parameters)


def build(make: Callable[..., T], table: Mapping[str, Any], where: str, name: str = "") -> T:
    """make(**table), after a check of every key and type; `name` says what is made if `where` does not."""
    known = parameters(make)
    what = f"{where} {name!r}" if name else where
    for key, value in table.items():
        if key not in known:
            hint = nearest(key, known) if known else "it has no parameters"
            raise InputError(f"{where}.{key} is not known for {what}; {hint}")
        if not _fits(value, known[key].annotation):
            raise InputError(f"{where}.{key} must be {_say(known[key].annotation)}, not {value!r}")
    for key, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and key not in table:
            raise InputError(f"{where}.{key} is missing: {what} needs it")
    try:
        return make(**table)
    except InputError:
        raise
    except (ValueError, TypeError, RuntimeError, MemoryError, OverflowError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{what} cannot be made of {dict(table)}: {why}") from None


def choose(known: Mapping[str, T], table: Mapping[str, Any], key: str, where: str) -> T:
    """What a table's `key` names."""
    if key not in table:
        raise InputError(f"{where}.{key} is missing; known: {', '.join(sorted(known))}")
    name = table[key]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"{where}.{key} {name!r} is not known; {nearest(str(name), known)}")
    return known[name]


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is not None and issubclass(origin, Sequence):
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _say(hint: Any) -> str:
    """A type in words."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_say(part) for part in get_args(hint) if part not in (type(None), torch.Tensor))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    if origin is not None:
        return f"a list, each {_say(get_args(hint)[0])}"
    return {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}.get(hint, str(hint))
