"""The group `recallwatch golden` and its commands."""

import click

from cli.lazy import LazyCommand, OrderedGroup, examples

COMMANDS = (
    ("import", "cli.golden.importing:import_set", "Add a file's questions to a set."),
    ("export", "cli.golden.exporting:export_set", "Write a set's questions to a file."),
    ("list", "cli.golden.listing:list_questions", "List a set's questions, or the sets."),
    ("show", "cli.golden.listing:show_question", "Show one question and its judgments."),
    ("stats", "cli.golden.stats:stats", "Count a set, and say what it can show."),
    ("generate", "cli.golden.generating:generate", "Have Claude write questions from chunks."),
    ("generations", "cli.golden.generations:generations", "List, show, resume, cancel these."),
    ("review", "cli.golden.reviewing:review", "Accept, edit or reject proposed questions."),
    ("check", "cli.golden.checking:check", "Look every key up in the corpus as it is now."),
    ("remap", "cli.golden.remapping:remap", "Move keys to where their texts are now."),
    ("versions", "cli.golden.history:versions", "List what runs were evaluated on."),
    ("diff", "cli.golden.history:diff", "Show what changed between two versions."),
    ("edits", "cli.golden.history:edits", "List reviews and remaps, the newest first."),
    ("undo", "cli.golden.history:undo", "Undo an edit."),
)


@click.group(
    cls=OrderedGroup,
    commands={name: LazyCommand(name, target, text) for name, target, text in COMMANDS},
    epilog=examples(
        "recallwatch golden import golden.jsonl",
        "recallwatch golden generate --sample 50 --dry-run",
        "recallwatch golden review",
        "recallwatch golden check",
        "recallwatch golden export --format trec --output golden/",
    ),
)
def golden() -> None:
    """Import, generate, review, check and export golden sets."""
