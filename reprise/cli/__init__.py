"""The command table of the program `reprise`: its own commands and those of the pipeline."""

import logging
from pathlib import Path
from typing import Literal

from pipeline.core.errors import UserError
from pipeline.core.program import Command, Program
from pipeline.stages import STAGES

log = logging.getLogger(__name__)

COMMANDS = {
    name: Command(target, summary, is_stage=False)
    for name, (target, summary) in {
        "make": ("reprise.cli.make:make", "Run Snakemake for some targets, and show its progress"),
        "show": ("reprise.cli.show:show", "Show a table in a terminal, with its notes"),
        "status": ("reprise.cli.status:status", "Show the progress of all runs, what failed and what to do"),
        "new": ("reprise.cli.new:new", "Create a dataset or a paper of your own"),
        "report": ("reprise.cli.report:print_report", "Print the contents of a prepared dataset"),
        "translate": ("reprise.cli.decode:translate", "Translate text, line by line"),
        "parse": ("reprise.cli.decode:parse", "Parse text, line by line, with words separated by spaces"),
        "transcribe": ("reprise.cli.decode:transcribe", "Transcribe audio files, one line per file"),
        "score": (
            "reprise.cli.score:score",
            "Decode a test set of a run's dataset again, and score it with every metric and 95 % intervals",
        ),
        "compare": ("reprise.cli.score:compare", "Test whether one run's score is better than another's"),
        "continue": ("reprise.cli.continue_run:continue_run", "Train a run for more steps, from its last checkpoint"),
        "record": (
            "reprise.cli.record:record",
            "Keep the results of finished runs in a folder, with a table over seeds",
        ),
        "pack": ("reprise.cli.pack:pack", "Pack a trained model into one folder or .tar file that works anywhere"),
        "unpack": ("reprise.cli.pack:unpack", "Unpack the .tar file of a model, and verify its files"),
        "publish": ("reprise.cli.pack:publish", "Upload a packed model, with its card, to the Hugging Face Hub"),
        "export": (
            "reprise.cli.pack:export",
            "Export a plain Transformer to CTranslate2, which decodes several times as fast",
        ),
        "free": ("reprise.cli.free:free", "List or remove files that finished work no longer needs"),
        "verify": (
            "reprise.cli.verify:verify",
            "Verify the digest of every file, and report or set aside damaged ones",
        ),
        "unlock": (
            "reprise.cli:unlock",
            "Remove the records of a killed Snakemake, unless another one is running",
        ),
        "completion": (
            "reprise.cli:completion",
            "Print a script that completes commands, options and files in a shell",
        ),
    }.items()
}

REPRISE = Program(
    "reprise",
    "Make and show results, use trained models, and bring your own data.",
    COMMANDS | {name: command for name, command in STAGES.items() if name not in COMMANDS},
    unlisted={name for name, command in STAGES.items() if command.is_stage} - COMMANDS.keys(),
    epilog="Each step of the workflow is a command, too: `python -m pipeline --help` lists them.",
)
"""Own commands come first. If a stage has the same name (`score`), `python -m pipeline` runs the stage."""


def completion(shell: Literal["bash", "zsh", "tcsh", "fish", "powershell"]) -> None:
    """Print a script that completes commands, options and files in a shell.

        reprise completion bash > ~/.local/share/bash-completion/completions/reprise
        reprise completion zsh > ~/.zfunc/_reprise             if fpath contains ~/.zfunc

    It takes effect in the next shell. The commands of the pipeline, which rules run, are completed by name only.

    Args:
        shell: Shell to write the script for.
    """
    import shtab

    program, by_name = REPRISE._replace(unlisted=()).parsers(COMMANDS)  # shtab completes what is listed
    for parser in by_name.values():
        for action in parser._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(program, shell))


def unlock(*, force: bool = False) -> None:
    """Remove the records of a killed Snakemake, unless another one is running.

        reprise unlock
        reprise unlock --force        the machine that it ran on is gone

    Each running Snakemake records its targets in .snakemake/drivers. This command removes the records of processes
    that ended. The next Snakemake does so itself, except for processes of another machine. Jobs on Slurm are not
    touched: Snakemake adopts them. Snakemake's own locks are removed, too. Writes no file.

    Args:
        force: Assume that a Snakemake on another machine, or one of another user that /proc hides, is dead.

    Raises:
        UserError: A Snakemake may still be running, or the working folder is not that of a project.
    """
    from pipeline.papers.project import require_project
    from pipeline.workflow.drivers import prune_stale

    require_project(Path(), "change to another one")
    dead, reasons = prune_stale(force)
    for driver in dead:
        log.info("process %d on %s is gone: its targets are free", driver.pid, driver.host)
    if reasons:
        raise UserError("\n".join(f"not unlocked: {reason}" for reason in reasons))
    for lock in (locks := list(Path(".snakemake/locks").glob("*.lock"))):
        lock.unlink(missing_ok=True)
        log.info("%s is removed", lock)
    if not (dead or locks):
        log.info("nothing is locked")
