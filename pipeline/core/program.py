"""The commands of a program, and how one is parsed and run.

A command is a function whose signature and docstring define its options (command_line.py). Only the module of the
requested command is imported, so a command without torch starts quickly.
"""

import argparse
import gc
import importlib.metadata
import os
import shlex
from collections.abc import Callable, Container, Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from pipeline.core.digests import checking_inputs, recording_digests
from pipeline.core.errors import UserError
from pipeline.core.retries import retry_stage


class Command(NamedTuple):
    """A command of a program.

    Attributes:
        target: `module:function`.
        summary: First sentence of the function's docstring, so that the list of commands imports none.
        is_stage: A step of the workflow: its inputs are checked, its outputs recorded, and a failed read is retried.
    """

    target: str
    summary: str
    is_stage: bool = True

    def load(self) -> Callable[..., None]:
        """Import the function."""
        return getattr(self.load_module(), self.target.partition(":")[2])

    def load_module(self) -> ModuleType:
        """Import the module that holds the command."""
        return loaded(self.target.partition(":")[0])


class Parser(argparse.ArgumentParser):
    """A parser that suggests what was meant by arguments that it does not know.

    Attributes:
        function: The command whose arguments it parses.
    """

    function: Callable[..., None] | None = None

    def error(self, message: str) -> NoReturn:
        """Print the usage and what is wrong, and exit with status 2."""
        _, unknown, words = message.partition("unrecognized arguments: ")
        _, required, missing = message.partition("arguments are required: ")
        if unknown:
            message += self.hint(words.split()[0])
        elif required:
            message += "".join(f"; {name}: {about}" for name in missing.split(", ") if (about := self.help_of(name)))
        super().error(message)

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse a command whose options may stand between its positional arguments.

        Args:
            args: The words after the command.
            namespace: The object that receives the values.

        Returns:
            The values by name.

        Raises:
            UserError: A positional argument is a setting without `--set`.
        """
        found, unknown = self.parse_known_intermixed_args(args, namespace)
        self.refuse_settings(unknown)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        values = [getattr(found, action.dest) for action in self._actions if not action.option_strings]
        converted = (word for value in values for word in (value if isinstance(value, list) else [value]))
        self.refuse_settings(word for word in converted if str(word) in (args or ()))  # a path loses its `./`
        return found

    def refuse_settings(self, words: Iterable[object]) -> None:
        """Refuse `KEY=VALUE` of a key of config.yaml that is no file, as after `--set scale=small seeds=2`.

        Args:
            words: Positional arguments, converted or not.

        Raises:
            UserError: One of them is a setting.
        """
        for word in words:
            key, equals, _ = str(word).partition("=")
            if equals and key in self.keys() and not os.path.exists(str(word)):
                otherwise = (
                    f"; write `{shlex.quote(f'./{word}')}` if it is a file" if isinstance(word, os.PathLike) else ""
                )
                raise UserError(
                    f"{word}: is a setting; write `--set {shlex.quote(str(word))}`, with one --set for each{otherwise}"
                )

    def keys(self) -> set[str]:
        """Return the keys that `--set` of this command takes."""
        from pipeline.core.command_line import parameters

        found = parameters(self.function) if self.function else ()
        return {key for parameter in found for key in parameter.argument.keys}

    def help_of(self, name: str) -> str:
        """Return the help of an argument, which may be empty.

        Args:
            name: The argument as argparse names it in an error.
        """
        named = {"/".join(action.option_strings) or action.metavar: action.help for action in self._actions}
        return (named.get(name) or "").replace("%%", "%")

    def hint(self, word: str) -> str:
        """Return what may have been meant by an unknown word.

        Args:
            word: An option, or an argument of a command that takes none or fewer.
        """
        from pipeline.core.schema import nearest

        options = [name for name in self._option_string_actions if name.startswith("--")]
        every = f"; options are {', '.join(options)}"
        if not word.startswith("-"):
            return every
        word = word.partition("=")[0]
        key = word.lstrip("-").replace("-", "_")
        if key in self.keys():
            return f"; for a key of config.yaml, write `--set {key}=…`"
        if key == "config" and self.keys():
            return "; write `--set KEY=VALUE` for each setting"
        # Without the dashes, which would make short names look alike.
        close = [name for name in options if nearest(key, [name.lstrip("-").replace("-", "_")])]
        return nearest(word, close) or every


class PrintVersion(argparse.Action):
    """Print what a bug report needs: the version, commit, packages and processor."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print one line and exit with status 0."""
        from pipeline.core.provenance import provenance

        facts = (f"{name} {value}" for name, value in provenance().items() if name != "node")
        print(f"reprise {importlib.metadata.version('reprise')}: {', '.join(facts)}")
        parser.exit()


