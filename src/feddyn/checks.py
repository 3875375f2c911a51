"""Checks of parameters that many classes share; what is wrong is said in one sentence."""

import math
import sys
from numbers import Integral, Real

from feddyn.errors import InputError

LARGEST = 2**63 - 1
"""The largest whole number that TOML has."""


def require_number(where: str, name: str, value: object, *, zero: bool = False, below: float = math.inf) -> None:
    """Refuse a parameter that is not a finite number (or column of numbers) above zero; with `zero`, at it too."""
    torch = sys.modules.get("torch")  # who has a column has imported it; who has none need not
    if torch is not None and isinstance(value, torch.Tensor):
        if bool((value.isfinite() & ((value >= 0) if zero else (value > 0)) & (value < below)).all()):
            return
    elif isinstance(value, Real) and not isinstance(value, bool):
        number = _float(value)
        if math.isfinite(number) and (number > 0 or (zero and number == 0)) and number < below:
            return
    least = f"{'of at least' if zero else 'above'} 0{'' if below == math.inf else f' and below {below:g}'}"
    raise InputError(f"{where}: {name} must be a finite number {least}, not {_shown(value)}")


def require_whole(where: str, name: str, value: object, least: int, most: int = LARGEST) -> None:
    """Refuse a parameter that is not a whole number from `least` to `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        what = f"{where}: {name}" if where else name
        too_large = isinstance(value, Integral) and int(value) > most
        limits = f"of at most {most}" if too_large else f"of at least {least}"
        raise InputError(f"{what} must be a whole number {limits}, not {_shown(value)}")


def _float(value: Real) -> float:
    """The value as torch computes with it, which takes no whole numbers beyond 64 bits."""
    return math.inf if isinstance(value, Integral) and int(value) > LARGEST else float(value)


def _shown(value: object) -> str:
    """A value as Python writes it; whole numbers of hundreds of digits by their length."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"one of {value.bit_length()} binary digits"
    return repr(value)
