"""Searches as tables: the candidates of one, and the paper's."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from feddyn.paper.searches import PaperSearch, SearchedRow
from feddyn.reports import synthetic
from feddyn.search.driver import Searching
from feddyn.search.space import Outcome, SearchedMethod
from feddyn.views.tables import Table, sparkline, transmitted

SHOWN = 8
"""Candidates of a method in the table on the terminal; the file has all."""


def save(searching: Searching) -> Table:
    """Write the candidates of a search that has ended beside them; the best of them."""
    candidates(searching.methods, searching.found).save(searching.directory, "candidates")
    return candidates(searching.methods, searching.found, SHOWN)


def save_paper(search: PaperSearch, found: Mapping[SearchedRow, Searching], out: Path) -> list[Table]:
    """The tables of the rows whose searches are complete, with every seed; they are written into the directory too."""
    whole = {row: known for row, searching in found.items() if (known := searching.known()) is not None}
    rows = [row for row in whole if all(other in whole for other in found if other.row == row.row)]
    if search.name == "synthetic":
        draws = [synthetic.Draw(row.row, row.seed, whole[row], row.optimum()) for row in rows]
        made = synthetic.tables(draws, rows[0].document["rounds"]) if rows else ()
        for table, stem in zip(made, ("table", "best"), strict=False):
            table.save(out / search.name, stem)
        return list(made)
    return [save(found[row]) for row in rows]


def candidates(methods: Sequence[SearchedMethod], found: Sequence[Outcome], most: int | None = None) -> Table:
    """The candidates of each method, the best first, and of each at most so many."""
    rows, left_out, targets = [], 0, any("target" in method.document for method in methods)
    for method in methods:
        mine: dict[str, Outcome] = {}
        for outcome in found:  # values that were drawn twice stand there once
            name = outcome.candidate.name
            if outcome.candidate.label == method.label and (name not in mine or outcome.rank < mine[name].rank):
                mine[name] = outcome
        ranked = sorted(mine.values(), key=lambda outcome: outcome.rank)
        left_out += len(ranked[most:]) if most else 0
        for place, outcome in enumerate(ranked[:most], 1):
            words = outcome.candidate.words or "as it is"
            count = [transmitted(outcome.transmitted, outcome.sent)] if targets else []
            curve = sparkline([value for value in outcome.curve.get(outcome.metric, ()) if value is not None])
            end = [outcome.figure, curve, str(outcome.rounds), outcome.status]
            rows.append([method.label, str(place), words, *count, *end])
    target = ["models transmitted until the target"] if targets else []
    columns = ["method", "rank", "values", *target, "best figure", "over rounds", "rounds", "status"]
    notes = [f"{left_out} more in candidates.csv."] if left_out else []
    return Table("candidates, the best of each method first", columns, rows, notes)
