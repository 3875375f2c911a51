"""What figures are called."""

MODELS = {"server": "server", "active": "mean of active devices", "all": "mean of all devices"}
"""The models that are reported, in words."""


def named(metric: str, model: str) -> str:
    """A metric and the model that it is of.

    >>> named("accuracy", "all")
    'accuracy (mean of all devices)'
    """
    return f"{metric} ({MODELS.get(model, model)})"


def whose(model: str) -> str:
    """A model of a run.

    >>> whose("server"), whose("all"), whose("best")
    ("the server's model", "the mean of all devices' models", 'the best model')
    """
    if model in ("active", "all"):
        return f"the {MODELS[model]}' models"
    return "the server's model" if model == "server" else f"the {model} model"
