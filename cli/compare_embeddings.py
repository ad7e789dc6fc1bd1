"""`recallwatch compare-embeddings`: which embedding model finds what, at which price."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cli.comparing import METRICS, USUAL_SAMPLE, announce, costs
from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import print_json, progress
from cli.servers import open_servers

if TYPE_CHECKING:
    from workers.comparing.embedding_trial import Plan, Trial, Wanted


@click.command(
    "compare-embeddings",
    epilog=examples(
        "recallwatch compare-embeddings --model corpus --model local --model bge",
        "recallwatch compare-embeddings --dry-run -m openai:text-embedding-3-large",
        "recallwatch compare-embeddings --all --max-cost 5 \\",
        "    -m openai:text-embedding-3-small -m openai:text-embedding-3-large@256",
    ),
)
@click.option(
    "-m", "--model", "models", multiple=True, metavar="MODEL",
    help="provider:name[@dimensions], a name of [models], or corpus: the vectors that production"
    " has. Repeat it; the first is the baseline, and corpus where there is one alone.",
)  # fmt: skip
@click.option("--set", "set_name", metavar="NAME", help="Golden set. Default: [eval] set.")
@click.option(
    "-k", "--k", type=click.IntRange(1, 1000), help="How many results count. Default: [eval] k."
)
@click.option("--level", type=click.Choice(["chunk", "document"]), help="Default: [eval] level.")
@click.option(
    "--metric", type=click.Choice(METRICS), default="ndcg", show_default=True,
    help="The measure that decides.",
)  # fmt: skip
@click.option(
    "--sample", type=click.IntRange(0), default=USUAL_SAMPLE, show_default=True, metavar="N",
    help="Chunks beside those that were judged.",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="All chunks of the corpus.")
@click.option("--forget", is_flag=True, help="Delete the vectors that comparisons kept, and end.")
@costs()
@pass_context
def compare_embeddings(
    context: Context,
    models: Sequence[str],
    set_name: str | None,
    k: int | None,
    level: str | None,
    metric: str,
    sample: int,
    everything: bool,
    forget: bool,
    seed: int,
    max_cost: float,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Search the same chunks for the same questions with several embedding models.

    The chunks that were judged and a sample of the others are embedded beside production, which
    stays as it is, and searched exactly. What was embedded is kept: run it again to go on where it
    was broken off. Each provider's key is read from its environment variable.
    """
    if forget:
        _forget(context)
        return
    wanted = _wanted(
        context, models, set_name, k, level, metric,
        None if everything else sample, seed, max_cost,
    )  # fmt: skip
    from workers.comparing.embedding_trial import plan, run

    with open_servers(context) as opened:
        planned = plan(opened.work, wanted)
        for warning in planned.questions.keys.warnings:
            context.err.print(f"warning: {warning}", soft_wrap=True)
        announce(context.err, planned.estimates)
        if dry_run:
            _show_plan(planned, as_json=as_json)
            return
        with progress("comparing", planned.total) as bar:
            trial = run(opened.work, planned, bar.advance)
    _show(context, planned, trial, as_json=as_json)


def _wanted(
    context: Context, models: Sequence[str], set_name: str | None, k: int | None,
    level: str | None, metric: str, others: int | None, seed: int, max_cost: float,
) -> "Wanted":  # fmt: skip
    """Fill in what the settings say; a wrong option is told before any server starts."""
    from pipeline.scoring import Measure
    from pipeline.types import Level
    from workers.comparing.embedding_trial import Wanted
    from workers.comparing.models import models_of

    settings = context.settings
    depth = k or settings.eval.k
    names = list(dict.fromkeys([metric, "recall", "mrr"]))
    return Wanted(
        models=models_of(settings, models),
        set_name=set_name or settings.eval.set,
        k=depth,
        level=Level(level) if level else settings.eval.level,
        measures=[Measure(name, depth) for name in names],
        others=others,
        seed=seed,
        max_cost=max_cost,
    )


def _forget(context: Context) -> None:
    from db import side_vectors

    with open_servers(context) as opened, opened.work.database.begin() as session:
        deleted = side_vectors.forget(session)
    context.console.print(f"deleted {deleted:,} vectors")


def _show_plan(planned: "Plan", *, as_json: bool) -> None:
    if as_json:
        print_json(_facts(planned) | {"estimates": planned.estimates})


def _show(context: Context, planned: "Plan", trial: "Trial", *, as_json: bool) -> None:
    from cli.experiment import conclusion, experiment_record, experiment_tables

    experiment = trial.experiment
    if as_json:
        print_json(
            experiment_record(experiment)
            | _facts(planned)
            | {"left_out": trial.failed, "spent": trial.spent}
        )
        return
    context.console.print(experiment_tables(experiment))
    context.console.print()
    for line in [conclusion(experiment), *_notes(planned, trial)]:
        context.console.print(line, soft_wrap=True)


def _facts(planned: "Plan") -> dict[str, Any]:
    return {
        "chunks": len(planned.pool),
        "judged_chunks": planned.judged,
        "corpus_chunks": planned.chunks,
        "is_sample": planned.is_sample,
    }


def _notes(planned: "Plan", trial: "Trial") -> list[str]:
    """Say what the figures do not."""
    lines = [f"searched exactly among {len(planned.pool):,} of {planned.chunks:,} chunks"]
    if planned.is_sample:
        lines[0] += ": over a sample the figures are upper bounds, and --all gives the real ones"
    if trial.failed:
        lines.append(f"left out: {trial.failed} questions to which a model gave no vector")
    return lines