def loaded(name: str) -> ModuleType:
    """Import a module with garbage collection off, which loads torch a fifth faster."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if was_enabled:
            gc.enable()


PROGRAM_OPTIONS = ("-h", "--help", "--version")
"""Options that need no command."""


class Program(NamedTuple):
    """A command line.

    Attributes:
        name: As typed.
        about: What it is for.
        commands: Its commands by name.
        unlisted: Commands that its `--help` leaves out.
        epilog: Last paragraph of its `--help`.
    """

    name: str
    about: str
    commands: Mapping[str, Command]
    unlisted: Container[str] = ()
    epilog: str = ""

    def parse(self, argv: list[str]) -> argparse.Namespace:
        """Parse a command line.

        Args:
            argv: Name of the command, and its arguments.

        Returns:
            The arguments of the command by name, and the name of the command as `stage`.

        Raises:
            SystemExit: The arguments are wrong (2), or help was asked for (0).
        """
        argv = [*(word.replace("_", "-") for word in argv[:1]), *argv[1:]]  # rule names have underscores
        # Parsers of the other commands would take 20 ms.
        named = {name: self.commands[name] for name in argv[:1] if name in self.commands}
        parser, by_name = self._replace(commands=named or self.commands).parsers(argv[:1])
        if not argv:
            parser.error(f"name a command; `{self.name} --help` lists them")
        is_option = argv[0].strip("-") != "" and any(option.startswith(argv[0]) for option in PROGRAM_OPTIONS)
        if argv[0].startswith("-") and not is_option:
            parser.error(f"{argv[0]}: name the command before its options; `{self.name} --help` lists the commands")
        if argv[0] not in by_name and not is_option:
            from pipeline.core.schema import nearest  # brings pydantic, which the list of commands does without

            hint = nearest(argv[0], by_name)
            if "make" in self.commands and os.path.exists(f"workflow/papers/{argv[0]}/paper.yaml"):
                hint = f"; to make that paper, write `{self.name} make {argv[0]}`"
            parser.error(f"unknown command {argv[0]!r}{hint}; `{self.name} --help` lists the commands")
        if argv[0] in by_name and not self.commands[argv[0]].is_stage:
            return by_name[argv[0]].parse_intermixed_args(argv[1:])  # options may stand between files
        return parser.parse_args(argv)

    def parsers(self, imported: Container[str]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
        """Return the parser of the program and those of its commands; commands not in `imported` have no arguments.

        Args:
            imported: Names of the commands whose arguments are needed.
        """
        parser = Parser(prog=self.name, description=self.about, epilog=self.epilog)
        parser.add_argument(
            "--version", action=PrintVersion, nargs=0, help="show the versions of code and packages and exit"
        )
        by_name = parser.add_subparsers(dest="stage", required=True, metavar="COMMAND")
        for name, command in self.commands.items():
            listed: dict[str, Any] = {} if name in self.unlisted else {"help": command.summary.replace("%", "%%")}
            stage_parser = by_name.add_parser(name, **listed)
            if name in imported:
                from pipeline.core.command_line import add_arguments  # 10 ms that the list of commands does without

                stage_parser.function = command.load()
                add_arguments(stage_parser, stage_parser.function)
                stage_parser.set_defaults(stage=name)
        return parser, dict(by_name.choices)

    def run(self, args: argparse.Namespace) -> None:
        """Run a command with the arguments that `parse` returned.

        Raises:
            UserError: The command raised it, or a file error remained after all retries.
        """
        if not self.commands[args.stage].is_stage:
            self.invoke(args)
            return

        def once() -> None:
            with checking_inputs(), recording_digests():
                self.invoke(args)

        retry_stage(once)

    def invoke(self, args: argparse.Namespace) -> None:
        """Call the function of a command with `args` (see `run`), without checks, records and retries of a stage."""
        from pipeline.core.command_line import call

        call(self.commands[args.stage].load(), args)
