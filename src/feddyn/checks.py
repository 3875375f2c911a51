"""Checks of parameters that many classes share; what is wrong is said in one sentence."""

from numbers import Integral, Real

import torch

from feddyn.errors import InputError


def require_number(where: str, name: str, value: object, *, zero: bool = False) -> None:
    """Refuse a parameter that is not a finite number (or column of numbers) above zero; with `zero`, at it too."""
    if isinstance(value, Real | torch.Tensor) and not isinstance(value, bool):
        number = value if isinstance(value, torch.Tensor) else torch.tensor(float(value), dtype=torch.float64)
        if bool((number.isfinite() & ((number >= 0) if zero else (number > 0))).all()):
            return
    raise InputError(f"{where}: {name} must be a finite number {'of at least' if zero else 'above'} 0, not {value!r}")


def require_whole(where: str, name: str, value: object, least: int) -> None:
    """Refuse a parameter that is not a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        what = f"{where}: {name}" if where else name
        raise InputError(f"{what} must be a whole number of at least {least}, not {value!r}")
