"""Renews what docs prints of its records: the parts of pages that stand between the lines

    <!-- results: NAME -->   and   <!-- end of results -->

the leaderboard's page, the figures of these pages and of docs/methods, and the measurements in joss/paper.md. What is
written by hand around them stays as it is.

    python -m benchmarks.results         # `make results`; takes in whatever records are in docs/results
"""

import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import feddyn
from benchmarks import compression, short_paper, standings
from feddyn.errors import InputError, nearest
from feddyn.paper.catalogue import COLUMNS, experiments
from feddyn.records.reader import RunRecord, find
from feddyn.reports.curves import curves_over_rounds
from feddyn.reports.leaderboard import page, summary
from feddyn.reports.paper import Comparison, Count, compared, table
from feddyn.reports.provenance import provenance
from feddyn.reports.records import entries
from feddyn.reports.report import gather
from feddyn.reports.standings import Standing
from feddyn.reports.standings import standings as standings_of
from feddyn.reports.study import verdicts
from feddyn.search.board import Board, Contest, read
from feddyn.settings.documents import read as read_document
from feddyn.settings.names import METHODS
from feddyn.views.tables import Table

DOCS = Path(__file__).parents[1] / "docs"
PART = re.compile(r"(<!-- results: (.+?) -->\n).*?(<!-- end of results -->)", re.DOTALL)
FIGURE = re.compile(r"\(figures/([^)]+)\.png\)")
MILESTONES = (4, 25, 50, 75, 100, 150, 200)
"""Rounds whose accuracies are shown of runs that are far from their targets."""


class Played(NamedTuple):
    """A leaderboard, and the standings of each of its settings."""

    board: Board
    results: list[list[Standing]]

    @property
    def contests(self) -> list[tuple[Contest, list[Standing]]]:
        """Its settings, with their standings."""
        return list(zip(self.board.contests, self.results, strict=True))


