"""Shells complete the commands of `reprise`, their options, and the choices of these."""

import subprocess

import pytest
import shtab

from reprise.__main__ import main
from reprise.cli import COMMANDS, REPRISE


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


def test_bash_completes_every_command(scripts):
    assert completed(scripts, "reprise", "") >= set(REPRISE.commands)
    assert completed(scripts, "reprise", "trans") == {"translate", "transcribe", "transcript-table"}


def test_bash_completes_options_and_their_choices(scripts):
    assert completed(scripts, "reprise", "status", "--w") == {"--watch"}
    assert completed(scripts, "reprise", "completion", "") >= set(shtab.SUPPORTED_SHELLS)


def test_bash_completes_files_where_one_is_wanted(scripts):
    assert "zsh" in completed(scripts, "reprise", "transcribe", "run", "z")


def test_zsh_knows_every_command_and_its_options(scripts):
    said = (scripts / "zsh").read_text()
    assert all(f"\n    {name}:'" in said for name in COMMANDS)
    assert "--watch[" in said
