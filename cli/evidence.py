"""What a report about finished runs is made of: each run with the questions behind its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db import results, runs
from db.runs import RunContext
from db.session import Session
from pipeline.types import Verdict
from pipeline.verdict.gate import Finding

WORST = 10
"""Lost questions that a report names."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finished run, the worst questions it lost, and what became of its must-pass questions.

    `lost` are rows of `db.comparisons.lost`, against the reference that the verdict hangs on;
    `must_pass` rows of `db.results.must_pass_details`, none where the gate does not ask for them.
    """

    found: RunContext
    lost: Sequence[Any] = ()
    must_pass: Sequence[Any] = ()

    @property
    def subject(self) -> str:
        """Golden set and strategy, as "support / vector"."""
        return f"{self.found.version.set_name} / {self.found.run.strategy}"

    @property
    def verdict(self) -> Verdict:
        """The verdict that every finished run has."""
        return Verdict(self.found.run.verdict or Verdict.UNMEASURED)

    @property
    def findings(self) -> list[Finding]:
        """What each rule said, what the verdict comes from first."""
        return [Finding.from_json(each) for each in self.found.run.findings or []]

    @property
    def decisive(self) -> list[Finding]:
        """The findings that the verdict comes from."""
        return [each for each in self.findings if each.counts and each.verdict is self.verdict]

    @property
    def reasons(self) -> list[str]:
        """Why the verdict is what it is, a line a reason."""
        return [each.text for each in self.decisive]

    @property
    def comparisons(self) -> list[tuple[str, dict[str, Any]]]:
        """What the run was compared with, by the words for it, as the record stores it."""
        run = self.found.run
        stored = (
            (f"run {run.compared_to}", run.comparison),
            (f"the baseline, run {run.baseline_run}", run.baseline_comparison),
        )
        return [(name, values) for name, values in stored if values]


def gather(session: Session, found: Sequence[RunContext]) -> list[Evidence]:
    """Collect what there is to tell of each run."""
    return [_gather(session, each) for each in found]


def _gather(session: Session, found: RunContext) -> Evidence:
    run, alone = found.run, Evidence(found)
    reference = next((each.reference for each in alone.decisive if each.reference), run.compared_to)
    lost: Sequence[Any] = ()
    if reference is not None:
        before = runs.get(session, reference).run
        from db import comparisons

        lost = comparisons.lost(session, run, before, limit=WORST)
    must_pass = results.must_pass_details(session, run.id) if run.gate["must_pass"] else ()
    return Evidence(found, lost, must_pass)
