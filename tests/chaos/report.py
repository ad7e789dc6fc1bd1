"""What a session of the suite came to: as a line a run, a summary, JSON, a section of a page."""

import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psutil

from bench.page import with_section
from cli.git import current_commit
from tests.acceptance.command import REPOSITORY
from tests.chaos.runner import Outcome
from tests.chaos.scenarios import Caught

FIGURES = (
    "runs", "faults", "struck_under_way", "ended_right", "ended_failed_with_reason",
    "wrong_scores", "hung", "double_alerts", "double_counts",
)  # fmt: skip

TITLES = {
    "chaos ci": "As CI runs it",
    "chaos release": "As a release runs it",
    "chaos mutants": "Mutants",
    "chaos soak": "Soak",
}
PAGE = REPOSITORY / "docs" / "reliability.md"


def line_of(outcome: Outcome) -> str:
    """Return what became of one run, in a line; violations follow in lines of their own."""
    faults = ", ".join(f"{name} @{at:g}" for name, at in outcome.faults)
    became = [f"{outcome.right} right"] if outcome.right else []
    became += [f"failed: {reason[:80]}" for reason in outcome.failed]
    became += ["VIOLATED"] if outcome.violations else []
    head = f"run {outcome.number:3d}  {outcome.seconds:5.1f} s  {'; '.join(became)}  [{faults}]"
    kept = [f"    kept: {outcome.kept}"] if outcome.kept else []
    violated = [
        f"    {violation.invariant}: {violation.detail}" for violation in outcome.violations
    ]
    return "\n".join([head, *violated, *kept])


@dataclass
class Report:
    """Adds up outcomes."""

    seed: int
    profile: str
    outcomes: list[Outcome] = field(default_factory=list)
    mutants: list[Caught] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    soak: Any = None
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    @property
    def struck(self) -> int:
        return sum(len(outcome.faults) for outcome in self.outcomes)

    @property
    def by_kind(self) -> Counter[str]:
        return Counter(name for outcome in self.outcomes for name, _ in outcome.faults)

    @property
    def violated(self) -> Counter[str]:
        return Counter(v.invariant for outcome in self.outcomes for v in outcome.violations)

    @property
    def broken(self) -> bool:
        survived = any(caught.survived or caught.control for caught in self.mutants)
        return bool(self.violated) or survived or bool(self.soak and self.soak.grew)

    def to_json(self) -> dict[str, Any]:
        runs = sum(len(outcome.run_ids) for outcome in self.outcomes)
        alerts: Counter[str] = sum((o.alerts for o in self.outcomes), Counter())
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "revision": current_commit(),
            "seed": self.seed,
            "profile": self.profile,
            "machine": machine(),
            "seconds": round(self.seconds),
            "runs": runs,
            "faults": self.struck,
            "struck_under_way": sum(outcome.struck_under_way for outcome in self.outcomes),
            "by_kind": dict(sorted(self.by_kind.items())),
            "left_out": self.left_out,
            "ended_right": sum(outcome.right for outcome in self.outcomes),
            "ended_failed_with_reason": sum(len(outcome.failed) for outcome in self.outcomes),
            "wrong_scores": self.violated["every number is right"],
            "hung": self.violated["every run and alert ends"],
            "double_alerts": self.violated["no alert arrives twice"],
            "double_counts": self.violated["each question counts once"],
            "violations": dict(self.violated),
            "alerts": dict(alerts),
            "mutants": {
                caught.mutant: caught.violations[0].invariant if caught.violations else None
                for caught in self.mutants
            },
            "controls_violated": [c.mutant for c in self.mutants if c.control],
            "soak": self.soak and self.soak.to_json(),
        }

    def summary(self) -> str:
        return "\n\n".join(self._sections().values())

    def _sections(self) -> dict[str, str]:
        """Return what there is to tell, by the name of its section in the page."""
        sections: dict[str, str] = {}
        if self.outcomes:
            sections[f"chaos {self.profile}"] = "\n".join(self._about_runs())
        if self.mutants:
            sections["chaos mutants"] = "\n".join(self._about_mutants())
        if self.soak:
            sections["chaos soak"] = "\n".join(self.soak.lines())
        return sections

    def _about_runs(self) -> Iterator[str]:
        found = self.to_json()
        minutes = self.seconds / 60
        yield f"Seed {self.seed}, profile {self.profile}, {minutes:.0f} minutes, {_revision()}."
        yield from ("", "| fault | struck |", "| --- | --- |")
        yield from (f"| {name} | {n} |" for name, n in found["by_kind"].items())
        yield from (f"| {name} | left out: it cannot be done here |" for name in self.left_out)
        yield from ("", "| outcome | n |", "| --- | --- |")
        yield from (f"| {name.replace('_', ' ')} | {found[name]} |" for name in FIGURES)
        yield f"| violations of any invariant | {sum(self.violated.values())} |"
        yield from (f"| alerts that ended {s} | {n} |" for s, n in sorted(found["alerts"].items()))

    def _about_mutants(self) -> Iterator[str]:
        yield f"Seed {self.seed}, {_revision()}."
        yield from ("", "| mutant | caught by | seconds |", "| --- | --- | --- |")
        for caught in self.mutants:
            by = caught.violations[0].invariant if caught.violations else "SURVIVED"
            yield f"| {caught.mutant} | {by} | {caught.seconds:.0f} |"
        for caught in self.mutants:
            for seen in caught.control:
                yield f"\nSeen without {caught.mutant}: {seen.invariant}: {seen.detail}"

    def write(self) -> None:
        """Put what there is to tell into docs/reliability.md, each part into its own section."""
        page = PAGE.read_text()
        made = f"{datetime.now(UTC):%Y-%m-%d}, on {machine()}."
        for name, text in self._sections().items():
            page = with_section(page, name, f"### {TITLES[name]}\n\n{made} {text}")
        PAGE.write_text(page)


def _revision() -> str:
    """Name what was tested. Run it on a clean checkout: changes on top are not in the name."""
    return f"revision {(current_commit() or 'unknown')[:8]}"


def machine() -> str:
    """Return what it ran on."""
    memory = psutil.virtual_memory().total / 1024**3
    return f"{psutil.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}"
