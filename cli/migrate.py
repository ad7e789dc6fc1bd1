"""`recallwatch migrate`: our own tables, brought up to date."""

import click

from cli.context import Context, pass_context
from cli.lazy import examples
from cli.servers import open_stack_for


@click.command(epilog=examples("DATABASE_URL=postgresql://... recallwatch migrate"))
@pass_context
def migrate(context: Context) -> None:
    """Bring recallwatch's own tables up to date.

    Needed with a database of your own, before the first command and after each upgrade; the
    embedded one is brought up to date by every command.
    """
    with open_stack_for(context) as (_, settings):
        from db import migrate as migrations
        from db import revision
        from workers.context import Context as WorkContext

        work = WorkContext(settings)
        try:
            before = revision.current(work.database)
            migrations.upgrade(work.database)
            after = revision.current(work.database)
        finally:
            work.close()
    done = "is up to date" if before == after else f"is now at revision {after}"
    context.console.print(f"database {work.database.name} {done}", soft_wrap=True)
