"""Shell completion of commands, options and their choices."""

from pathlib import Path
from typing import Literal

import shtab

from pipeline.stages import parsers
from reprise import cli


def completion(shell: Literal["bash", "zsh", "tcsh", "fish", "powershell"]) -> None:
    """Print a script that completes commands, options and files in a shell.

        reprise completion bash > ~/.local/share/bash-completion/completions/reprise
        reprise completion zsh > ~/.zfunc/_reprise             where fpath has ~/.zfunc

    It takes effect in the next shell. The commands of the pipeline, which rules run, are completed by name only.

    Args:
        shell: Shell to write the script for.
    """
    program, by_name = parsers(cli.REPRISE, cli.COMMANDS)
    for parser in by_name.values():
        for action in parser._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(program, shell))
