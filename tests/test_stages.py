"""Commands: their options, help, names and completion, and the arguments that rules pass to them."""

import argparse
import gc
import importlib
import platform
import re
import subprocess
import sys
import tomllib

import pytest
import shtab
from rule_files import BLOCKS

from pipeline.core.command_line import documented
from pipeline.core.program import Program, loaded
from pipeline.core.provenance import ROOT
from pipeline.stages import PIPELINE, STAGES
from reprise.__main__ import main
from reprise.cli import COMMANDS, REPRISE

LEFT_OUT = {"--threads", "--mirror", "--calibration", "--language-model", "--tuned"}
"""Options that are none where they are not given, whatever the stage."""
OF_A_STAGE = {
    "launch": {"--run", "--folder", "--beside", "--spec", "--decodings"},
    "train": {"--spec"},
    "translate": {"--text"},
    "perplexity": {"--corpus"},
}


def options(stage: str, program: Program = PIPELINE) -> argparse.ArgumentParser:
    return program.parsers([stage])[1][stage]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_during_an_import(is_enabled, tmp_path, monkeypatch):
    """It would walk through all that is imported, which makes a first translation a third slower."""
    (tmp_path / "collecting.py").write_text("import gc\n\nIS_ENABLED = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "collecting", raising=False)
    before = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        assert not loaded("collecting").IS_ENABLED
        with pytest.raises(ModuleNotFoundError):
            loaded("no_such_module")
        assert gc.isenabled() == is_enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_a_program_keeps_its_modules_from_the_garbage_collector(monkeypatch):
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    assert main(["completion", "bash"]) == 0 and not frozen
    monkeypatch.setattr(sys, "argv", ["reprise", "completion", "bash"])
    assert main() == 0 and frozen == [True]


@pytest.mark.parametrize(("words", "program"), [("python -m pipeline", PIPELINE), ("(?:`|^    )reprise", REPRISE)])
def test_commands_named_in_the_code_exist(words, program):
    folders = [ROOT / name for name in ("pipeline", "reprise", "workflow")]
    files = [path for folder in folders for ending in ("py", "smk") for path in folder.rglob(f"*.{ending}")]
    called = [name for path in files for name in re.findall(rf"{words} ([a-z][a-z_-]*)", path.read_text(), re.M)]
    assert len(called) > 18 and not set(called) - set(program.commands)


@pytest.mark.parametrize("name", REPRISE.commands)
def test_summary_is_the_first_sentence_of_the_help(name):
    command = REPRISE.commands[name]
    first, _, _ = documented(command.load())[0].partition("\n")
    assert first == f"{command.summary}."


def test_pipeline_names_no_module_of_reprise():
    """Check imports, strings, docstrings, templates and rules; `reprise COMMAND` is the name of a program."""
    module = re.compile(r"\b(from|import) reprise\b|\breprise[./:]\w|-m\W+reprise\b")
    files = [path for path in (ROOT / "pipeline").rglob("*") if path.suffix in (".py", ".html", ".csv")]
    files += [ROOT / "Snakefile", ROOT / "workflow/Snakefile", *(ROOT / "workflow").rglob("*.smk")]
    named = [path for path in files if module.search(path.read_text())]
    assert len(files) > 300 and not named


def test_entry_points_lead_downwards_only():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(scripts) == {"reprise"}
    module, _, function = scripts["reprise"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert all(stage.target.startswith("pipeline.") for stage in STAGES.values())
    assert all(command.target.startswith("reprise.") for command in COMMANDS.values())


def test_both_programs_share_the_commands_of_the_pipeline():
    shared = {name: command for name, command in REPRISE.commands.items() if name not in COMMANDS}
    assert shared.items() <= STAGES.items()
    assert REPRISE.commands.keys() == COMMANDS.keys() | STAGES.keys()


FOR_USE = {*COMMANDS, "results", "site", "collect-ldc", "search-rate"}


@pytest.mark.parametrize(
    ("program", "listed"), [(PIPELINE, {*STAGES}), (REPRISE, FOR_USE)], ids=["pipeline", "reprise"]
)
def test_help_lists_every_command_for_use_and_imports_none(program, listed):
    words = f"import sys; sys.argv = ['x', '--help']; from {program.name.split()[-1]}.__main__ import main\n"
    words += "try: main()\nfinally: print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert {*re.findall(r"^    (\S+)", said, re.MULTILINE)} == listed
    assert not {"numpy", "pydantic", "yaml", "torch"} & set(said.splitlines()[-1].split())


@pytest.mark.parametrize("program", [PIPELINE, REPRISE], ids=lambda program: program.name)
def test_version_names_release_commit_and_packages(program, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        program.parse(["--version"])
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    pattern = rf"reprise {re.escape(release)}: commit \S+, python {platform.python_version()}, .*, torch \S+, .*\n"
    said = capsys.readouterr().out
    assert re.fullmatch(pattern, said) and platform.node() not in said.split()


@pytest.mark.parametrize("stage", STAGES)
def test_an_option_without_a_default_is_required(stage, capsys):
    may_be_missing = LEFT_OUT | OF_A_STAGE.get(stage, set())
    actions = [action for action in options(stage)._actions if action.dest != "help"]
    without = {action.option_strings[0] for action in actions if action.default is None and action.option_strings}
    required = {action.option_strings[0] for action in actions if action.required and action.option_strings}
    assert required == without - may_be_missing
    if required:
        with pytest.raises(SystemExit, match="2"):
            PIPELINE.parse([stage])
        said = capsys.readouterr().err
        assert all(name in said for name in required)


@pytest.mark.parametrize("program", [PIPELINE, REPRISE], ids=lambda program: program.name)
def test_every_argument_is_explained(program):
    for name in program.commands:
        actions = options(name, program)._actions
        assert not [action.option_strings or action.dest for action in actions if not action.help], name


def called_by(block: str) -> set[str]:
    """Return the stages that the text of a rule calls, by name or by one of the names that `params.stage` may have."""
    named = set(re.findall(r"python -m pipeline ([a-z][a-z-]+)", block)) | set(re.findall(r"-- ([a-z][a-z-]+) ", block))
    chosen = re.search(r"^        stage=(.*)$", block, re.MULTILINE)
    return (named | set(re.findall(r'"([a-z-]+)"', chosen[1] if chosen else ""))) & set(STAGES)


def rules() -> dict[tuple[str, str], str]:
    """Return the text of each rule by its name and each stage that it calls."""
    with_shell = [(name, block) for _, name, block in BLOCKS if "shell:" in block]  # the others inherit it
    return {(name, stage): block for name, block in with_shell for stage in sorted(called_by(block))}


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
    assert PIPELINE.parse(["check_data", "--offline"]).stage == "check-data"
    assert PIPELINE.parse(["layer_times", "--out", "x.json"]).stage == "layer-times"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    with pytest.MonkeyPatch.context() as patch:
        for shell in ("bash", "zsh"):
            with open(folder / shell, "w") as script:
                patch.setattr("sys.stdout", script)
                assert main(["completion", shell]) == 0
    return folder


def completed(scripts, *words: str) -> set[str]:
    """Return the completions that bash offers for the last of `words`."""
    line = " ".join(f"'{word}'" for word in words)
    program = f"""source {scripts}/bash
        COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE="${{COMP_WORDS[*]}}"; COMP_POINT=${{#COMP_LINE}}
        _shtab_reprise; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True, cwd=scripts)
    return set(done.stdout.split())


def test_bash_completes_commands_options_choices_and_files(scripts):
    assert completed(scripts, "reprise", "") >= set(REPRISE.commands)
    assert completed(scripts, "reprise", "trans") == {"translate", "transcribe", "transcript-table"}
    assert completed(scripts, "reprise", "status", "--w") == {"--watch"}
    assert completed(scripts, "reprise", "completion", "") >= set(shtab.SUPPORTED_SHELLS)
    assert "zsh" in completed(scripts, "reprise", "transcribe", "run", "z")


def test_zsh_knows_every_command_and_its_options(scripts):
    said = (scripts / "zsh").read_text()
    assert all(f"\n    {name}:'" in said for name in COMMANDS)
    assert "--watch[" in said
