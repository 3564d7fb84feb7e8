"""Commands that read one scale name the others with runs, with the command for each."""

import pytest
from copied_project import ROOT
from real_project import real_project

from pipeline.core.errors import command_advice
from pipeline.workflow.targets import reprise_command
from reprise.__main__ import main

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def work(tmp_path):
    """Return a work folder with runs at two scales."""
    for scale in ("smoke", "paper"):
        (tmp_path / scale / "runs/weighted/C/toy/seed1-12345678").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("stage", ["verify", "free"])
def test_other_scales_with_runs_are_named_with_their_command(stage, work, capfd, caplog):
    caplog.set_level("INFO")
    assert main([stage, "--root", str(ROOT), "--set", f"work={work}"]) == 0
    said = capfd.readouterr().out + caplog.text
    for scale in ("smoke", "paper"):
        command = f"`reprise {stage} --set scale={scale} --set work={work}`"
        assert f"scale {scale} also has runs in {work}, which were not checked: run {command}" in said


def test_the_scale_that_was_read_is_not_named_as_unchecked(work, capfd):
    assert main(["free", "--root", str(ROOT), "--set", f"work={work}", "--set", "scale=smoke"]) == 0
    said = capfd.readouterr().out
    assert "scale smoke also" not in said and "scale paper also has runs" in said


def test_command_includes_settings_that_differ_from_config_yaml(tmp_path):
    assert reprise_command(real_project(), "free") == "reprise free"
    project = real_project({"scale": "smoke", "seeds": [1, 7]})
    assert reprise_command(project, "free") == "reprise free --set scale=smoke --set 'seeds=[1, 7]'"
    assert reprise_command(project, "free", scale="demo") == "reprise free --set 'seeds=[1, 7]'"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (" --set scale=smoke", "`reprise free --set scale=smoke`"),
        ("", "`reprise free`"),
        (None, "`reprise free` (with --set for each --config)"),
    ],
)
def test_stage_advises_commands_with_its_workflow_settings(settings, said, monkeypatch):
    monkeypatch.delenv("REPRISE_SETTINGS", raising=False)
    if settings is not None:
        monkeypatch.setenv("REPRISE_SETTINGS", settings)
    assert command_advice("free") == said
