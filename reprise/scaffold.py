"""Files made from the templates of workflow/scaffold: datasets, papers and model cards."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import UserError
from pipeline.core.files import WRITTEN_FILES, atomic_write
from pipeline.core.records.outputs import MetricValue
from pipeline.core.schema import require_known
from pipeline.core.yaml_file import yaml_text
from pipeline.data.languages import base_language
from pipeline.papers.project import Project
from pipeline.report.markup import literal
from pipeline.workflow.targets import names_of_rules

if TYPE_CHECKING:
    from reprise.portable import PortableModel

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


def fill_template(template: Path, **values: Any) -> str:
    """Return a filled template.

    Args:
        template: A text with `{name}` instead of each value.
        values: Each is written as it is; one that is a whole YAML value must come from `yaml_text` or be JSON.
    """
    return template.read_text(encoding="utf-8").format(**values)


@contextmanager
def remove_on_failure(*folders: Path) -> Iterator[None]:
    """Remove the files that the block wrote if it fails, as half of a dataset or paper would stop every later command.

    Args:
        folders: Folders that are removed, too, if the block created them.
    """
    before, created = len(WRITTEN_FILES), [folder for folder in folders if not folder.exists()]
    try:
        yield
    except BaseException:
        while len(WRITTEN_FILES) > before:
            WRITTEN_FILES.popitem()[0].unlink(missing_ok=True)
        for folder in created:
            with suppress(OSError):  # another process put a file there
                folder.rmdir()
        raise


def write_paper(project: Project, name: str, dataset: str) -> Path:
    """Return the folder of a new paper with two systems, a table and a claim.

    Raises:
        UserError: A paper or rule has this name, or the dataset is unknown or has no scored output.
    """
    if name in names_of_rules(project.root):
        raise UserError(f"{name}: is the name of a Snakemake rule; choose another")
    folder = project.root / "workflow/papers" / name
    if folder.exists():
        raise UserError(f"{folder}: already exists; choose another name")
    require_known(dataset, {*project.datasets, *project.scale.datasets}, "--dataset")
    form = project.dataset_records[project.stand_in(dataset)].form
    if form not in BASES:
        raise UserError(f"--dataset {dataset}: is of form {form}; name one of form {', '.join(BASES)}")
    for file in ("table1.csv", "claims.yaml", "paper.yaml"):  # a folder without the last one is no paper yet
        with atomic_write(folder / file) as handle:
            handle.write(
                fill_template(project.root / SCAFFOLD / file, name=name, dataset=yaml_text(dataset), **BASES[form])
            )
    return folder


def interval_of(metric: MetricValue) -> str:
    """Format the interval of a score; a dash for a single sentence."""
    return "–" if metric.low is None else f"{metric.low:.2f} to {metric.high:.2f}"


def in_cell(code: str) -> str:
    """Return code for a cell of a Markdown table, which a `|` would end."""
    return "`" + code.replace("|", r"\|") + "`"


def model_card(root: Path, record: "PortableModel", folder: str) -> str:
    """Return the model card: Markdown with a header in YAML.

    Args:
        root: Root of the project, which has the template.
        record: The packed model.
        folder: Name of its folder, for the examples.
    """
    rows = [
        f"| {literal(test_set)} | {name} | {score.value:.2f} | {interval_of(score)} | {in_cell(score.signature)} |"
        for test_set, metrics in record.scores.items()
        for name, score in metrics.items()
    ]
    src, tgt = record.preparation.src, record.preparation.tgt
    verb = {"speech": "transcribe", "trees": "parse"}.get(record.preparation.form, "translate")
    languages, usage = f"{src} to {tgt}", f"reprise {verb} {shlex.quote(folder)} FILE"
    if record.spec.model.reads == "text":  # a language model: no command reads it alone
        languages, usage = tgt, f"reprise.open_run({folder!r}).trained.model  # in Python"
    redistribution = f"The data may {'' if record.redistributable else 'not '}be redistributed."
    scores = "\n".join(rows) or "| none | | | | |"
    template = root / SCAFFOLD / "model_card.md"
    tags = "\n".join(hub_tags(record))
    terms = {name: literal(getattr(record, name)) for name in ("title", "licence", "citation")}
    return fill_template(
        template,
        it=record,
        tags=tags,
        languages=languages,
        usage=usage,
        scores=scores,
        redistribution=redistribution,
        **terms,
    )


def hub_tags(record: "PortableModel") -> list[str]:
    """Return the YAML lines by which the Hugging Face Hub finds a model: task, languages and architecture."""
    tasks = {"speech": "automatic-speech-recognition", "sentences": "translation"}
    is_lm, preparation = record.spec.model.reads == "text", record.preparation
    task = None if is_lm else tasks.get(preparation.form)
    read = [preparation.tgt] if is_lm else [preparation.src, preparation.tgt]
    sides = {base_language(side) for side in read} - {"speech", "brackets"}
    lines = [f"pipeline_tag: {task}"] if task else []
    lines += ["language:", *(f"- {yaml_text(language)}" for language in sorted(sides))] if sides else []
    return [*lines, "tags:", f"- {yaml_text(record.spec.model.architecture)}", f"- {yaml_text(record.spec.paper)}"]
