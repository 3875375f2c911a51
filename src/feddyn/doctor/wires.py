"""Messages that are compressed too strongly, by what their sender had to leave out."""

from collections.abc import Sequence
from dataclasses import replace

from feddyn.doctor.evidence import Evidence, Finding, early_late

LEFT_OUT = 2.0
"""What is not sent of devices' updates, late, over what is, from which on compression slows a run; where it did not it
was 0.2 to 1.9, and 2.1 to 9 where it did (FedDyn on the synthetic problem; 4 bits to 2% of the coordinates)."""
NOT_HEARD, NOT_HEARD_WITHOUT_ALPHA = 1.5, 8.0
"""The same of broadcasts, for methods with an alpha and for others. FedDyn lost nothing up to 1.2 (4 bits, signs), and
accuracy at 1.9 to 3.4 (3% of the coordinates, a random 10%); FedAvg lost nothing up to 7.3, and both broke at 9."""


def compression(evidence: Evidence) -> Finding | None:
    """A compressor too strong for alpha. What a device did not send waits in its state, lambda_k = grad f_k + alpha_k
    e_k, and is asked for again with the strength alpha_k: the smaller alpha, the longer e_k gets."""
    words = "devices leave out most of what they found, and what was left out adds up"
    lengths = evidence.series("devices", "drift"), evidence.series("devices", "unsent")
    found = _left_out(evidence, "uplink", *lengths, LEFT_OUT, words)
    alpha = evidence.table("algorithm").get("alpha")
    if found is None or alpha is None:
        return found
    return replace(found, advice=f"{found.advice}, or a larger algorithm.alpha than {alpha:g}")


def compressed_broadcasts(evidence: Evidence) -> Finding | None:
    """Broadcasts compressed so strongly that devices work with a model that the server has long left."""
    words = "devices are sent little of what the server's model moves by, and work with one that it has left"
    sent, unsent = evidence.series("broadcast", "sent"), evidence.series("broadcast", "unsent")
    most = NOT_HEARD if "alpha" in evidence.table("algorithm") else NOT_HEARD_WITHOUT_ALPHA
    return _left_out(evidence, "downlink", sent[1:], unsent[1:], most, words)  # the first one has nothing to say


def _left_out(
    evidence: Evidence, wire: str, sent: Sequence[float], unsent: Sequence[float], most: float, words: str
) -> Finding | None:
    """A compressor that leaves out, to the end, at least so many times what it sends."""
    if not evidence.long or not unsent or min(sent) == 0:
        return None
    (before, now), (_, part) = early_late(unsent), early_late([a / b for a, b in zip(unsent, sent, strict=True)])
    if part < most:
        return None
    return Finding(
        f"{wire} compressed too strongly",
        words,
        {"not sent": f"{before:.3g} -> {now:.3g}", "not sent / sent late": f"{part:.2g}"},
        f"more bits, a smaller step or a larger fraction in [{wire}]",
    )
