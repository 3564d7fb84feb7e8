"""Every stage asks for what it can't do without, by name, before it starts."""

import argparse
import importlib

import pytest

from pipeline.stages import STAGES, parse

LEFT_OUT = {"--threads", "--mirror", "--calibration", "--language-model", "--tuned"}
"""Options that are none where they are not given, whatever the stage."""
OF_A_STAGE = {
    "average": {"--last", "--best"},  # one of the two
    "launch": {"--run", "--folder", "--out"},
    "show": {"--paper"},
    "translate": {"--text"},
    "perplexity": {"--corpus"},
}


def options(stage: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    importlib.import_module(STAGES[stage][0]).add_arguments(parser)
    return parser


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
