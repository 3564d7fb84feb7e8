"""Write what a shell completes commands, options and their choices by; files where a file is wanted.

    reprise completion bash > ~/.local/share/bash-completion/completions/reprise
    reprise completion zsh > ~/.zfunc/_reprise             where fpath has ~/.zfunc

It takes effect in the next shell.
"""

import argparse
from pathlib import Path

import shtab

from pipeline.stages import parsers
from reprise import cli as commands


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="which shell")


def run(args: argparse.Namespace) -> None:
    program, of_commands = parsers(commands.COMMANDS, "reprise", commands.ABOUT, commands.COMMANDS)
    for parser in of_commands.values():
        for action in parser._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(program, args.shell))
