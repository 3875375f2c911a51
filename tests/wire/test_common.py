"""Downloads: devices that were away hear what they missed, and end with the same bits as those that were not."""

import pytest
import torch

import feddyn
from feddyn.wire import Compressor, Quantized, RandomK, TopK
from feddyn.wire.base import models_broadcast
from feddyn.wire.common import APART, KEPT, SUM, WHOLE, CommonModel, hear
from feddyn.wire.digits import Reader
from feddyn.wire.exact import read_exactly

SIZES = (150, 50)
ROUNDS = KEPT + 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "compressor", [Quantized(4), Quantized(2), TopK(0.1, Quantized(4)), TopK(0.1), RandomK(0.3)], ids=str
)
def test_whoever_was_away_ends_with_the_same_bits(compressor: Compressor, dtype: torch.dtype) -> None:
    """A walk of the server's model, and devices that hear every broadcast, every third one, and only the last. Each has
    what the server has, and nobody is sent more than the shortest of the three ways."""
    generator = torch.Generator().manual_seed(0)
    theta = start = torch.randn(200, generator=generator, dtype=dtype)
    common = CommonModel(compressor, SIZES, {"theta": start, "number": torch.ones(1)}, 3)
    moved = [torch.zeros(200, dtype=torch.float64) for _ in range(3)]
    for t in range(ROUNDS):
        theta = theta + 0.1 * torch.randn(200, generator=generator, dtype=dtype) / (1 + t)
        sent = common.broadcast({"theta": theta, "number": torch.full((1,), float(t))}, t)
        listening = [k for k, every in enumerate((1, 3, ROUNDS)) if (t + 1) % every == 0]
        lengths = common.lengths(sent, listening)
        for k, length in zip(listening, lengths, strict=True):
            missed = t + 1 - int(common.known[k])
            message = common.messages("theta", sent, {missed})[missed]
            assert length == len(message) + 4  # the number beside it is sent as it is
            moved[k] = hear(compressor, SIZES, moved[k], message)
            assert torch.equal((start + moved[k]).to(dtype), sent.down["theta"])
        assert sent.down["number"] == t
        common.commit(sent, listening)
    assert common.known.tolist() == [ROUNDS, ROUNDS // 3 * 3, ROUNDS]
    assert float((sent.down["theta"] - theta).norm()) < 0.5 * float((theta - start).norm())


def kinds(compressor: Compressor, missed: list[int]) -> tuple[list[int], dict[int, bytes], CommonModel]:
    generator = torch.Generator().manual_seed(0)
    theta = torch.zeros(200, dtype=torch.float64)
    common = CommonModel(compressor, SIZES, {"theta": theta}, 1)
    for t in range(ROUNDS):
        theta = theta + torch.randn(200, generator=generator, dtype=torch.float64)
        sent = common.broadcast({"theta": theta}, t)
        messages = common.messages("theta", sent, set(missed)) if t == ROUNDS - 1 else {}
        common.commit(sent, [])
    return [messages[count][0] for count in missed], messages, common


def test_the_shortest_way_is_taken() -> None:
    """Sums are short, and there are some as long as the server remembers."""
    found, messages, common = kinds(Quantized(4), [1, 5, KEPT + 1, KEPT + 2, ROUNDS])
    assert found == [APART, SUM, SUM, WHOLE, WHOLE]
    assert len(messages[5]) < 5 * len(messages[1]) / 2
    whole = read_exactly(Reader(messages[ROUNDS][2:-4]), SIZES)
    assert torch.equal(torch.from_numpy(whole), common.moved["theta"])


def test_what_does_not_add_up_exactly_is_sent_one_by_one() -> None:
    """w of about 2^40 and then two changes in steps of about 2^-15: float64 has 53 bits, so w + q1 + q2 is not
    w + (q1 + q2)."""
    start = torch.zeros(200, dtype=torch.float64)
    common = CommonModel(Quantized(8, step=1 / 64), SIZES, {"theta": start}, 1)
    generator = torch.Generator().manual_seed(0)
    states = [start]
    for power in (40, -9, -9):
        wanted = states[-1] + 2.0**power * torch.randn(200, generator=generator, dtype=torch.float64)
        sent = common.broadcast({"theta": wanted}, 0)
        messages = common.messages("theta", sent, {1, 2, 4})
        common.commit(sent, [])
        states.append(common.moved["theta"])
    assert [messages[count][0] for count in (1, 2, 4)] == [APART, APART, WHOLE]
    assert torch.equal(hear(common.compressor, SIZES, states[1], messages[2]), states[3])
    assert torch.equal(hear(common.compressor, SIZES, start, messages[4]), states[3])


def test_it_is_restored_to_the_same_bits() -> None:
    _, _, common = kinds(Quantized(4), [1])
    other = CommonModel(Quantized(4), SIZES, {"theta": torch.zeros(200, dtype=torch.float64)}, 1)
    other.restore(common.rounds, common.vectors())
    wanted = {"theta": torch.ones(200, dtype=torch.float64)}
    one, two = common.broadcast(wanted, 9), other.broadcast(wanted, 9)
    assert torch.equal(one.down["theta"], two.down["theta"])
    missed = {1, 2, 7, ROUNDS + 1}
    assert common.messages("theta", one, missed) == other.messages("theta", two, missed)


def test_changes_whose_own_sum_is_not_exact_are_sent_one_by_one() -> None:
    """w goes to -2^40, back to 0, and to 2^-20: every w + q is exact, and the sum of the last two q is not."""
    start = torch.zeros(200, dtype=torch.float64)
    common = CommonModel(Quantized(8), SIZES, {"theta": start}, 1)
    states = [start]
    for wanted in (-(2.0**40), 0.0, 2.0**-20):
        sent = common.broadcast({"theta": torch.full_like(start, wanted)}, 0)
        messages = common.messages("theta", sent, {2}) if wanted > 0 else {}
        assert sent.messages["theta"].exact
        common.commit(sent, [])
        states.append(common.moved["theta"])
    assert torch.equal(hear(common.compressor, SIZES, states[1], messages[2]), states[3])


@pytest.mark.parametrize("parameters", [1, 7])
def test_a_number_beside_a_model_of_one_parameter_is_sent_as_it_is(parameters: int) -> None:
    method, theta = feddyn.AdaBest(0.1, 0.5), torch.zeros(parameters)
    server = {name: vector + 7.3 for name, vector in method.server(theta).items()}
    start = method.broadcast(method.server(theta))
    common = CommonModel(Quantized(4), (parameters,), start, 3, models_broadcast(method, theta))
    assert list(common.moved) == ["theta"]
    assert torch.equal(common.broadcast(method.broadcast(server), 0).down["round"], server["round"])
