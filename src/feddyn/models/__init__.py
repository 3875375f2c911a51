"""Networks as functions of one vector, and what helps to make them so."""

from feddyn.models import losses
from feddyn.models.norms import group_norm
from feddyn.models.standardised import standardise

__all__ = ["group_norm", "losses", "standardise"]
