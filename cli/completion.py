"""`recallwatch completion`: the script that lets a shell complete our commands and options."""

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from cli.lazy import examples
from cli.main import COMPLETE_VARIABLE, PROGRAM

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command(
    epilog=examples(
        "recallwatch completion bash \\",
        "    > ~/.local/share/bash-completion/completions/recallwatch",
        "recallwatch completion zsh > ~/.zfunc/_recallwatch  # a folder in $fpath",
        "recallwatch completion fish > ~/.config/fish/completions/recallwatch.fish",
    )
)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    Save it where the shell looks for such scripts, as in the examples, and open a new shell.
    """
    script = SHELLS[shell](ctx.find_root().command, {}, PROGRAM, COMPLETE_VARIABLE)
    click.echo(script.source())
