"""New datasets and papers from the templates of workflow/scaffold."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError
from pipeline.core.files import WRITTEN_FILES, atomic_write
from pipeline.core.yaml_file import yaml_text
from pipeline.papers.project import Project
from pipeline.workflow.targets import names_of_rules

SCAFFOLD = "workflow/scaffold"
HALF_THE_DROPOUT = {"changed": "half the dropout", "ascending": "[baseline, changed]"}
BASES = {
    "sentences": {
        **{"base": "attention/base", "decoding": "attention/final", "metric": "sacrebleu"},
        **HALF_THE_DROPOUT,
        "change": "model: {dropout: 0.05}",
    },
    "trees": {
        **{"base": "attention/parsing", "decoding": "attention/parsing", "metric": "f1"},
        **HALF_THE_DROPOUT,
        "change": "model: {dropout: 0.1}",
    },
    "speech": {
        **{"base": "coldfusion/attention-source", "decoding": "coldfusion/final", "metric": "wer"},
        **{"changed": "no scheduled sampling", "ascending": "[changed, baseline]"},  # errors
        "change": "training: {scheduled_sampling: 0.0}",
    },
}
"""Base system of a new paper, by the form of its dataset."""


def filled(template: Path, **values: Any) -> str:
    """Fill in a template.

    Args:
        template: A text with `{name}` instead of each value.
        values: Each is written as it is; one that is a whole YAML value must come from `yaml_text` or be JSON.
    """
    return template.read_text(encoding="utf-8").format(**values)


@contextmanager
def undone_on_failure(*folders: Path) -> Iterator[None]:
    """Remove the files that the block wrote if it fails, and those of `folders` that it created.

    Half of a dataset or paper would stop every later command of the project.
    """
    before, created = len(WRITTEN_FILES), [folder for folder in folders if not folder.exists()]
    try:
        yield
    except BaseException:
        while len(WRITTEN_FILES) > before:
            WRITTEN_FILES.popitem()[0].unlink(missing_ok=True)
        for folder in created:
            with suppress(OSError):  # somebody else put a file there meanwhile
                folder.rmdir()
        raise


def write_paper(project: Project, name: str, dataset: str) -> Path:
    """Write a new paper with two systems, a table and a claim, and return its folder.

    Raises:
        UserError: A paper or rule has this name, or the dataset is unknown or has no scored output.
    """
    if name in names_of_rules(project.root):
        raise UserError(f"{name}: a rule of the workflow has this name; choose another")
    folder = project.root / "workflow/papers" / name
    if folder.exists():
        raise UserError(f"{folder}: already exists; choose another name")
    project.known(dataset, {*project.datasets, *project.scale.datasets}, "--dataset")
    form = project.dataset_records[project.stand_in(dataset)].form
    if form not in BASES:
        raise UserError(f"--dataset {dataset}: is {form}; papers on {' and '.join(BASES)} can be begun so")
    for file in ("table1.csv", "claims.yaml", "paper.yaml"):  # a folder without the last one is no paper yet
        with atomic_write(folder / file) as handle:
            handle.write(filled(project.root / SCAFFOLD / file, name=name, dataset=yaml_text(dataset), **BASES[form]))
    return folder
