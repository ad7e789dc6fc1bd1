"""`recallwatch compare-chunkings`: which size and overlap of chunks brings the answers back."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.comparing import announce, costs
from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import print_json, progress
from cli.servers import open_servers

if TYPE_CHECKING:
    from workers.comparing.chunking_trial import Plan, Trial, Wanted

USUAL_DOCUMENTS = 500


class Numbers(click.ParamType[Sequence[int]]):
    """`200,400,800`: whole numbers of at least `least`, each once."""

    name = "numbers"

    def __init__(self, least: int) -> None:
        self._least = least

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Sequence[int]:
        """Return the numbers in the order given; fails for anything else."""
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isdecimal() and len(part) < 10 for part in parts):  # noqa: PLR2004 - no chunk is that large
            self.fail(f"{value!r}: write whole numbers, as 200,400", param, ctx)
        numbers = list(dict.fromkeys(map(int, parts)))
        if min(numbers) < self._least:
            self.fail(f"{min(numbers)} is less than {self._least}", param, ctx)
        return numbers


@click.command(
    "compare-chunkings",
    epilog=examples(
        "recallwatch compare-chunkings --size 400,800,1600 --overlap 0,100",
        "recallwatch compare-chunkings --folder docs/ --size 100,200 --unit words",
        "recallwatch compare-chunkings --dry-run -m openai:text-embedding-3-small",
    ),
)
@click.option(
    "--size", "sizes", type=Numbers(1), default="200,400,800", show_default=True,
    metavar="N,...", help="The most that a chunk holds.",
)  # fmt: skip
@click.option(
    "--overlap", "overlaps", type=Numbers(0), default="0,50", show_default=True,
    metavar="N,...", help="What a chunk repeats of the one before.",
)  # fmt: skip
@click.option(
    "--unit", type=click.Choice(["characters", "words"]), default="characters", show_default=True,
    help="What sizes and overlaps count.",
)  # fmt: skip
@click.option(
    "--folder", type=click.Path(path_type=Path), metavar="DIR",
    help="Documents: .txt and .md files. Default: the corpus's, put together from its chunks.",
)  # fmt: skip
@click.option("-m", "--model", metavar="MODEL", help="Embedding model. Default: [embedding].")
@click.option("--set", "set_name", metavar="NAME", help="Golden set. Default: [eval] set.")
@click.option(
    "-k", "--k", type=click.IntRange(1, 1000), help="Chunks that count. Default: [eval] k."
)
@click.option(
    "--budget", type=click.IntRange(100, 1_000_000), default=2000, show_default=True, metavar="N",
    help="Letters that a prompt has room for: so much of each ranking is looked at.",
)  # fmt: skip
@click.option(
    "--held", type=click.FloatRange(0.1, 1), default=0.8, show_default=True, metavar="SHARE",
    help="Share of a judged text that counts as found.",
)  # fmt: skip
@click.option(
    "--metric", type=click.Choice(["held", "recall", "mrr"]), default="held", show_default=True,
    help="The measure that decides.",
)  # fmt: skip
@click.option(
    "--sample", type=click.IntRange(0), default=USUAL_DOCUMENTS, show_default=True, metavar="N",
    help="Documents of the corpus beside those that questions expect.",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="All documents of the corpus.")
@costs()
@pass_context
def compare_chunkings(
    context: Context,
    sizes: Sequence[int],
    overlaps: Sequence[int],
    unit: str,
    folder: Path | None,
    model: str | None,
    set_name: str | None,
    k: int | None,
    budget: int,
    held: float,
    metric: str,
    sample: int,
    everything: bool,
    seed: int,
    max_cost: float,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Cut the same documents into chunks in several ways, and search each exactly.

    What counts is how much of the texts that answer a question comes back, whatever chunks they
    are in, within the same number of letters: so small chunks and large ones can be compared. The
    corpus stays as it is.
    """
    others = None if everything else sample
    wanted = _wanted(
        context, sizes, overlaps, unit, folder, model, set_name, k, budget, held, metric, others,
        seed, max_cost,
    )  # fmt: skip
    from workers.comparing.chunking_trial import plan, run

    with open_servers(context) as opened:
        planned = plan(opened.work, wanted)
        announce(context.err, [planned.estimate])
        if dry_run:
            if as_json:
                print_json(_facts(planned) | {"estimate": planned.estimate})
            return
        with progress("comparing", planned.total) as bar:
            trial = run(opened.work, planned, bar.advance)
    _show(context, planned, trial, as_json=as_json)


def _wanted(
    context: Context, sizes: Sequence[int], overlaps: Sequence[int], unit: str,
    folder: Path | None, model: str | None, set_name: str | None, k: int | None, budget: int,
    held: float, metric: str, others: int | None, seed: int, max_cost: float,
) -> "Wanted":  # fmt: skip
    """Fill in what the settings say; a wrong option is told before any server starts."""
    from pipeline.chunking.splitting import Chunking, Unit
    from workers.comparing.chunking_trial import Wanted
    from workers.comparing.models import one_model

    settings = context.settings
    return Wanted(
        chunkings=[Chunking(size, overlap, Unit(unit)) for size in sizes for overlap in overlaps],
        model=one_model(settings, model),
        set_name=set_name or settings.eval.set,
        k=k or settings.eval.k,
        budget=budget,
        held=held,
        metric=metric,
        folder=folder,
        others=others,
        seed=seed,
        max_cost=max_cost,
    )


def _show(context: Context, planned: "Plan", trial: "Trial", *, as_json: bool) -> None:
    from cli.experiment import conclusion, experiment_record, experiment_tables

    if as_json:
        more = {"left_out": trial.failed, "spent": trial.spent}
        print_json(experiment_record(trial.experiment) | _facts(planned) | more)
        return
    context.console.print(experiment_tables(trial.experiment))
    context.console.print()
    for line in [conclusion(trial.experiment), *_notes(planned, trial)]:
        context.console.print(line, soft_wrap=True)


def _facts(planned: "Plan") -> dict[str, Any]:
    return {
        "model": planned.wanted.model.name,
        "documents": planned.documents,
        "unanswered": planned.unanswered,
    }


def _notes(planned: "Plan", trial: "Trial") -> list[str]:
    """Say what the figures mean, and what they leave out."""
    budget = planned.wanted.budget
    meaning = f"share of the judged texts in the first {budget:,} letters that come back"
    model = planned.wanted.model.name
    lines = [f"held@{budget}: {meaning}; documents: {planned.documents:,}, embedded with {model}"]
    if planned.favours_present:
        lines.append(
            "most judged texts are whole chunks as they are now: held and recall favour those, and"
            " mrr smaller ones; evidence of a sentence or two is fair to all"
            " (docs/comparing_models.md)"
        )
    if planned.unanswered:
        lines.append(
            f"left out: {planned.unanswered} questions whose judged texts do not stand in the"
            " documents, or are not known"
        )
    if trial.failed:
        lines.append(f"left out: {trial.failed} questions to which the model gave no vector")
    return lines
