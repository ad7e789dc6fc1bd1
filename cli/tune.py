"""`recallwatch tune`: better settings, found on what runs stored."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.output import print_json, progress
from cli.servers import open_servers

if TYPE_CHECKING:
    from pipeline.tuning.grid import HybridSetting
    from workers.tuning import Tuned


@click.group(
    cls=OrderedGroup,
    epilog=examples(
        "recallwatch tune hybrid",
        "recallwatch tune hybrid --run 12 --metric recall@5",
    ),
)
def tune() -> None:
    """Find better settings on what runs stored."""


@tune.command(
    epilog=examples(
        "recallwatch tune hybrid",
        "recallwatch tune hybrid --strategy hybrid-deep --metric recall@5 --folds 10",
        "recallwatch tune hybrid --run 12 --json",
    )
)
@click.option("--run", "run_id", type=int, metavar="N", help="Run. Default: the last of a hybrid.")
@click.option("-s", "--strategy", metavar="NAME", help="The last run of this strategy.")
@click.option("--set", "set_name", metavar="NAME", help="Golden set. Default: [eval] set.")
@click.option("--metric", metavar="MEASURE", help="What decides, as ndcg@10. Default: ndcg at k.")
@click.option(
    "--folds", type=click.IntRange(2, 100), default=5, show_default=True, metavar="N",
    help="Parts of the questions; each is judged with what the others choose.",
)  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Another deal of questions.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def hybrid(
    context: Context,
    run_id: int | None,
    strategy: str | None,
    set_name: str | None,
    metric: str | None,
    folds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Try weights, depths and formulas of a hybrid on what its arms found in a run.

    Nothing is embedded and nothing searched: the run stored each arm's rankings. The settings that
    are best on some questions are tried on others (cross-validation), which tells what tuning is
    worth; the best of many settings looks better than it is on the questions that chose it.
    """
    from workers.tuning import Wanted, plan
    from workers.tuning import tune as tune_hybrid

    set_name = set_name or context.settings.eval.set
    wanted = Wanted(set_name, run_id, strategy, metric, folds, seed)
    with open_servers(context) as opened:
        planned = plan(opened.work, wanted)
        with progress("tuning", planned.run.size) as bar:
            tuned = tune_hybrid(opened.work, planned, bar.advance)
    if as_json:
        print_json(record(tuned))
    else:
        show(context, tuned)


def record(tuned: "Tuned") -> dict[str, Any]:
    """Return everything that tuning found, at full precision."""
    from cli.experiment import experiment_record

    return {
        "run": tuned.plan.run.id,
        "strategy": tuned.plan.run.strategy,
        "settings_tried": len(tuned.plan.settings),
        "folds": tuned.plan.folds,
        "seed": tuned.plan.seed,
        "above_luck": tuned.is_above_luck,
        "present": _setting_record(tuned, tuned.plan.settings[0]),
        "winner": _setting_record(tuned, tuned.winner) | {"chosen_in_folds": tuned.agreeing},
        "alone": dict(tuned.alone),
        "gain": experiment_record(tuned.gain),
        "top": experiment_record(tuned.top),
        "toml": _toml(tuned),
    }


def _setting_record(tuned: "Tuned", setting: "HybridSetting") -> dict[str, Any]:
    formula = setting.formula
    return {
        "name": str(setting),
        "arms": dict(zip(tuned.plan.present.arms, setting.weights, strict=True)),
        "fusion": formula.method,
        "rrf_k": formula.rrf_k if formula.method == "rrf" else None,
        "normalize": formula.normalize if formula.method == "weighted" else None,
        "depth": setting.depth,
    }


def show(context: Context, tuned: "Tuned") -> None:
    """Print the tables, what they mean, and the winner as settings to paste."""
    from cli.experiment import experiment_tables

    console, planned = context.console, tuned.plan
    present, arms = planned.settings[0], ":".join(planned.present.arms)
    console.print(
        f"run {planned.run.id} of {planned.run.strategy}; present: {present};"
        f" {len(planned.settings)} settings tried, at depths up to that; weights are of {arms}",
        soft_wrap=True,
    )
    console.print()
    console.print(experiment_tables(tuned.gain))
    console.print()
    console.print("the best settings, over the questions that chose them: too good by some luck")
    console.print(experiment_tables(tuned.top))
    console.print()
    for line in _conclusions(tuned):
        console.print(line, soft_wrap=True)
    if not tuned.keeps_present:
        console.print()
        console.print(_toml(tuned), soft_wrap=True)


def _conclusions(tuned: "Tuned") -> Iterator[str]:
    """Say what tuning is worth, and what to do about it."""
    if tuned.keeps_present:
        yield f"keep the present settings: none of the {len(tuned.plan.settings)} is better"
    else:
        yield from _of_winner(tuned)
    arm = max(tuned.alone, key=tuned.alone.__getitem__)
    if tuned.alone[arm] >= max(row.means[tuned.gain.measure] for row in tuned.gain.rows):
        yield (
            f"{arm} alone is as good, with {tuned.gain.measure} {tuned.alone[arm]:.4f}: fusing adds"
            " nothing to it"
        )


def _of_winner(tuned: "Tuned") -> Iterator[str]:
    gain = tuned.gain.rows[1].differences[tuned.gain.measure]
    low, high = gain.interval
    moved = f"{tuned.gain.measure} {gain.mean:+.4f} ({low:+.4f} to {high:+.4f})"
    if tuned.is_above_luck:
        yield f"tuning pays: on questions not seen it changes {moved}"
    else:
        yield f"within luck: on questions not seen tuning changes {moved}; keep what you have"
    yield (
        f"best over all questions: {tuned.winner}, also the choice of {tuned.agreeing} of"
        f" {tuned.plan.folds} folds"
    )
    if tuned.winner.depth != tuned.plan.settings[0].depth:
        yield (
            "at another depth an index may find other things: evaluate before you change production"
        )


def _toml(tuned: "Tuned") -> str:
    """Return the winner as a table of recallwatch.toml."""
    setting, formula = tuned.winner, tuned.winner.formula
    arms = ", ".join(
        f"{name} = {weight}"
        for name, weight in zip(tuned.plan.present.arms, setting.weights, strict=True)
    )
    constant = (
        f"rrf_k = {formula.rrf_k}"
        if formula.method == "rrf"
        else f"normalize = {json.dumps(formula.normalize)}"
    )
    return "\n".join([
        f"[strategies.{tuned.plan.run.strategy}]",
        'kind = "hybrid"',
        f"arms = {{ {arms} }}",
        f"fusion = {json.dumps(formula.method)}",
        constant,
        f"depth = {setting.depth}",
    ])  # fmt: skip
