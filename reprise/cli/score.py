"""Decode a test set of a run's dataset anew, as one likes, and score it by every metric, with 95 % intervals.

    reprise score attention/base/wmt14-en-de/1 --decoding beam=8,alpha=1.0

Nothing is written into the run's folder. `reprise translate RUN my.en | sacrebleu my.de` scores any other text.
"""

import argparse
import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline import stages
from pipeline.core.artifacts import Prepared
from pipeline.core.errors import UserError
from pipeline.core.records.scores import ScoreFile
from pipeline.core.schema import known
from pipeline.data.dataset import AnyDataset
from pipeline.papers.project import Project
from pipeline.papers.settings import parse_settings
from pipeline.workflow.targets import command
from reprise.named_run import decoding_of, find_run
from reprise.opening import add_run_argument, add_threads_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_argument(parser)
    add_threads_argument(parser)
    parser.add_argument("--split", default="test", help="dev, test, test2, … (default: test)")


def run(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, silenced(logging.getLogger("pipeline.metrics")):
        found = scored(args, Path(folder))
    for name, metric in found.metrics.items():
        interval = "" if metric.low is None else f"({metric.low:.2f} to {metric.high:.2f})"
        print(f"{name:12} {metric.value:7.2f}  {interval:18} {metric.signature}")
    if found.ceiling is not None:
        print(f"a perfect translation has a sacrebleu of {found.ceiling:.2f}, after tokenising and detokenising")


@contextlib.contextmanager
def silenced(logger: logging.Logger) -> Iterator[None]:
    """What it would say is printed here."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def scored(args: argparse.Namespace, folder: Path) -> ScoreFile:
    """Through the stages that the workflow itself would run."""
    found = find_run(args.model, parse_settings(args.set))
    dataset, corpus = found.dataset, Path(found.spec.corpus)
    known(args.split, dataset.split_names, f"--split of {found.spec.dataset}")
    chosen = decoding_of(found, args.decoding)
    tokens, text, score = (folder / name for name in ("out.tok", "out.txt", "score.json"))
    settings = chosen.config.model_dump_json()
    decode = ["--weights", chosen.weights, "--split", args.split, "--decoding", settings]
    decode += ["--language-model", chosen.language_model] if chosen.language_model else []
    decode += ["--threads", args.threads] if args.threads else []
    of = ["--dataset", found.project.datasets[dataset.name], "--split", args.split, "--out", score]
    prepared = ["--prepared", corpus.parent / "prepared"]
    if args.split == "train" and dataset.form == "sentences":
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
            raise UserError(f"{args.model}: is a language model, which the stage `perplexity` measures")
    return ScoreFile.read(score)


def require_text(project: Project, dataset: AnyDataset, prepared: Path) -> None:
    """Raises UserError when the training text was removed, which nothing else reads: before it is all translated."""
    if not all((prepared / f"train.{language}").exists() for language in dataset.languages):
        report = project.layout.path(Prepared(dataset.name))
        is_todays = (project.root / report).resolve() == (prepared / "report.json").resolve()
        again = f"; remove {report}, too, then `{command(project, report)}` makes it again" if is_todays else ""
        raise UserError(f"{prepared}: the text of `train` was removed to free the disk{again}")


def do(*words: object) -> None:
    """A stage of the workflow, in this process."""
    args = stages.parse(list(map(str, words)))
    args.stage_module.run(args)
