"""What figures of many curves look like."""

import pytest

from feddyn.records.labels import LABELS
from feddyn.settings.names import ALGORITHMS, METHODS
from feddyn.views.drawing import COLORS, PALETTE, figure, goals, legend, scale, styles


def test_every_method_is_written_in_one_way_and_has_a_colour() -> None:
    """Records have the name of its class, in lower case."""
    names = {algorithm.__name__.lower() for algorithm in ALGORITHMS.values()}
    assert set(LABELS) == names
    assert all(METHODS[name].label == label for name, label in LABELS.items())
    assert set(COLORS) == set(LABELS.values())
    assert len(set(COLORS.values())) == len(COLORS)


def test_a_method_keeps_its_colour_and_a_colour_that_repeats_is_dashed() -> None:
    found = styles(["FedAvg, lr 0.1", "FedAvg, lr 1", "FedDyn"])
    assert [look["color"] for look in found.values()] == [COLORS["FedAvg"], COLORS["FedAvg"], COLORS["FedDyn"]]
    assert found["FedAvg, lr 0.1"]["linestyle"] != found["FedAvg, lr 1"]["linestyle"]
    assert found["FedDyn"] == styles(["FedDyn"])["FedDyn"]
    many = [f"alpha {number}" for number in range(30)]
    looks = [tuple(look.values()) for look in styles(many).values()]
    assert len(set(looks)) == 30
    assert len({color for color, _ in looks}) == len(PALETTE)


@pytest.mark.parametrize(("count", "last"), [(5, "width 4, alpha 0.1, lr 0.01"), (40, "and 28 more")])
def test_long_names_stand_beside_the_axes_and_are_not_many(count: int, last: str) -> None:
    """Matplotlib's warnings are errors here."""
    pytest.importorskip("matplotlib")
    canvas = figure(4.6, 3.4)
    axes = canvas.add_subplot()
    for number in range(count):
        axes.plot([1, 2], [number, number + 1], label=f"width {number}, alpha 0.1, lr 0.01")
    legend(axes)
    canvas.draw_without_rendering()
    box, room = axes.get_legend().get_window_extent(), axes.get_window_extent()  # type: ignore[union-attr]
    assert box.x0 >= room.x1
    assert box.x1 <= canvas.bbox.x1
    assert box.y0 >= 0
    assert room.width > 3.5 * canvas.dpi  # the curves keep their room
    texts = [text.get_text() for text in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    assert texts[-1] == last
    assert len(texts) <= 13


def test_only_what_should_be_small_stands_by_magnitude() -> None:
    pytest.importorskip("matplotlib")
    for better, values, kind in (("lower", [0.1, 2.0], "log"), ("lower", [0.0, 2.0], "linear")):
        axes = figure(3, 3).add_subplot()
        scale(axes, better, values)  # type: ignore[arg-type]
        assert axes.get_yscale() == kind
    axes = figure(3, 3).add_subplot()
    scale(axes, "higher", [0.1, 0.9])
    assert axes.get_yscale() == "linear"


def test_a_target_says_its_value_and_takes_no_room_where_it_is_out_of_sight() -> None:
    pytest.importorskip("matplotlib")
    canvas = figure(4, 3)
    axes = canvas.add_subplot()
    axes.plot([1, 2], [0.97, 0.98])
    goals(axes, [0.5, 0.975, 0.976])
    axes.set_ylim(0.96, 0.99)
    canvas.draw_without_rendering()
    said = [(text.get_text(), text.get_verticalalignment()) for text in axes.texts]
    assert said == [("target 0.976", "bottom"), ("target 0.975", "top"), ("target 0.5", "bottom")]
    assert axes.get_window_extent().height > 2 * canvas.dpi
