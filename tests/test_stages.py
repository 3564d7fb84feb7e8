"""Every stage asks for what it can't do without, by name, before it starts."""

import argparse
import importlib
import re
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.stages import STAGES, parse
from reprise.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"--threads", "--mirror", "--calibration", "--language-model", "--tuned"}
"""Options that are none where they are not given, whatever the stage."""
OF_A_STAGE = {
    "average": {"--last", "--best"},  # one of the two
    "launch": {"--run", "--folder", "--out"},
    "show": {"--paper", "--table"},
    "translate": {"--text"},
    "perplexity": {"--corpus"},
}


def options(stage: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    importlib.import_module(STAGES[stage][0]).add_arguments(parser)
    return parser


def test_a_stage_that_the_code_tells_people_to_call_is_one():
    folders = [ROOT / name for name in ("pipeline", "reprise", "workflow")]
    files = [path for folder in folders for ending in ("py", "smk") for path in folder.rglob(f"*.{ending}")]
    called = [name for path in files for name in re.findall(r"python -m pipeline ([a-z][a-z_-]*)", path.read_text())]
    assert len(called) > 30 and not set(called) - set(STAGES)


@pytest.mark.parametrize("stage", STAGES)
def test_an_option_without_a_default_is_required(stage, capsys):
    may_be_missing = LEFT_OUT | OF_A_STAGE.get(stage, set())
    actions = [action for action in options(stage)._actions if action.dest != "help"]
    without = {action.option_strings[0] for action in actions if action.default is None and action.option_strings}
    required = {action.option_strings[0] for action in actions if action.required and action.option_strings}
    assert required == without - may_be_missing
    if required:
        with pytest.raises(SystemExit, match="2"):
            parse([stage])
        said = capsys.readouterr().err
        assert all(name in said for name in required)


@pytest.mark.parametrize("module", sorted({module for module, _ in (*STAGES.values(), *COMMANDS.values())}))
def test_every_argument_is_explained(module):
    parser = argparse.ArgumentParser()
    importlib.import_module(module).add_arguments(parser)
    assert not [action.option_strings or action.dest for action in parser._actions if not action.help]


ASKED_BY_RULES = {
    "mirror": "--mirror",
    "packages": "--package",
    "language_model": "--language-model",
    "tuned": "--tuned",
    "settings": "--set",
}
"""Placeholders of rules that stand for an option and its value."""


def rules() -> dict[str, tuple[str, str]]:
    """By name: the stage's words, and the shell command, which a rule that uses another has of that one."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for block in re.split(r"\n(?=(?:use )?rule )", path.read_text())[1:]:
            base, name = re.match(r"(?:use rule (\w+) as )?(?:rule )?(\w+)", block).groups()
            words = re.search(r'stage\(\s*((?:f?"[^"]*"\s*)+)', block)
            shell = block.partition("shell:")[2] or found.get(base, ("", ""))[1]
            words = "".join(re.findall(r'"([^"]*)"', words[1])) if words else found.get(base, ("", ""))[0]
            found[name] = words, shell
    return {name: one for name, one in found.items() if one[0].partition(" ")[0] in STAGES}


@pytest.mark.parametrize("rule", rules())
def test_a_rule_gives_a_stage_options_that_it_has_and_all_that_it_asks_for(rule):
    words, shell = rules()[rule]
    stage, *words = words.split()
    alone = {word.strip("{}") for before, word in pairwise(["", *words]) if not before.startswith("--")}
    given = {word for word in (*words, *shell.partition("{params.command:q}")[2].split()) if word.startswith("--")}
    given |= {ASKED_BY_RULES[name] for name in alone & ASKED_BY_RULES.keys()}
    actions = options(stage)._actions
    assert given <= {name for action in actions for name in action.option_strings}
    assert given >= {action.option_strings[0] for action in actions if action.required and action.option_strings}


def test_most_stages_are_called_by_rules():
    called = {words.partition(" ")[0] for words, _ in rules().values()}
    assert len(called) > 25 and {"translate", "prepare", "score", "table"} <= called


def test_a_stage_is_found_by_the_name_of_its_rule_too():
    assert parse(["check_data", "--offline"]).stage == "check-data"
    assert parse(["layer_times", "--out", "x.json"]).stage == "layer-times"
