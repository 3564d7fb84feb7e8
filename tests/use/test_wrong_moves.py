"""Commands that a new user gets wrong end in one line with the fault and the remedy."""

import re

import pytest
from real_project import ROOT, real_project

from pipeline.core.errors import UserError
from pipeline.workflow.rules import RuleFunctions
from pipeline.workflow.targets import unknown_target
from reprise.__main__ import main

WRONG = {
    "archive": (["translate", "base.tar"], "base.tar: neither a folder nor .*first `reprise unpack`"),
    "archive in a folder": (["translate", "/tmp/a.tar"], "/tmp/a.tar: neither a folder nor .*first `reprise unpack`"),
    "no scores": (
        ["show", "--paper", "multichannel", "--table", "table3"],
        r"table3: is no table of scores; `snakemake \S* ?-- \S+/table3.md` writes",
    ),
    "no archive": (["unpack", "base.tar"], "base.tar: no such file; `reprise pack` writes one"),
    "folder": (["new", "dataset", "calls", "--recordings", "."], r"\.: is a folder; name a table with the columns"),
    "setting as target": (
        ["make", "--set", "scale=small", "mirror=/files", "weighted"],
        "mirror=/files: is a setting, not a target; write `--set mirror=/files`",
    ),
    "no table": (
        ["new", "dataset", "calls", "--recordings", "calls.tsv"],
        "^error: calls.tsv: can't be read: No such file or directory; name a table in UTF-8 with the columns",
    ),
    "zero seeds": (["status", "--set", "seeds=0"], "seeds: Input should be a valid list or greater than or equal to 1"),
    "no cores": (["make", "weighted", "--cores", "zero"], "--cores zero: must be a number, at least 1, or `all`"),
    "brace": (["status", "--set", "work='a{b'"], "work: 'a{b': no rule can have a brace or a line break in a path"),
    "no mapping": (["status", "--set", "licensed=/corpora"], "licensed: Input should be a mapping, {key: value}"),
}
UNKNOWN_OPTIONS = {
    "setting as option": (["status", "--scale", "small"], "--scale; for a key of config.yaml, write `--set scale=…`"),
    "misspelt": (["verify", "--repiar"], "--repiar; did you mean '--repair'?"),
    "no setting": (["unlock", "--to", "de"], "--to de; options are --help, --force"),
    "neither": (["verify", "--to=de"], "--to=de; options are --help, --root, --set, --repair"),
    "word": (["show", "table2"], "table2; options are --help, --root, --set, --paper, --table, --wide"),
}
"""Arguments that argparse itself refuses: it prints the usage first."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a project the working folder."""
    for name in ("workflow", "config.yaml", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_argument_is_explained_in_one_line(name, folder, capsys):
    arguments, message = WRONG[name]
    assert main(arguments) == 1
    (error,) = capsys.readouterr().err.splitlines()
    with pytest.raises(UserError, match=message):
        raise UserError(error)


def test_program_without_a_command_says_how_to_list_them(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("error: name a command; `reprise --help` lists them\n")


@pytest.mark.parametrize("name", UNKNOWN_OPTIONS)
def test_unknown_option_is_explained_after_the_usage(name, folder, capsys):
    arguments, message = UNKNOWN_OPTIONS[name]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    command = f"reprise {arguments[0]}"
    usage, _, error = capsys.readouterr().err.partition(f"\n{command}: ")
    assert usage.startswith(f"usage: {command} ")
    assert error == f"error: unrecognized arguments: {message}\n"


@pytest.mark.parametrize(("word", "hint"), [("translat", "; did you mean 'translate'?"), ("help", "")])
def test_unknown_command_names_the_nearest(word, hint, capsys):
    with pytest.raises(SystemExit):
        main([word])
    assert f"unknown command {word!r}{hint}; `reprise --help`" in capsys.readouterr().err


def test_target_without_scale_or_file_is_corrected():
    project = real_project()
    assert unknown_target(project, "results/weighted/table2.csv").endswith("results/demo/weighted/table2.csv")
    assert unknown_target(project, "tabel2", {"weighted"}).endswith("or a file, such as results/table2.csv")
    assert unknown_target(project, "wieghted", {"weighted"}).endswith("did you mean 'weighted'?")


@pytest.mark.parametrize(
    ("target", "is_refused"),
    [
        ("results/demo/weighted/table2.csv", False),
        ("results/demo/weighted/table2.pdf", True),
        ("results/demo/weighted/table2.svg", True),
        ("results/demo/weighted/figure2.svg", False),
        ("results/demo/attention/table1.svg", False),
        ("results/table2.md", False),
        ("results/table2.svg", True),
    ],
)
def test_file_with_an_ending_that_no_rule_makes_is_refused(target, is_refused):
    assert bool(re.fullmatch(RuleFunctions(real_project()).unknown_targets(), target)) == is_refused
