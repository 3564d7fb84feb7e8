"""Every command, path and settings block of the documentation works: each command is run, most of them as a dry run.

A command is a line of a code block, or an inline span of several words, that begins with a program. A program that no
function here can try, and a line of a block that is neither command nor listing nor YAML, fail.
"""

import contextlib
import io
import itertools
import re
import runpy
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from copied_project import ROOT, add_toy_paper, call, copy_project, require, shrink

from pipeline.cluster.resources import Site
from pipeline.core.schema import validate
from pipeline.papers.config_file import Config
from pipeline.papers.paper import SystemEntry
from pipeline.papers.project import load_project
from pipeline.stages import PIPELINE
from reprise.cli import REPRISE

ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md")
KINDS = ("", "tutorials", "how-to", "reference", "explanation", "measured")
PAGES = [*(ROOT / page for page in ROOT_PAGES)]
PAGES += sorted(page for kind in KINDS for page in (ROOT / "docs" / kind).glob("*.md"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
(VENV,) = re.findall(r"^VENV := (.+)$", MAKEFILE, re.MULTILINE)
TOY_TARGET = "results/smoke/toy/table1.csv"
EXECUTED = {"unlock", "free", "check-data", "--version"}
"""Stages that end in seconds; of others the arguments are parsed."""
LISTING = re.compile(r"^(?=\S*[/.,<])[\w./<>,*-]+( [\w./<>,*-]+)*(  +\S.*)?$")
"""A path, or several, and what it is."""


def blocks(text: str) -> Iterator[list[str]]:
    """The lines of each indented or fenced code block but pictures, and Python, which has tests of its own."""
    fenced = re.findall(r"^```(?!mermaid|python)\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(
        r"(?:(?<=\n\n)|\A)((?: {4}.*\n|\n(?= {4}))+)", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    )
    for block in (*fenced, *indented):
        lines = block.strip("\n").split("\n")
        margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        yield [line[margin:] for line in lines if line.strip()]


def spans(text: str) -> Iterator[str]:
    """Inline code outside of blocks."""
    prose = re.sub(r"^( {4}[^\n]*|```.*?^```)$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose))


def is_command(line: str) -> bool:
    program = line.split()[0]
    return program in TRIED or shutil.which(program) is not None or (ROOT / program).is_file()


def commands_of(text: str) -> Iterator[str]:
    lines = [line for block in blocks(text) for line in block] + [span for span in spans(text) if " " in span]
    for line in filter(is_command, lines):
        yield re.sub(r"(^| )#.*| {3,}.*", "", line).strip().replace(" -n ", " ")


def is_settings(block: list[str]) -> bool:
    """Return whether a block is YAML: a mapping of plain keys."""
    return not any(map(is_command, block)) and re.fullmatch(r"[\w-]+:( .*)?", block[0]) is not None


TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PAGES}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A copy of the project with another paper, whose table was made at smoke, and an empty mirror."""
    root = shrink(copy_project(tmp_path_factory.mktemp("project")))
    add_toy_paper(root)
    (root / "DIR").mkdir()
    require(call(root, "snakemake", "-j2", "--config", "scale=smoke", "--", TOY_TARGET))
    return root


def try_snakemake(root: Path, arguments: list[str]) -> None:
    """Run the command as a dry run; a report, which needs something to show, gets the table that was made."""
    if "--report" in arguments:
        *options, target = arguments
        assert target == "all"
        require(call(root, "snakemake", "--config", "scale=smoke", *options, TOY_TARGET))
        assert (root / arguments[arguments.index("--report") + 1]).stat().st_size > 1000
    else:
        require(call(root, "snakemake", "-n", *arguments))


def try_python(root: Path, arguments: list[str]) -> None:
    """A quick stage is run, another's arguments are parsed; of a benchmark every option has to be one of its own."""
    if arguments[:2] == ["-m", "pipeline"]:
        stage = arguments[2]
        if stage in EXECUTED:
            smallest = [] if "--set" in arguments else ["--set", "scale=smoke"]
            done = call(root, "python", *arguments, *smallest)
            missing = stage == "check-data" and "files are missing" in done.stdout + done.stderr
            assert missing or require(done) is not None
        else:
            with pytest.raises(SystemExit, match=r"^0$") if "--help" in arguments else contextlib.nullcontext():
                PIPELINE.parse(arguments[2:])
    else:
        known = help_of(root / arguments[0])
        assert all(option in known for option in arguments if option.startswith("--")), known


def help_of(script: Path) -> str:
    """Return the help of a script, in this process, so that shared modules are imported once."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.setattr(sys, "argv", [str(script), "--help"])
        patch.syspath_prepend(script.parent)
        with pytest.raises(SystemExit, match=r"^0$"):
            runpy.run_path(str(script), run_name="__main__")
    return said.getvalue()


def try_reprise(root: Path, arguments: list[str]) -> None:
    """The arguments are parsed; the commands themselves are run in tests/use."""
    if arguments[0] in EXECUTED:
        require(call(root, "reprise", *arguments))
        return
    if arguments[0] == "COMMAND" or len(arguments) == 1:
        assert arguments in (["COMMAND", "--help"], ["--help"]) or arguments[0] in REPRISE.commands
        arguments = ["--help"]
    with pytest.raises(SystemExit, match=r"^0$") if "--help" in arguments else contextlib.nullcontext():
        REPRISE.parse(arguments)


def try_pip(root: Path, arguments: list[str]) -> None:
    """Every extra that is named is one of ours, and every pin one of the Makefile's."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert arguments[0] == "install" and set(re.findall(r"\[(\w+)\]", " ".join(arguments))) <= set(extras)
    assert all(re.search(rf":= {re.escape(word)}$", MAKEFILE, re.MULTILINE) for word in arguments if "==" in word)


def try_sbatch(root: Path, arguments: list[str]) -> None:
    """Check the script; the words after its `here` are those of Snakemake."""
    script, *words = itertools.dropwhile(lambda word: word.startswith("-"), arguments)
    assert "#SBATCH" in (root / script).read_text()
    require(call(root, "bash", "-n", script))
    if words:
        assert words[0] == "here"
        try_snakemake(root, words[1:])


def try_apt(root: Path, arguments: list[str]) -> None:
    """Check that the Makefile installs the same packages."""
    action, *packages = arguments
    assert action == "install" and all(package in MAKEFILE for package in packages)


def try_image(root: Path, arguments: list[str]) -> None:
    """Building takes a network and rights: what it is built from is there, and what it then runs is tried here."""
    action, *rest = arguments
    if action == "build":
        assert (ROOT / ("Dockerfile" if rest[-1] == "." else rest[-1])).is_file()
    else:
        program, *words = rest[rest.index("reprise.sif") + 1 :]
        TRIED[program](root, words)


def try_sinfo(root: Path, arguments: list[str]) -> None:
    """Run a command of Slurm. Its daemons need not be up: the program refuses a wrong option by itself."""
    if shutil.which("sinfo"):
        done = call(root, "env", "-u", "SLURM_CONF", "sinfo", *arguments)
        down = re.search("slurmctld|contact|munge|configuration source|Zero Bytes", done.stderr)
        assert done.returncode == 0 or down, done.stderr


def try_tar(root: Path, arguments: list[str]) -> None:
    """Run a command that packs or unpacks runs; tests/use/test_documented_commands.py runs both in order."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "judged").mkdir()
        (Path(folder) / "work").symlink_to(root / "work")
        if "-xzf" in arguments:
            require(call(Path(folder), "tar", "-C", "work", "-czf", arguments[-1], "smoke/runs"))
        require(call(Path(folder), "tar", *(word.replace("demo/", "smoke/") for word in arguments)))


def accept_only(*expected: str) -> Callable[[Path, list[str]], None]:
    """Return a check of the arguments of a program that cannot be tried here."""

    def check(root: Path, arguments: list[str]) -> None:
        assert tuple(arguments) == expected

    return check


TRIED = {
    "apt-get": try_apt,
    "docker": try_image,
    "apptainer": try_image,
    "snakemake": try_snakemake,
    "python": try_python,
    "make": lambda _, arguments: require(call(ROOT, "make", "-n", *arguments)),
    "reprise": try_reprise,
    "pip": try_pip,
    "python3": accept_only("-m", "venv", VENV),
    "pre-commit": accept_only("install"),
    "sbatch": try_sbatch,
    "sinfo": try_sinfo,
    "source": accept_only(f"{VENV}/bin/activate"),
    "kill": accept_only("-9"),
    "mkdir": accept_only("judged"),
    "tar": try_tar,
}
WRITTEN = {command for text in TEXTS.values() for command in commands_of(text)}
DRY_RUNS = {command for command in WRITTEN if command.startswith("snakemake ") and "--report" not in command}


def options_of(words: list[str]) -> tuple[str, ...]:
    """Return the words of a Snakemake command before its targets; without `--` and with options it has one target."""
    if "--" in words:
        return tuple(words[: words.index("--") + 1])
    return tuple(words[:-1]) if any(word.startswith("-") for word in words) else ()


def together(commands: set[str]) -> list[str]:
    """Join the targets of Snakemake commands whose options are all the same, and keep these options as written."""
    targets: dict[tuple[str, ...], set[str]] = {}
    for words in (shlex.split(command)[1:] for command in commands):
        options = options_of(words)
        targets.setdefault(options, set()).update(words[len(options) :])
    return sorted(shlex.join(["snakemake", *options, *sorted(named)]) for options, named in targets.items())


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(WRITTEN - DRY_RUNS) + together(DRY_RUNS))
def test_every_command_works(command, finished):
    program, *arguments = shlex.split(command)
    assert program in TRIED, f"no function of this test tries {program!r}: {command}"
    TRIED[program](finished, arguments)


def test_only_commands_of_the_same_options_share_a_dry_run():
    words = ("weighted", "all", "-p all", "-j -- all", "-j -- a b", "--config seeds=3 -- a", "--resources gpus=4 -- a")
    assert together({f"snakemake {each}" for each in words}) == [
        "snakemake --config seeds=3 -- a",
        "snakemake --resources gpus=4 -- a",
        "snakemake -j -- a all b",
        "snakemake -p all",
        "snakemake all weighted",
    ]


def test_commands_are_found_and_what_looks_like_none_fails():
    block = "    snakemake -n all    # jobs\n    snakmake -n all"
    text = f"Say `make demo`.\n\n{block}\n\n```sh\npython -m pipeline --help\n```"
    assert list(commands_of(text)) == ["python -m pipeline --help", "snakemake all", "make demo"]
    assert not all(is_classified(block) for block in blocks(text))


def is_classified(block: list[str]) -> bool:
    return is_settings(block) or all(is_command(line) or LISTING.match(line) for line in block)


@pytest.mark.parametrize("page", TEXTS)
def test_every_block_is_of_commands_paths_or_valid_settings(page):
    for block in blocks(TEXTS[page]):
        assert is_classified(block), "\n".join(block)
        if not is_settings(block):
            continue
        settings = yaml.safe_load("\n".join(block))
        if set(settings) <= set(Config.model_fields):
            load_project(ROOT, settings)
        elif any(isinstance(value, dict) and "base" in value for value in settings.values()):
            validate(dict[str, SystemEntry], settings, page)
        else:
            validate(Site, settings, page)


@pytest.mark.parametrize("page", TEXTS)
def test_every_path_of_a_page_exists(page):
    text, folder = TEXTS[page], (ROOT / page).parent
    named = re.findall(r"\b(?:workflow|pipeline|bench|slurm|profiles|docs|tests)/[\w./*<>-]*[\w*/>]", text)
    for path in named:
        assert list(ROOT.glob(re.sub(r"<\w+>", "*", path))), path
    for path in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (folder / path).exists(), path
