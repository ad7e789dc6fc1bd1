"""What a paired bootstrap and a sign-flip test cost, over raw and over distinct differences.

Both ways get the same differences of two runs, in turns, in one process. The raw way draws a
question (or a sign) for each question of each resample, with NumPy; ours draws how often each
distinct difference comes. As the raw way takes minutes at a million questions, it is timed over
`--raw-resamples` and scaled up: its time is proportional to them.
"""

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pipeline.verdict.resampling import Differences, bootstrap_interval, sign_flip_p

Floats = NDArray[np.float64]

UNCHANGED = 0.8
"""Share of questions with a difference of 0, where differences repeat."""


def make_differences(questions: int, distinct: int, seed: int) -> Floats:
    """Draw differences between -1 and 1 from `distinct` values; with 0, no two are equal."""
    generator = np.random.default_rng(seed)
    if distinct == 0:
        return generator.uniform(-1, 1, size=questions)
    moved = generator.choice(np.linspace(-1, 1, distinct), size=questions)
    return np.where(generator.random(questions) < UNCHANGED, 0.0, moved)


def bootstrap_raw(raw: Floats, *, resamples: int) -> tuple[float, float]:
    """Draw n questions with replacement, one resample after the other."""
    generator = np.random.default_rng(1)
    means = [raw[generator.integers(len(raw), size=len(raw))].mean() for _ in range(resamples)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def sign_flip_raw(raw: Floats, *, resamples: int) -> float:
    """Draw a sign for each question, one resample after the other."""
    generator = np.random.default_rng(1)
    observed = abs(raw.sum())
    beyond = 0
    for _ in range(resamples):
        signs = 2.0 * generator.integers(2, size=len(raw), dtype=np.int8) - 1
        beyond += int(abs(raw @ signs) >= observed)
    return (beyond + 1) / (resamples + 1)


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _row(name: str, ours: Callable[[], object], raw: Callable[[], object], scale: float,
         rounds: int) -> str:  # fmt: skip
    pairs = [(_seconds(ours), _seconds(raw) * scale) for _ in range(rounds)]
    our, their = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(raw_time / our_time for our_time, raw_time in pairs)
    return f"  {name:<10} ours {our:>7.3f} s   raw {their:>7.1f} s   ratio {ratio:>9,.0f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.resampling", description=__doc__)
    parser.add_argument("--questions", type=int, default=1_000_000, help="paired (1,000,000)")
    parser.add_argument("--distinct", type=int, nargs="*", default=[3, 101, 1_001, 0],
                        help="values in each case; 0: no two equal (3 101 1001 0)")  # fmt: skip
    parser.add_argument("--resamples", type=int, default=10_000, help="of each test (10,000)")
    parser.add_argument("--raw-resamples", type=int, default=20, help="timed of the raw way (20)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (3)")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both times and their ratio (medians of the rounds), and the process's peak memory."""
    options = _parser().parse_args(arguments)
    scale = options.resamples / options.raw_resamples
    print(f"{options.questions:,} questions, {options.resamples:,} resamples")
    for distinct in options.distinct:
        raw = make_differences(options.questions, distinct, seed=1)
        start = time.perf_counter()
        grouped = Differences.from_raw(raw)
        print(f"{len(grouped.values):,} distinct ({time.perf_counter() - start:.2f} s to group)")
        for name, ours, theirs in (
            ("bootstrap", bootstrap_interval, bootstrap_raw),
            ("sign flips", sign_flip_p, sign_flip_raw),
        ):
            fast = partial(ours, grouped, seed=1, resamples=options.resamples)
            slow = partial(theirs, raw, resamples=options.raw_resamples)
            print(_row(name, fast, slow, scale, options.rounds), flush=True)
    # ru_maxrss is in kilobytes on Linux, in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(f"peak memory {peak / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
