"""The command line of the kill suite."""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence

from pipeline.log import configure
from pipeline.settings import LogSettings
from tests.chaos import mutants, scenarios
from tests.chaos.catalogue import CATALOGUE, plans
from tests.chaos.profiles import PROFILES
from tests.chaos.report import Report, line_of
from tests.chaos.runner import run_once
from tests.chaos.world import opened

RUNS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return 1 if anything was violated, or a mutant survived."""
    options = _parser().parse_args(arguments)
    configure(LogSettings(level="error"))
    report = Report(options.seed, options.profile)
    if options.runs is None:
        others = options.mutant or options.all_mutants or options.soak
        options.runs = 0 if others else RUNS
    if options.runs:
        strike(report, options)
    if options.mutant or options.all_mutants:
        hunt(report, options)
    if options.soak:
        from tests.chaos.soak import soak  # noqa: PLC0415 - seldom asked for

        report.soak = soak(options.soak, options.seed, say)
    print(json.dumps(report.to_json(), indent=1) if options.json else report.summary())  # noqa: T201
    if options.write:
        report.write()
    return 1 if report.broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--runs", type=int, help=f"batches of two runs to strike; {RUNS} if nothing is asked for"
    )
    parser.add_argument("--seed", type=int, default=7, help="of all that is random")
    parser.add_argument("--faults", type=int, default=0, help="go on until so many have struck")
    parser.add_argument("--only", action="append", help="strike with faults of these names only")
    parser.add_argument("--profile", choices=PROFILES, default="ci")
    parser.add_argument("--mutant", choices=mutants.NAMES, action="append")
    parser.add_argument("--all-mutants", action="store_true")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="unbroken runs; flat memory?")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--write", action="store_true", help="write it into docs/reliability.md")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    return parser


def strike(report: Report, options: argparse.Namespace) -> None:
    """Run after run, each with faults drawn from the seed; stops at the first violation."""
    rng = random.Random(options.seed)  # noqa: S311 - to be repeated, not secret
    began = time.monotonic()
    with opened(PROFILES[options.profile], options.seed, keep=options.keep) as world:
        say(f"logs: {world.log}" if options.keep else "")
        kinds = [kind for kind in CATALOGUE if not options.only or kind.name in options.only]
        possible = [kind for kind in kinds if world.disk_is_small or not kind.needs_small_disk]
        report.left_out = [kind.name for kind in kinds if kind not in possible]
        for number, planned in enumerate(plans(rng, possible), start=1):
            outcome = run_once(world, number, planned, rng)
            report.add(outcome)
            say(line_of(outcome))
            enough = number >= options.runs and report.struck >= options.faults
            if outcome.violations or enough:
                break
    report.seconds = time.monotonic() - began


def hunt(report: Report, options: argparse.Namespace) -> None:
    """Let the suite loose on each mutant, and on the product as it is."""
    names = mutants.NAMES if options.all_mutants else options.mutant
    control = scenarios.controls(options.seed) if options.all_mutants else {}
    for name in names:
        caught = scenarios.hunt(name, options.seed, control.get(name))
        report.mutants.append(caught)
        by = caught.violations[0] if caught.violations else None
        say(f"mutant {name}: " + (f"caught by {by.invariant}: {by.detail}" if by else "SURVIVED"))


def say(line: str) -> None:
    """Tell how far it is, beside the report."""
    if line:
        print(line, file=sys.stderr, flush=True)  # noqa: T201
