"""What `feddyn theory` found, as tables and a figure."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from feddyn.theory.verification.identities import EXACT
from feddyn.theory.verification.measure import Measured, Point, line
from feddyn.theory.verification.practice import LIMIT, REDUCTIONS, Practice
from feddyn.theory.verification.survey import ACTIVE, DEVICES, ENUMERATED, PROBLEMS, SMALL, THEOREMS, Check, Result
from feddyn.views.drawing import figure
from feddyn.views.tables import Table

Found = Mapping[Check, Result]
DRAWN = 1.0
"""The heterogeneity of the figure."""


def theorem_table(name: str, found: Found) -> Table:
    """A theorem: measured left-hand side, bound and ratio at three T, the largest ratio at any, and the slope."""
    kind = THEOREMS[name]
    rows = []
    for job, result in _of(name, found):
        points = result.measured.points
        slope = result.slope
        exact = max(point.summed / point.sharp for point in result.enumerated.points)
        rows.append(
            [
                job.problem,
                f"{job.spread:g}",
                f"{DEVICES / job.P:g}",
                f"{result.measured.theorem.alpha:.4g}",
                *(_point(points[i]) for i in (len(points) // 2, -1)),
                f"{max(point.value / point.sharp for point in points):.2f}",
                f"{max(point.summed / point.sharp for point in points):.2f}",
                f"{max(point.value / point.printed for point in points):.2g}",
                f"{exact:.2f}",
                f"{slope.value:.3g} ± {slope.error:.1g}",
                f"{result.wanted:.3g}",
                "yes" if result.holds and result.steep_enough else "NO",
            ]
        )
    columns = ["losses", "spread", "m/P", "alpha", "T: measured / bound", "last T", "most", "sum", "printed", "exact"]
    against = "T" if kind.case == "strongly convex" else "log T"
    notes = [
        "spread: of the devices' optima, or true models. bound: as the proof has it. most: the largest measured / "
        "bound of all T. sum: the same of the sum that the proof bounds before Jensen's inequality. printed: as most, "
        "to the bound with rounded constants. exact: as sum, over all paths up to T = "
        f"{ENUMERATED}, by enumeration, {SMALL} devices, least alpha. slope: of log measured against {against}, "
        "beside the bound's. holds: every T with three standard errors to spare, the slope, and every lemma and "
        "identity.",
    ]
    title = f"{kind.method}, {kind.case} losses ({kind.source}), {DEVICES} devices"
    return Table(title, [*columns, "slope", "bound's", "holds"], rows, notes)


def scaling_table(found: Found) -> Table:
    """The exponent of m/P, measured and of the bound, at one T for all participations."""
    rows = []
    for name, kind in THEOREMS.items():
        for problem, spread in dict.fromkeys((job.problem, job.spread) for job, _ in _of(name, found)):
            series = [r.measured for job, r in _of(name, found) if (job.problem, job.spread) == (problem, spread)]
            T = min(one.points[-1].T for one in series)
            exponents = []
            for field in ("value", "sharp", "printed"):
                fit = line([_log_m_P(one) for one in series], [_at(one, T, field) for one in series])
                exponents.append(f"{fit.value:.2f} ± {fit.error:.2f}")
            rows.append([str(kind.method), kind.case, problem, f"{spread:g}", str(T), *exponents])
    participations = ", ".join(f"{DEVICES / P:g}" for P in ACTIVE)
    return Table(
        f"the power of m/P by which the value at one T grows, m/P = {participations}, at the recommended alpha",
        ["method", "case", "losses", "spread", "T", "measured", "bound", "printed bound"],
        rows,
    )


def lemma_table(found: Found) -> Table:
    """The inequalities of every proof: the largest left / right along random paths, and over all states."""
    rows = []
    for name, kind in THEOREMS.items():
        results = [result for _, result in _of(name, found)]
        lemmas = dict.fromkeys(lemma for result in results for lemma in result.audit.ratios)
        for lemma in lemmas:
            along = {
                problem: max(r.audit.ratios[lemma] for job, r in _of(name, found) if job.problem == problem)
                for problem in PROBLEMS
            }
            worst = max((result.suprema[lemma] for result in results if result.suprema), default=math.nan)
            violated = any(lemma in result.audit.violated for result in results) or worst > 1 + EXACT
            cells = [f"{value:.4f}" for value in (along["quadratic"], along["logistic"], worst)]
            rows.append([str(kind.method), kind.case, lemma, *cells, "NO" if violated else "yes"])
    rounds = sum(result.audit.histories for result in found.values())
    return Table(
        f"the lemmas, in expectation over all active sets of {SMALL} devices, {rounds:,} rounds of random paths",
        ["method", "case", "lemma", "quadratic", "logistic", "all states, quadratic", "holds"],
        rows,
        ["The largest left / right: of the rounds that were checked, and over all states of quadratics of spread 0."],
    )


def identity_table(found: Found) -> Table:
    """The equalities of the proofs, with their largest relative error."""
    rows = []
    for method in dict.fromkeys(kind.method for kind in THEOREMS.values()):
        audits = [result.audit for job, result in found.items() if THEOREMS[job.name].method == method]
        for name in dict.fromkeys(name for audit in audits for name in audit.errors):
            error = max(audit.errors[name] for audit in audits)
            rows.append([str(method), name, f"{error:.1e}", "yes" if error <= EXACT else "NO"])
    return Table("the identities", ["method", "identity", "largest relative error", f"below {EXACT:g}"], rows)


def practice_table(found: Mapping[Practice, Sequence[int | None]]) -> Table:
    """Rounds to converge, by conditioning, participation and alpha."""
    rows: dict[tuple[str, int, float], list[str]] = {}
    for trial, reached in found.items():
        for part, rounds in zip(REDUCTIONS, reached, strict=True):
            front = [f"{trial.condition} conditioned", f"{DEVICES / trial.P:g}", f"{part:g}"]
            cells = rows.setdefault((trial.condition, trial.P, part), front)
            cells.append(f"{LIMIT}+" if rounds is None else str(rounds))
    title = "rounds until l(gamma^t) - l_* has fallen to a part of its start, quadratics, exact minimisation"
    alphas = dict.fromkeys(f"alpha {trial.alpha:g} L" for trial in found)
    return Table(title, ["losses", "m/P", "part", *alphas], list(rows.values()))


def points_table(found: Found) -> Table:
    """Everything that was measured, for a spreadsheet."""
    columns = ["theorem", "losses", "spread", "m/P", "alpha", "how", "T", "measured", "error", "sum", "sum error"]
    columns += ["sharp", "printed"]
    rows = []
    for job, result in found.items():
        for how, measured in (("paths", result.measured), ("enumerated", result.enumerated)):
            theorem = measured.theorem
            front = [
                job.name,
                job.problem,
                f"{job.spread:g}",
                f"{theorem.m / theorem.P:g}",
                f"{theorem.alpha:.6g}",
                how,
            ]
            for T, *numbers in measured.points:
                rows.append([*front, str(T), *(f"{number:.6g}" for number in numbers)])
    return Table("all points", columns, rows)


def draw(found: Found, directory: Path) -> list[Path]:
    """Measured values and bounds over T, a panel a theorem."""
    canvas = figure(10.5, 6.2)
    names = [name for name in THEOREMS if any(True for _ in _of(name, found))]
    grid = canvas.subplots(math.ceil(len(names) / 3), min(len(names), 3), squeeze=False)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(grid.flat, names, strict=False):
        for index, (job, result) in enumerate(
            pair for pair in _of(name, found) if pair[0].spread == DRAWN and pair[0].problem == "quadratic"
        ):
            points = result.measured.points
            T = [point.T for point in points]
            axes.plot(T, [p.value for p in points], f"C{index}-", label=f"m/P = {DEVICES / job.P:g}", linewidth=1.2)
            axes.plot(T, [p.sharp for p in points], f"C{index}--", linewidth=0.9)
            axes.set_xscale("linear" if result.measured.linear else "log")
        axes.set_yscale("log")
        axes.set_title(f"{THEOREMS[name].method}, {THEOREMS[name].case}", fontsize=9)
        axes.grid(visible=True, linewidth=0.3, alpha=0.6)
        axes.set_xlabel("T", fontsize=8)
        axes.tick_params(labelsize=7)
    grid[0][0].legend(frameon=False, fontsize=7, title="measured; dashed: bound", title_fontsize=7)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"theory.{suffix}" for suffix in ("png", "pdf")]
    for path in paths:
        canvas.savefig(path, dpi=150)
    return paths


def _of(name: str, found: Found) -> list[tuple[Check, Result]]:
    return [(job, result) for job, result in found.items() if job.name == name]


def _point(point: Point) -> str:
    return f"{point.T}: {point.value:.2g} / {point.sharp:.2g} = {point.value / point.sharp:.2g}"


def _log_m_P(measured: Measured) -> float:  # noqa: N802
    return math.log(measured.theorem.m / measured.theorem.P)


def _at(measured: Measured, T: int, field: str) -> float:
    """The logarithm of a column at any T, between two that were measured."""
    points: Sequence[Point] = measured.points
    after = next(i for i, point in enumerate(points) if point.T >= T)
    if points[after].T == T:
        return math.log(getattr(points[after], field))
    low, high = points[after - 1], points[after]
    part = (math.log(T) - math.log(low.T)) / (math.log(high.T) - math.log(low.T))
    ends = (math.log(getattr(low, field)), math.log(getattr(high, field)))
    return ends[0] + part * (ends[1] - ends[0])
