"""Every stage asks for what it can't do without, by name, before it starts."""

import argparse
import importlib
import re
from pathlib import Path

import pytest

from pipeline.stages import STAGES, parse
from reprise.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"--threads", "--mirror", "--calibration", "--language-model", "--tuned"}
"""Options that are none where they are not given, whatever the stage."""
OF_A_STAGE = {
    "average": {"--last", "--best"},  # one of the two
    "launch": {"--run", "--folder", "--beside", "--spec"},
    "train": {"--spec"},
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


def called_by(block: str) -> set[str]:
    """Return the stages that the text of a rule calls, by name or by one of the names that `params.stage` may have."""
    named = set(re.findall(r"python -m pipeline ([a-z][a-z-]+)", block)) | set(re.findall(r"-- ([a-z][a-z-]+) ", block))
    chosen = re.search(r"^        stage=(.*)$", block, re.MULTILINE)
    return (named | set(re.findall(r'"([a-z-]+)"', chosen[1] if chosen else ""))) & set(STAGES)


def rules() -> dict[tuple[str, str], str]:
    """Return the text of each rule by its name and each stage that it calls."""
    found = {}
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for block in re.split(r"\n(?=(?:use )?rule )", path.read_text())[1:]:
            name = re.match(r"(?:use rule \w+ as )?(?:rule )?(\w+)", block)[1]
            if "shell:" in block:  # the others inherit it
                found |= {(name, stage): block for stage in sorted(called_by(block))}
    return found


@pytest.mark.parametrize(("rule", "stage"), rules())
def test_a_rule_gives_a_stage_the_options_that_it_requires(rule, stage):
    block = rules()[rule, stage]
    given = set(re.findall(r"--[a-z][a-z-]*", block))
    required = {
        action.option_strings[0] for action in options(stage)._actions if action.required and action.option_strings
    }
    assert given >= required


def test_most_stages_are_called_by_rules():
    called = {stage for _, stage in rules()}
    assert len(called) > 14 and {"decode", "prepare", "score", "figure"} <= called


def test_a_stage_is_found_by_the_name_of_its_rule_too():
    assert parse(["check_data", "--offline"]).stage == "check-data"
    assert parse(["layer_times", "--out", "x.json"]).stage == "layer-times"
