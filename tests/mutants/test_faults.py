"""The list of faults does not rot: each still has its place, and names tests that exist."""

from collections import Counter

import pytest

from tests.mutants.__main__ import MARK, PAGE, table
from tests.mutants.faults import ROOT, SOURCE, Fault, faults

ALL = faults()


@pytest.mark.parametrize("fault", ALL, ids=[fault.name for fault in ALL])
def test_a_fault_applies_and_names_tests_that_exist(fault: Fault) -> None:
    text = (SOURCE / fault.file).read_text()
    assert text.count(fault.find) == 1
    assert fault.applied(text) != text
    compile(fault.applied(text) or "", fault.file, "exec")
    assert fault.tests
    for test in fault.tests:
        file, _, function = test.partition("::")
        assert not function or f"def {function.partition('[')[0]}(" in (ROOT / file).read_text(), test


def test_names_are_unique_and_there_are_many() -> None:
    assert max(Counter(fault.name for fault in ALL).values()) == 1
    assert len(ALL) >= 90


def test_a_text_that_is_there_twice_or_not_at_all_has_no_place() -> None:
    fault = Fault("name", "algorithms/fedavg.py", "a", "b", ("tests",))
    assert fault.applied("a c") == "b c"
    assert fault.applied("a a") is None
    assert fault.applied("c") is None


def test_the_table_in_the_documentation_is_of_these_faults() -> None:
    """Every fault is there as killed or explained, by room, as if each had met its fate."""
    expected = table([(fault, "explained" if fault.explained else "killed") for fault in ALL])
    assert PAGE.read_text().partition(MARK)[2] == "\n" + expected
