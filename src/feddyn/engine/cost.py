"""What a simulated round costs."""

from feddyn.engine.wires import Traffic
from feddyn.round.cost import Cost


def cost(models: int, down: Traffic, up: Traffic, gradients: int) -> Cost:
    """The cost of a round, of which those who were lost or late are a part."""
    return Cost(models, sum(up), sum(down), gradients, up.in_vain + down.in_vain)
