"""Mutated settings and command lines: never a traceback, never a hang, always a sentence that names the field.

`python -m tests.test_fuzz SEED COUNT` tries more of them.
"""

import copy
import random
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import feddyn
from feddyn import cli
from feddyn.errors import FeddynError, InputError
from feddyn.runs.simulation import Simulation
from feddyn.settings.building import plans
from feddyn.settings.documents import read
from tests.cli.test_run import COMPARISON, SINGLE, SMALL

NAMES = ("algorithm.name", "solver.name", "model.name", "population.source")
MISSPELT = ("fedynn", "sdg", "lniear", "sythetic", "FedDyn", "sgd ", "5", "[]", "nosuch")
DOCUMENTS = (SINGLE, COMPARISON, SINGLE + "[links]\nlost = 0.1\n[target]\nmetric = 'accuracy'\nvalue = 0.9\n")
KEYS = (
    *("solver.lr", "solver.epochs", "solver.batch_size", "solver.halve_every", "algorithm.alpha", "rounds", "seed"),
    *("population.kind", "population.devices", "population.samples", "population.classes", "stack", "nosuch", "a.b.c"),
    *("evaluation.every", "participation", "algorithm", "solver", "", *NAMES),
)
VALUES: tuple[Any, ...] = (
    *(
        -1,
        0,
        0.0,
        -0.5,
        1.5,
        3,
        10**30,
        2**63 - 1,
        2**63,
        10**12,
        float("nan"),
        float("inf"),
        -float("inf"),
        1e308,
        1e-320,
    ),
    *("", "feddyn", "\u0000", "a" * 500, "nan", "../..", True, False, [], [[]], [1, "a"], {}, {"name": 3}, [[0, 99]]),
)


def mutate(document: dict[str, Any], dice: random.Random) -> tuple[dict[str, Any], str]:
    """A document with one thing changed, and the name of the field."""
    document = copy.deepcopy(document)
    table: Any = document
    key: Any = dice.choice(list(table))
    while isinstance(table[key], dict | list) and table[key] and dice.random() < 0.8:
        table = table[key]
        key = dice.choice(list(table) if isinstance(table, dict) else range(len(table)))
    kind = dice.random()
    if kind < 0.15 and isinstance(table, dict):
        del table[key]
    elif kind < 0.3 and isinstance(table, dict):
        key = dice.choice(["alhpa", "Rounds", "lr ", "", "x" * 50, "population.kind"])
        table[key] = 1
    else:
        table[key] = dice.choice(VALUES)
    return document, str(key)


def attempts(seed: int, count: int) -> Iterator[tuple[str, list[str], str]]:
    """A settings file, words for --set, and the field that was changed ('' where it cannot be known)."""
    dice = random.Random(seed)
    documents = [tomllib.loads(text) for text in DOCUMENTS]
    for _ in range(count):
        which = dice.random()
        index = dice.randrange(len(documents))
        if which < 0.6:
            document, field = mutate(documents[index], dice)
            yield tomli_w.dumps(document), [], field
        elif which < 0.8:
            key = dice.choice(KEYS)
            value = dice.choice(MISSPELT if key in NAMES else VALUES)
            yield DOCUMENTS[index], [f"{key}={value}"], key.split(".")[-1]
        else:
            text = list(DOCUMENTS[index])
            for _ in range(dice.randrange(1, 4)):
                text[dice.randrange(len(text))] = dice.choice('\n=[]"{}#.,-\u00e9 0')
            yield "".join(text), [], ""


def check(file: Path, text: str, changes: list[str], field: str) -> bool:
    """Whether an attempt is a setting; if not, it is refused in one sentence that names the field."""
    file.write_text(text, encoding="utf-8")
    try:
        for _, plan in plans(read(file), changes):
            Simulation(plan)
    except FeddynError as error:
        sentence = str(error)
        assert len(sentence.splitlines()) == 1 or "\n" in field, sentence
        assert field.strip() in sentence or field.isdigit(), (field, sentence, text)
        return False
    return True


def test_two_thousand_attempts(tmp_path: Path) -> None:
    found = [check(tmp_path / "my.toml", *attempt) for attempt in attempts(0, 2000)]
    assert 100 < sum(found) < 1500


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("algorithm.name=fedynn", "algorithm.name 'fedynn' is not known; did you mean 'feddyn'?"),
        ("solver.name=sdg", "solver.name 'sdg' is not known; did you mean 'sgd'?"),
        ("model.name=lniear", "model.name 'lniear' is not known; did you mean 'linear'?"),
        ("population.source=sythetic", "population.source 'sythetic' is not known; did you mean 'synthetic'?"),
        ("algorithm.name=5", "algorithm.name 5 is not known; known: adabest, centralised, "),
        ("algorithm=5", "--set algorithm=5: no method here has algorithm; did you mean 'algorithm.name'?"),
        ("rounds=99999999999999999999", "rounds must be a whole number of at most 9223372036854775807"),
    ],
)
def test_what_is_misspelt_or_huge_is_named(words: str, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        plans(tomllib.loads(SINGLE), [words])
    assert str(refused.value).startswith(sentence)


def test_another_method_comes_with_its_solver_population_and_name() -> None:
    """--set algorithm.name gives what the same name in the file gives."""
    for name, solver, devices in (("feddyn-onegd", feddyn.OneStep, 4), ("feddyn", feddyn.SGD, 4)):
        ((label, plan),) = plans(tomllib.loads(SINGLE), [f"algorithm.name={name}"])
        ((same, other),) = plans(tomllib.loads(SINGLE.replace('name = "feddyn"', f'name = "{name}"')))
        assert (label, plan.setting()) == (same, other.setting())
        assert type(plan.solver) is solver
        assert plan.population.devices == devices
    simple = tomllib.loads(SMALL + '[algorithm]\nname = "fedavg"\n')
    ((label, plan),) = plans(simple, ["algorithm.name=centralised"])
    assert (label, plan.population.devices, plan.participation) == ("Centralised", 1, 1.0)


@pytest.mark.parametrize("text", ["rounds = " + "9" * 5000, "a = " + "[" * 5000, "a = " + "{b = " * 5000])
def test_files_that_no_reader_takes(text: str, tmp_path: Path) -> None:
    """Numbers of thousands of digits, and tables in tables in tables."""
    (tmp_path / "my.toml").write_text(text)
    with pytest.raises(InputError, match="is not valid TOML"):
        read(tmp_path / "my.toml")
    with pytest.raises(InputError, match="rounds must be a whole number"):
        plans(tomllib.loads(SINGLE), [f"rounds={text.partition('=')[2]}"])


@pytest.mark.parametrize(
    "words", [["run", "--seed", "-1"], ["run", "--workers", "0"], ["resume"], ["nosuch"], ["run", "--x"]]
)
def test_words_that_mean_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(sys, "argv", ["feddyn", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        tried = attempts(int(sys.argv[1]), int(sys.argv[2]))
        print(sum(check(Path(folder) / "my.toml", *attempt) for attempt in tried), "were settings")
