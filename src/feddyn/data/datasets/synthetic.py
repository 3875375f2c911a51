r"""The paper's synthetic problem (appendix 'Synthetic Data'): multiclass logistic regression with one kind of
heterogeneity at a time.

Device i labels its points by its own linear model, y = argmax(theta*_i x + b*_i):

    type 1, other labels     theta*_i, b*_i ~ N(mu_i, 1) elementwise, mu_i ~ N(0, gamma_1)
                             off: one draw from N(0, 1) for all devices
    type 2, other features   x ~ N(nu_i, diag(k^-1.2)), nu_i ~ N(beta_i, 1) elementwise, beta_i ~ N(0, gamma_2)
                             off: nu_i = 0
    type 3, other sizes      log n_i ~ normal with variance gamma_3
                             off: all equal

The paper does not say gamma; here gamma_1 = gamma_2 = 1 and gamma_3 = 0.25 where a type is on (of log n, so that a
device has between a third and three times the median number of samples). Sizes are scaled to the mean asked for.
"""

from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch

from feddyn.checks import require_whole
from feddyn.data.stored import Stored, from_arrays
from feddyn.errors import InputError, nearest

Kind: TypeAlias = Literal["homogeneous", "type1", "type2", "type3"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LARGEST = 2**31
"""Numbers that a draw may have: 16 GB of them."""
GAMMA_1, GAMMA_2, GAMMA_3 = 1.0, 1.0, 0.25


def synthetic(
    kind: Kind, *, devices: int = 20, samples: int = 200, features: int = 30, classes: int = 5, seed: int = 0
) -> Stored:
    """A draw of the synthetic problem; `samples` is the mean number a device. It has no test set: train = test."""
    if kind not in KINDS:
        raise InputError(f"synthetic problem {kind!r} is not known; {nearest(str(kind), KINDS)}")
    for name, value, least in (
        ("devices", devices, 1),
        ("samples", samples, 1),
        ("features", features, 1),
        ("classes", classes, 2),
        ("seed", seed, 0),
    ):
        require_whole("synthetic problem", name, value, least)
    numbers = (devices * samples + classes) * features + samples * classes
    if numbers > LARGEST:
        raise InputError(
            f"synthetic problem: {devices} devices of {samples} samples with {features} features and {classes} classes "
            f"are {numbers} numbers, more than {LARGEST}: make it smaller"
        )
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    sizes = _sizes(rng, devices, samples) if kind == "type3" else np.full(devices, samples)
    deviation = np.arange(1, features + 1) ** -0.6  # the square root of the variances k^-1.2
    theta, bias = rng.standard_normal((classes, features)), rng.standard_normal(classes)
    x, y = [], []
    for size in sizes:
        mean = np.zeros(features)
        if kind == "type1":
            model = _around_a_mean_of_its_own(rng, GAMMA_1, classes * (features + 1))
            theta, bias = model[:-classes].reshape(classes, features), model[-classes:]
        if kind == "type2":
            mean = _around_a_mean_of_its_own(rng, GAMMA_2, features)
        points = rng.normal(mean, deviation, (size, features))
        x.append(points)
        y.append(np.argmax(points @ theta.T + bias, axis=1))
    return from_arrays(
        torch.from_numpy(np.concatenate(x)).float(),
        np.concatenate(y),
        np.repeat(np.arange(devices), sizes),
        origin={
            "source": "synthetic",
            "kind": kind,
            "devices": devices,
            "samples": samples,
            "features": features,
            "classes": classes,
            "seed": seed,
        },
    )


def _around_a_mean_of_its_own(rng: np.random.Generator, gamma: float, count: int) -> npt.NDArray[np.float64]:
    """A device's numbers: a mean ~ N(0, gamma), the same for all of them, and each ~ N(mean, 1)."""
    return rng.normal(rng.normal(0, np.sqrt(gamma)), 1, count)


def _sizes(rng: np.random.Generator, devices: int, mean: int) -> npt.NDArray[np.int64]:
    """Lognormal sizes, at least 1, scaled to the mean."""
    raw = rng.lognormal(0, np.sqrt(GAMMA_3), devices)
    return np.asarray(np.maximum(1, np.round(raw * mean / raw.mean())), dtype=np.int64)