class Results:
    """The records of a documentation's folder, and what its pages say of them."""

    def __init__(self, docs: Path = DOCS):
        self.docs, self.home = docs, docs / "results"
        self.parts: Mapping[str, Callable[[str], str]] = {
            "tables": lambda _: self.tables(),
            "verdicts": lambda _: self.verdicts.markdown(),
            "computed": lambda folder: provenance(self.found(folder)).markdown(),
            "times": lambda source: self.times(source).markdown(),
            "seeds": lambda row: self.seeds(row).markdown(),
            "progress": lambda sources: self.progress(sources.split()).markdown(),
            "fractions": lambda words: self.fractions(*words.split()).markdown(),
            "compression": self.compressed,
            "winners": lambda folder: summary(*self.boards[folder]).markdown(),
            "paper": lambda name: self.short_paper(name),
            "standing": lambda method: standings.told(self.contests(), METHODS[method].label),
        }

    def found(self, folder: str) -> list[RunRecord]:
        """The records in a folder; one that cannot be read ends it, for its figures would be missed by nobody."""
        records, left_out = find([self.home / folder])
        if left_out:
            raise InputError("; ".join(left_out))
        return records

    @cached_property
    def records(self) -> list[RunRecord]:
        """The runs of the paper's experiments."""
        return self.found("records")

    @cached_property
    def boards(self) -> dict[str, Played]:
        """The leaderboards, by their folders, each with the settings of which there are runs."""
        own = Path(feddyn.__file__).parent / "search" / "leaderboard.toml"
        files = {"leaderboard": own, "fedsplit": DOCS / "results" / "settings" / "fedsplit.toml"}
        return {name: self.played(file, name) for name, file in files.items() if (self.home / name).exists()}

    def played(self, file: Path, folder: str) -> Played:
        """A leaderboard as far as there are runs of it, all of whose settings say what methods were tuned to."""
        whole = read(read_document(file), self.home / folder, file.parent)
        kept = [contest for contest in whole.contests if whole.home(contest).exists()]
        for contest in kept:
            if not any(whole.tuned(contest, label) for label in contest.methods):
                raise InputError(
                    f"{whole.home(contest)} does not say what methods were tuned to: copy tuned.json too, which "
                    "`feddyn leaderboard --show-only --out DIR` writes where the records of the candidates are"
                )
        board = replace(whole, contests=kept)
        return Played(board, [standings_of(board, contest) for contest in kept])

    def contests(self) -> list[tuple[Contest, list[Standing]]]:
        """The settings of all leaderboards."""
        return [pair for played in self.boards.values() for pair in played.contests]

    def tables(self) -> str:
        """The paper's tables, ours beside theirs."""
        found = ((experiment, entries(experiment, self.records)) for experiment in experiments().values())
        return "\n".join(table(experiment, mine).markdown() for experiment, mine in found if mine)

    def compared(self, name: str) -> list[Comparison]:
        """The rows of one of the paper's tables."""
        return compared(experiments()[name], entries(experiments()[name], self.records))

    @cached_property
    def verdicts(self) -> Table:
        """How many rows of the paper's tables were run, and agree with it."""
        return verdicts([e for e in experiments().values() if e.printed], self.records)

    def short_paper(self, name: str) -> str:
        """A paragraph of the short paper."""
        if name == "tables":
            printed = {e.name: self.compared(e.name) for e in experiments().values() if e.printed}
            return short_paper.tables(self.verdicts, printed)
        if name == "leaderboard":
            board, results = self.boards["leaderboard"]
            return short_paper.leaderboard(summary(board, results), len(board.contests[0].methods), board.trials)
        if name == "compression":
            return short_paper.compression(self.compressed("0.972"))
        return short_paper.speed((self.docs / "benchmark.md").read_text(encoding="utf-8"))

    def compressed(self, target: str) -> str:
        """Bytes until an accuracy, of compressed runs and the plain ones that they are held against."""
        return compression.table(float(target), [self.home / "records", self.home / "compressed"]) + "\n"

    def times(self, source: str) -> Table:
        """What the runs on a data set took."""
        rows = []
        for record in (record for record in self.records if record.setting["population"]["source"] == source):
            median, total = statistics.median(record.spent.values()), record.seconds / 60
            rows.append([_name(record), str(len(record.spent)), f"{median:.2f} s", f"{total:.1f} min"])
        return Table("times", ["run", "rounds", "median of a round", "in all"], rows)

    def seeds(self, words: str) -> Table:
        """Models transmitted until the lower targets, seed by seed; the words are an experiment and a part of its
        rows' names."""
        name, part = words.split()
        rows: dict[str, list[str]] = {}
        for one in self.compared(name):
            if part in one.row and one.target == min(t for row, t in experiments()[name].printed if row == one.row):
                cells = [[_counts(one.ours[method]), one.theirs[method]] for method in COLUMNS]
                rows[one.row] = [one.row, f"{one.target:g}%", *(cell for pair in cells for cell in pair)]
        heads = [word for method in COLUMNS for word in (METHODS[method].label, "paper")]
        note = "Each count is of one seed, in order, from 0. A plus: not reached by then. A dash: not run."
        return Table("lower targets, seed by seed", ["row", "accuracy", *heads], list(rows.values()), [note])

    def fractions(self, name: str, *parts: str) -> Table:
        """Our counts as fractions of the paper's, of an experiment's rows whose names begin with one of some parts."""
        rows = []
        for one in (one for one in self.compared(name) if one.row.startswith(parts)):
            cells = []
            for method in ("feddyn", "fedavg"):
                ours, theirs = one.ours[method], one.theirs[method]
                ratio = f"{ours.mean / int(theirs):.2f}" if ours and ours.mean and theirs.isdecimal() else "-"
                cells += [_counts(ours), theirs, ratio]
            rows.append([one.row, f"{one.target:g}%", *cells])
        heads = [*("FedDyn", "paper", "ours / paper"), *("FedAvg", "paper", "ours / paper")]
        return Table("models transmitted, as fractions of the paper's", ["row", "accuracy", *heads], rows)

    def progress(self, sources: Sequence[str]) -> Table:
        """How far the runs on some data sets are."""
        rows = []
        for record in (record for record in self.records if record.setting["population"]["source"] in sources):
            accuracies = {line["round"]: value for line, value in zip(record.evaluated, record.figures, strict=True)}
            reached = [f"{accuracies[at]:.1%}" if at in accuracies else "-" for at in MILESTONES]
            alpha = record.setting["algorithm"].get("alpha", "-")
            median = statistics.median(record.spent.values())
            ends = [f"{record.figures[-1]:.2%}", f"{record.best:.2%}", f"{median:.0f} s"]
            rows.append([_name(record), str(alpha), str(len(record.history)), *reached, *ends])
        heads = ["run", "alpha", "rounds", *(f"at {at}" for at in MILESTONES), "last", "best", "median of a round"]
        return Table("test accuracy of the mean of all devices' models, by round", heads, rows)

    def renewed(self, text: str) -> str:
        """A page with the parts between its marks made again."""

        def made(found: re.Match[str]) -> str:
            name, _, words = found[2].partition(" ")
            if name not in self.parts:
                raise InputError(f"results: {found[2]} is not known; {nearest(name, list(self.parts))}")
            return f"{found[1]}\n{self.parts[name](words)}\n{found[3]}"  # a table ends at an empty line

        return PART.sub(made, text)

    def pages(self) -> dict[Path, str]:
        """All pages of which something is made from records, as they should be."""
        texts = [*sorted(self.docs.rglob("*.md")), *self.docs.parent.glob("joss/paper.md")]
        marked = [path for path in texts if PART.search(path.read_text(encoding="utf-8"))]
        made = {path: self.renewed(path.read_text(encoding="utf-8")) for path in marked}
        boards = {self.home / name / "leaderboard.md": page(*played) for name, played in self.boards.items()}
        return made | boards

    def draw(self) -> None:
        """Draw the curves of the paper's runs that pages show, and those of the methods' pages."""
        groups = gather([self.home / "records"]).groups
        with TemporaryDirectory() as place:
            for name in FIGURE.findall("".join(path.read_text(encoding="utf-8") for path in self.home.glob("*.md"))):
                if name in groups:
                    picture, _ = curves_over_rounds(groups[name], Path(place), name)
                    standings.save_small(picture, self.home / "figures" / picture.name)
        for name, method in METHODS.items():
            if name == method.algorithm.__name__.lower():  # and no preset of another one
                standings.draw(self.contests(), method.label, self.docs / "methods" / "figures" / f"{name}.png")


def _name(record: RunRecord) -> str:
    """The name of a record without its hash."""
    return record.path.name.rpartition("-")[0]


def _counts(count: Count | None) -> str:
    if count is None:
        return "-"
    pairs = zip(count.counts, count.limits, strict=True)
    return ", ".join(f"{limit}+" if number is None else str(number) for number, limit in pairs)


def main() -> None:
    """Write all pages and figures that are not as they should be."""
    results = Results()
    for path, text in results.pages().items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"renewed: {path.relative_to(DOCS.parent)}\n")
    results.draw()


if __name__ == "__main__":
    main()
