"""What figures are called."""

MODELS = {"server": "server", "active": "mean of active devices", "all": "mean of all devices"}
"""The models that are reported, in words."""


def named(metric: str, model: str) -> str:
    """A metric and the model that it is of.

    >>> named("accuracy", "all")
    'accuracy (mean of all devices)'
    """
    return f"{metric} ({MODELS.get(model, model)})"
