"""The command `score`: decode and score a test set without writing into the run's folder."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pipeline import stages
from pipeline.core.artifacts import Prepared
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.records.outputs import ScoreFile
from pipeline.core.schema import known
from pipeline.data.dataset import AnyDataset
from pipeline.papers.project import Project
from pipeline.workflow.targets import snakemake_command
from reprise.find_runs import FoundRun
from reprise.opening import DecodingOptions, decoding_of


def score(
    model: Annotated[str, Argument(metavar="RUN")],
    *,
    threads: int | None = None,
    split: str = "test",
    options: DecodingOptions,
) -> None:
    """Decode a test set of a run's dataset again, and score it by every metric, with 95 % intervals.

        reprise score attention/base/wmt14-en-de/1 --decoding beam=8,alpha=1.0

    Writes nothing into the run's folder. To score any other text: `reprise translate RUN my.en | sacrebleu my.de`.

    Args:
        model: Run as paper/system/dataset/seed, or its folder; no packed model.
        threads: CPU threads; by default all cores.
        split: Split to decode: dev, test, test2, ….
        options: How to decode, and the settings of the project.
    """
    with tempfile.TemporaryDirectory() as folder, silenced(logging.getLogger("pipeline.metrics")):
        found = scored(options.find(model), options.decoding, split, threads, Path(folder))
    for name, metric in found.metrics.items():
        interval = "" if metric.low is None else f"({metric.low:.2f} to {metric.high:.2f})"
        print(f"{name:12} {metric.value:7.2f}  {interval:18} {metric.signature}")
    if found.ceiling is not None:
        print(f"a perfect translation has a sacrebleu of {found.ceiling:.2f}, after tokenising and detokenising")


@contextlib.contextmanager
def silenced(logger: logging.Logger) -> Iterator[None]:
    """Silence the messages of a logger below warnings, as the command prints the scores itself."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def scored(found: FoundRun, decoding: str, split: str, threads: int | None, folder: Path) -> ScoreFile:
    """Decode and score a split with the stages that the workflow runs.

    Args:
        found: The run.
        decoding: Text of `--decoding`.
        split: Split of its dataset.
        threads: CPU threads; None means all cores.
        folder: Folder for all files.

    Raises:
        UserError: The split or decoding is unknown, or the run is a language model.
    """
    dataset, corpus = found.dataset, Path(found.spec.corpus)
    known(split, dataset.split_names, f"--split of {found.spec.dataset}")
    chosen = decoding_of(found, decoding)
    tokens, text, score = (folder / name for name in ("out.tok", "out.txt", "score.json"))
    settings = chosen.config.model_dump_json()
    decode = ["--weights", chosen.weights, "--split", split, "--decoding", settings]
    decode += ["--language-model", chosen.language_model] if chosen.language_model else []
    decode += ["--threads", threads] if threads else []
    of = ["--dataset", found.project.datasets[dataset.name], "--split", split, "--out", score]
    prepared = ["--prepared", corpus.parent / "prepared"]
    if split == "train" and dataset.form == "sentences":
        require_text(found.project, dataset, corpus.parent / "prepared")
    match dataset.form:
        case "sentences":
            do("translate", *decode, "--out", tokens, "--text", text)
            do("score-text", *of, *prepared, "--tokenised", tokens, "--text", text)
        case "trees":
            do("translate", *decode, "--out", tokens)
            trees = "--trees", folder / "out.trees", "--aligned-trees", folder / "out.aligned.trees"
            do("score-trees", *of, *prepared, "--sequences", tokens, *trees)
        case "speech":
            do("transcribe", *decode, "--corpus", corpus, "--out", text)
            do("score-speech", *of, "--corpus", corpus, "--transcripts", text)
        case _:
            raise UserError(f"{found.id.folder}: is a language model, which the stage `perplexity` measures")
    return ScoreFile.read(score)


def require_text(project: Project, dataset: AnyDataset, prepared: Path) -> None:
    """Check that the training text still exists. Raises UserError if `free` removed it."""
    if not all((prepared / f"train.{language}").exists() for language in dataset.languages):
        report = project.layout.path(Prepared(dataset.name))
        is_todays = (project.root / report).resolve() == (prepared / "report.json").resolve()
        again = (
            f"; remove {report}, too, then `{snakemake_command(project, report)}` makes it again" if is_todays else ""
        )
        raise UserError(f"{prepared}: the text of `train` was removed to free the disk{again}")


def do(*words: object) -> None:
    """Run a stage of the workflow in this process."""
    stages.invoke(stages.parse(list(map(str, words))))
