"""Options that the commands of `recallwatch golden` have in common."""

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
set_option = click.option(
    "--set", "set_name", metavar="NAME", help="Golden set. Default: [eval] set."
)
