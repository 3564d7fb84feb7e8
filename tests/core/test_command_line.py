"""Parsers made from signatures, against parsers that are written with argparse."""

import argparse
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from unittest.mock import Mock

import pytest

from pipeline.__main__ import status_of
from pipeline.core.command_line import Argument, add_arguments, call


@dataclass(frozen=True)
class Base:
    """Options of all.

    Attributes:
        root: Root folder.
    """

    root: Path = Path("here")


@dataclass(frozen=True)
class Options(Base):
    """Options of some.

    Attributes:
        settings: A key
            with its value.
    """

    settings: Annotated[tuple[str, ...], Argument(name="--set", metavar="KEY=VALUE", repeated=True)] = ()


def even(text: str) -> int:
    if int(text) % 2:
        raise argparse.ArgumentTypeError(f"must be even, got {text}")
    return int(text)


SEEN: list[tuple[Any, ...]] = []


def command(
    run: str,
    pair: Annotated[tuple[int, int], Argument(metavar="N")],
    files: tuple[Path, ...] = (),
    *,
    steps: int,
    rate: float = 0.5,
    kind: Literal["slow", "fast"] = "slow",
    number: Annotated[int, Argument(convert=even)] = 2,
    many: tuple[int, ...] = (),
    is_quiet: Annotated[bool, Argument(short="-q")] = False,
    name: str | None = None,
    left: Annotated[bool, Argument(exclusive="side")] = False,
    right: Annotated[bool, Argument(exclusive="side")] = False,
    options: Options,
) -> None:
    """Do it at 100 %.

    More on it.

    Args:
        run: A run.
        pair: Two numbers.
        files: Some files.
        steps: Number
            of steps: all.
        rate: A rate.
        kind: A kind.
        number: An even number.
        many: Numbers.
        is_quiet: No output.
        name: A name.
        left: One side.
        right: The other.
        options: Shared.

    Raises:
        ValueError: Never.
    """
    SEEN.append((run, pair, files, steps, rate, kind, number, many, is_quiet, name, left, right, options))


@pytest.fixture
def parser():
    made = argparse.ArgumentParser(prog="it")
    add_arguments(made, command)
    return made


def by_hand() -> argparse.ArgumentParser:
    """The same, written out."""
    made = argparse.ArgumentParser(prog="it")
    made.add_argument("run")
    made.add_argument("pair", nargs=2, type=int)
    made.add_argument("files", nargs="*", type=Path, default=[])
    made.add_argument("--steps", type=int, required=True)
    made.add_argument("--rate", type=float, default=0.5)
    made.add_argument("--kind", choices=["slow", "fast"], default="slow")
    made.add_argument("--number", type=even, default=2)
    made.add_argument("--many", nargs="+", action="extend", type=int, default=[])
    made.add_argument("-q", "--is-quiet", action="store_true")
    made.add_argument("--name")
    side = made.add_mutually_exclusive_group()
    side.add_argument("--left", action="store_true")
    side.add_argument("--right", action="store_true")
    made.add_argument("--root", type=Path, default=Path("here"))
    made.add_argument("--set", dest="settings", action="append", default=[])
    return made


def some_words(dice: random.Random) -> list[str]:
    """Some options in any order, around the positional arguments."""
    sides, kinds = ["--left", "--right"], ["slow", "fast"]
    options = [
        ["--rate", "1e-3"],
        ["--kind", dice.choice(kinds)],
        ["--number", "4"],
        [dice.choice(["-q", "--is-quiet"])],
    ]
    options += [["--many", "1", "2", "--many", "3"], [dice.choice(sides)], ["--root", "there"]]
    options += [["--set", "a=1", "--set", "b=2"], ["--name=x"]]
    chosen = [["--steps", "7"], *dice.sample(options, dice.randint(0, len(options)))]
    dice.shuffle(chosen)
    return ["a/run", "1", "2", *dice.choice([[], ["f"], ["f", "g"]]), *(word for option in chosen for word in option)]


def values_of(parser: argparse.ArgumentParser, words: list[str]) -> dict[str, Any]:
    found = vars(parser.parse_args(words))
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}


@pytest.mark.parametrize("seed", range(20))
def test_arguments_are_those_of_a_parser_by_hand(parser, seed):
    words = some_words(random.Random(seed))
    assert values_of(parser, words) == values_of(by_hand(), words)


def test_function_gets_tuples_and_its_dataclass(parser):
    call(command, parser.parse_args(["r", "1", "2", "f", "--steps", "3", "--many", "5", "6", "--set", "a=1"]))
    options = Options(Path("here"), ("a=1",))
    assert SEEN.pop() == ("r", (1, 2), (Path("f"),), 3, 0.5, "slow", 2, (5, 6), False, None, False, False, options)


def test_repeated_calls_share_no_values(parser):
    words = ["r", "1", "2", "--steps", "3", "--set", "a=1", "--many", "1"]
    assert [parser.parse_args(words).settings for _ in range(2)] == [["a=1"]] * 2
    assert parser.parse_args(words[:5]).many == []


GOOD = ["r", "1", "2", "--steps", "3"]


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["r", "1", "2"], "the following arguments are required: --steps"),
        (["r", "1", "--steps", "3"], "the following arguments are required: N"),
        ([*GOOD, "--left", "--right"], "--right: not allowed with argument --left"),
        ([*GOOD, "--number", "3"], "argument --number: must be even, got 3"),
        ([*GOOD, "--kind", "odd"], "argument --kind: invalid choice: 'odd'"),
        (["r", "1", "2", "--steps", "x"], "argument --steps: invalid int value: 'x'"),
    ],
)
def test_wrong_arguments_end_in_status_2(parser, words, fault, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        parser.parse_args(words)
    assert fault in capsys.readouterr().err


def test_help_is_the_docstring_with_defaults(parser):
    said = " ".join(parser.format_help().split())
    assert "Do it at 100 %. More on it. positional arguments:" in said
    texts = ["--steps STEPS Number of steps: all --rate", "--rate RATE A rate (default: 0.5)", "RUN A run"]
    texts += ["--root ROOT Root folder (default: here)", "--set KEY=VALUE A key with its value", "--left One side"]
    assert [text for text in texts if text not in said] == []
    assert "Shared" not in said and "ValueError" not in said


@pytest.mark.parametrize("package", ["rich.console", "pydantic"])
def test_missing_package_is_one_line_that_names_the_environment(package, capsys):
    missing = ModuleNotFoundError(f"No module named {package!r}", name=package)
    assert status_of(Mock(side_effect=missing)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: Python package '{package.split('.')[0]}' is missing; run `make env`")


def test_missing_module_of_the_project_itself_is_a_fault():
    with pytest.raises(ModuleNotFoundError):
        status_of(lambda: __import__("pipeline.nothing"))
