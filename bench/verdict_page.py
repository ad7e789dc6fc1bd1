"""The words and tables of docs/results.md that `bench.verdicts` fills with figures. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.verdict_rules import Rule, a_year
from pipeline.verdict import noise

DROPS = (0.01, 0.02, 0.03, 0.05, 0.1)

LEAST_SHOWN = 0.0001
ONE_PERCENT = 0.01
TWO_DIGITS = 9.95
"""Percent that no longer fit with a decimal."""

SUMMED_SIZE = 200
SUMMED_RULES = (Rule.PLAIN, Rule.MCNEMAR, Rule.MANY)

HEAD = """\
## How often the verdict is right

Made by

    python -m bench.verdicts --write

`a run`: the chance, in %, that a run is called regressed though nothing changed. `a year`: that at
least one of {weeks} weekly runs is, 1 - (1 - p)^{weeks} (where one calibration serves all year, at
most that). `1` to `10`: how often, in %, a true drop of so many points is found. A drop takes hits
away from the second run of a pair; half a question is taken in half of the pairs. Noise is the
flip rate f: how often a question is lost, and how often won, though nothing changed.

- `plain`: hit@{k} fell by more than {max_drop:g} against the previous run.
- `McNemar`: two-sided exact p of the changed questions at most {mcnemar:g}, and more lost than won.
- `ours, f known`: net lost questions, alpha {alpha:g}, with the true f. At noise 0 it stands for
  exact search that was never calibrated: {unknown} net lost.
- `ours, 4 A/A`: the same with f counted in 4 A/A pairs, the fewest that `calibrate` takes; and more
  than the largest net change between any two of the 5 rounds, and than Student's t allows for how
  much whole rounds vary, which holds for questions that move together too.
- `ours, 12 A/A`: with 12 pairs, what `calibrate --reindex` takes unless told otherwise.
- `ours, loss`: without a calibration; f and the variation of whole builds are bounded by the index
  loss (pipeline/verdict/builds.py; the bound was set after a first making of this page).
- `4 A/A, no t` is not in use. It stands here to show what Student's t is for.
"""

IN_SHORT = """\
### In short

{n} questions, in %: years with a false alarm / drops of 2 / of 5 points found.

Where each question flips alone, or exact search is judged, the gate keeps its promise, or misses
it by a point or two, as A/A pairs tell the flip rate only roughly. It pays with what it does not
see: through 1 % noise so few questions show no 2 points, and the plain rule finds them in four of
ten runs because it is always near alarm. More questions, or exact search, show them; and each
verdict says which drop it could not have seen.

Where an index is rebuilt, questions move together, and some builds are simply worse than others,
for the users too. Builds are not normal, so that even with Student's t the gate has more false
alarms there than it promises, and sees only large drops. Exact search has no such noise: it tells
a worse corpus from 4 net lost questions on, whatever the index does.
"""

SIMULATED = """\
### Simulated noise

{questions:,} questions of the five collections, hit@{k} {share:.3f} by exact vector search, n of
them drawn for each of {trials:,} pairs. Every question flips alone, and those of a kind alike, so
of the real results only the share of hits matters. False alarms are exact (the trinomial's tail,
for calibrated rules over the {trials:,} calibrations drawn); drops are counted.
"""

SPREAD_OUT = """\
### Simulated noise that moves questions together

As above, but each measurement has rates of its own, from beta distributions whose standard
deviation is {spread:g} times the mean, about what the real rebuilds below show. All is
counted: one false alarm in {trials:,} pairs is {one:.2g} % a run.
"""

REBUILT = """\
### Real HNSW rebuilds

The same questions on pgvector's indexes (m 16, ef_construction 64) of the same rows, built anew by
REINDEX: each build is a measurement of the same thing. A year here is one in which the index is
rebuilt before every weekly run. Without a rebuild there is no noise: asked twice, the same index
changed {twice} questions. Nor is there any in exact search: before and after all rebuilds it
differed in {changed}, so that for what exact search finds the table of noise 0 holds.

A pair to judge and {rounds} rounds to calibrate on, no build twice, are drawn {draws:,} times,
with fresh questions. Dispersion is the mean square of the net change over what independent flips
would give: 1 where questions flip alone. So few builds come again and again in the draws, and what
they say of chances far below 1 % a run is rough; a single bad one among them weighs much.
"""


@dataclass(frozen=True)
class Line:
    """What a rule did: its chance of a false alarm a run, and of finding each of DROPS."""

    n: int
    rule: Rule
    alarm: float
    found: Sequence[float]


@dataclass(frozen=True)
class Table:
    """The lines of one noise, under its title."""

    title: str
    lines: Sequence[Line]

    def text(self) -> str:
        """Return the table as Markdown; all but the first two columns are in percent."""
        return "\n".join((f"#### {self.title}\n", *_rows(self.lines), "", promise(self.lines)))


def _rows(lines: Iterable[Line]) -> Iterator[str]:
    drops = " | ".join(f"{100 * drop:g}".rjust(4) for drop in DROPS)
    yield f"| {'n':>4} | {'rule':<13} | {'a run':>5} | {'a year':>6} | {drops} |"
    yield f"|---:|---|---:|---:|{'---:|' * len(DROPS)}"
    for line in lines:
        found = " | ".join(percent(share).rjust(4) for share in line.found)
        year = percent(a_year(line.alarm))
        yield f"| {line.n:>4} | {line.rule:<13} | {percent(line.alarm):>5} | {year:>6} | {found} |"


def percent(share: float) -> str:
    """Write a share in percent, short: 0, <0.01, 0.13, 4.9, 49, >99, 100."""
    if 0 < share < LEAST_SHOWN:
        return f"<{100 * LEAST_SHOWN:g}"
    if 1 - ONE_PERCENT < share < 1:
        return ">99"
    value = round(100 * share, 2)
    digits = 0 if not value or value >= TWO_DIGITS else 1 if value >= 1 else 2
    return f"{value:.{digits}f}"


def promise(lines: Iterable[Line]) -> str:
    """Return where the calibrated gate has more false alarms a year than its alpha allows."""
    most = percent(a_year(noise.ALPHA))
    years = [
        (line.n, percent(a_year(line.alarm)))
        for line in lines
        if line.rule is Rule.MANY and line.alarm > noise.ALPHA
    ]
    missed = ", ".join(f"{year} % at n = {n}" for n, year in years if year != most)
    said = f"Promised by `{Rule.MANY}`: a false alarm in at most {most} % of years."
    return f"{said}\nMissed: {missed}.\n" if missed else f"{said} Kept.\n"


def summary(tables: Sequence[Table]) -> str:
    """Return a line a table: years with a false alarm, and drops of 2 and 5 points found."""
    names = " | ".join(f"{rule:<15}" for rule in SUMMED_RULES)
    rows = [IN_SHORT.format(n=SUMMED_SIZE), f"| {'noise':<28} | {names} |"]
    rows.append(f"|---|{'---|' * len(SUMMED_RULES)}")
    for table in tables:
        by_rule = {line.rule: line for line in table.lines if line.n == SUMMED_SIZE}
        cells = " | ".join(f"{_in_short(by_rule[rule]):<15}" for rule in SUMMED_RULES)
        rows.append(f"| {table.title:<28} | {cells} |")
    return "\n".join((*rows, ""))


def _in_short(line: Line) -> str:
    found = (percent(line.found[DROPS.index(drop)]) for drop in (0.02, 0.05))
    return " / ".join((percent(a_year(line.alarm)), *found))
