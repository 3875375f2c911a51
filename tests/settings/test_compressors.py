"""Compressors in settings: named, changed, switched off, and refused in a sentence that names the key."""

from typing import Any

import pytest

import feddyn
from feddyn.settings.building import plans
from feddyn.settings.documents import Document


def document(**other: Any) -> Document:
    return {
        "rounds": 3,
        "participation": 0.5,
        "population": {
            "source": "synthetic",
            "kind": "type1",
            "devices": 4,
            "samples": 20,
            "features": 3,
            "classes": 3,
        },
        "model": {"name": "linear"},
        "algorithm": {"name": "feddyn", "alpha": 0.1},
        "solver": {"lr": 0.1, "epochs": 1, "batch_size": 5},
        **other,
    }


def test_a_setting_names_compressors() -> None:
    values = {"name": "quantized", "bits": 4, "per": "block", "block": 64}
    ((_, plan),) = plans(
        document(uplink={"name": "topk", "fraction": 0.1, "values": values}, downlink={"name": "sign"})
    )
    assert plan.uplink == feddyn.TopK(0.1, feddyn.Quantized(4, "block", block=64))
    assert plan.downlink == feddyn.Sign()
    setting = plan.setting()
    assert setting["uplink"]["values"] == {**values, "rounding": "nearest"}
    ((_, again),) = plans(setting)
    assert again.setting() == setting


def test_values_without_a_compressor_are_sent_as_they_are() -> None:
    table = {"name": "topk", "fraction": 1, "values": {"name": "none"}}
    ((_, plan),) = plans(document(uplink=table))
    assert plan.uplink == feddyn.TopK(1.0)
    assert plan.setting()["uplink"] == {"name": "topk", "fraction": 1.0}


def test_methods_of_a_comparison_have_compressors_of_their_own_and_can_be_changed() -> None:
    entries = [
        {"algorithm": {"name": "feddyn", "alpha": 0.1}, "uplink": {"name": "quantized", "bits": 8}},
        {"algorithm": {"name": "fedavg"}, "uplink": {"name": "none"}},
        {"algorithm": {"name": "scaffold"}},
    ]
    common = document(uplink={"name": "quantized", "bits": 4}, compare=entries)
    del common["algorithm"]
    found = plans(common)
    assert [plan.uplink for _, plan in found] == [feddyn.Quantized(8), None, feddyn.Quantized(4)]
    found = plans(common, ["uplink.bits=2"])
    assert [plan.uplink for _, plan in found] == [feddyn.Quantized(2), None, feddyn.Quantized(2)]
    sparse = {"name": "topk", "fraction": 0.1, "values": {"name": "quantized", "bits": 4}}
    ((_, plan),) = plans(document(uplink=sparse), ["uplink.values.bits=2"])
    assert plan.uplink == feddyn.TopK(0.1, feddyn.Quantized(2))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"name": "zip"}, "uplink.name 'zip' is not known"),
        ({"bits": 4}, "uplink.name is missing"),
        ({"name": "quantized"}, "uplink.bits is missing"),
        ({"name": "quantized", "bits": 0}, "bits must be 8, 4, 2 or 1, not 0"),
        ({"name": "quantized", "bits": "4"}, "uplink.bits must be a whole number"),
        ({"name": "topk", "fraction": 2.0}, "at most 1, not 2.0"),
        ({"name": "topk", "fraction": 0.1, "values": {"name": "quantized"}}, "uplink.values.bits is missing"),
        ({"name": "topk", "fraction": 0.1, "values": 4}, "uplink.values must be a table such as { name = .*, not 4"),
        ({"name": "topk", "fraction": 0.1, "values": "quantized"}, "uplink.values must be a table such as { name"),
        ({"name": "topk", "fraction": 0.1, "values": {"name": "none", "bits": 4}}, "uplink.values.bits is not known"),
        ({"name": "quantized", "bits": 4, "block": 7}, "uplink.block 7 needs per = 'block'"),
        ({"name": "quantized", "bits": 1, "rounding": "stochastic"}, "uplink.rounding must be 'nearest' with one bit"),
        ({"name": "none", "bits": 4}, "uplink.bits is not known for uplink 'none'"),
    ],
)
def test_a_setting_that_cannot_be_meant_gets_a_sentence(table: Document, words: str) -> None:
    with pytest.raises(feddyn.InputError, match=words):
        plans(document(uplink=table))
