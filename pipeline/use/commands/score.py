"""Decode a test set anew, as one likes, and score it by every metric of its kind, with 95 % intervals.

    reprise score attention/base/wmt14-en-de/1 --decoding beam=8,alpha=1.0
    reprise score model/ --source mine.en --reference mine.de

The first takes a split of the run's own dataset, as the workflow prepared it, and writes nothing into the run's folder.
The second is for any translation model, packed ones too, and any text; references are scored as they stand in the file.
"""

import argparse
import tempfile
from pathlib import Path

from pipeline import stages
from pipeline.data.moses import tokenise
from pipeline.data.segmentation import segment
from pipeline.errors import UserError
from pipeline.experiment.settings import parse_settings
from pipeline.metrics import metrics_of
from pipeline.metrics.statistics.significance import bootstrap_interval
from pipeline.metrics.statistics.texts import Texts, Translations
from pipeline.records.scores import MetricValue, ScoreFile
from pipeline.schema import known
from pipeline.use.commands.text import chunks_of_files
from pipeline.use.named_run import decoding_of, find_run
from pipeline.use.opening import add_model_arguments, opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--split", default="test", help="of the run's dataset: dev, test, test2, … (default: test)")
    parser.add_argument("--source", type=Path, help="text to translate, in place of a split")
    parser.add_argument("--reference", type=Path, help="its translation, line by line")


def run(args: argparse.Namespace) -> None:
    if (args.source is None) != (args.reference is None):
        raise UserError("--source and --reference go together")
    metrics = score_texts(args) if args.source else score_split(args)
    for name, metric in metrics.items():
        interval = "" if metric.low is None else f"({metric.low:.2f} to {metric.high:.2f})"
        print(f"{name:12} {metric.value:7.2f}  {interval:18} {metric.signature}")


def score_split(args: argparse.Namespace) -> dict[str, MetricValue]:
    """Through the stages that the workflow itself would run."""
    found = find_run(args.model, parse_settings(args.set))
    dataset = found.project.dataset_records[found.spec.dataset]
    known(args.split, dataset.split_names, f"--split of {found.spec.dataset}")
    chosen = decoding_of(found, args.decoding)
    corpus = Path(found.spec.corpus)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / args.split
        tokens, text, score = (out.with_suffix(ending) for ending in (".tok", ".txt", ".score.json"))
        decode = ["--weights", chosen.weights, "--split", args.split, "--decoding", chosen.config.model_dump_json()]
        decode += ["--language-model", chosen.language_model] if chosen.language_model else []
        decode += ["--threads", args.threads] if args.threads else []
        of = ["--dataset", found.project.datasets[found.spec.dataset], "--split", args.split, "--out", score]
        prepared = ["--prepared", corpus.parent / "prepared"]
        match dataset.form:
            case "sentences":
                do("translate", *decode, "--out", tokens, "--text", text)
                do("score", *of, *prepared, "--tokenised", tokens, "--text", text)
            case "trees":
                do("translate", *decode, "--out", tokens)
                do("score-trees", *of, *prepared, "--sequences", tokens, "--trees", out.with_suffix(".trees"))
            case "speech":
                do("transcribe", *decode, "--corpus", corpus, "--out", text)
                do("score-speech", *of, "--corpus", corpus, "--transcripts", text)
            case _:
                raise UserError(f"{args.model}: is a language model, which the stage `perplexity` measures")
        return ScoreFile.read(score).metrics


def do(*words: str | int | Path) -> None:
    """A stage of the workflow, in this process."""
    args = stages.parse([str(word) for word in words])
    args.stage_module.run(args)


def score_texts(args: argparse.Namespace) -> dict[str, MetricValue]:
    """Of any text. Raises UserError when the files differ in lines."""
    files = (args.source, args.reference)
    source, reference = ([line for part in chunks_of_files([path]) for line in part] for path in files)
    if len(source) != len(reference) or not source:
        raise UserError(
            f"{args.source} has {len(source)} lines, {args.reference} {len(reference)}: they go line by line"
        )
    model = opened(args)
    translations = model.translate(source)
    how = model.preparation

    def tokens(lines: list[str]) -> list[str]:
        cut = how.segmenter if how.tgt == "zh" else None
        found = [segment(line, cut) if cut else tokenise(line, how.tgt) for line in lines]
        return [line.lower() for line in found] if how.lowercase else found

    inputs = Translations(
        Texts(translations, [reference]), Texts(tokens(translations), [tokens(reference)]), tgt=how.tgt
    )
    return {
        metric.name: MetricValue(
            **vars(bootstrap_interval(metric.statistics(inputs), metric.total)), signature=metric.signature(inputs)
        )
        for metric in metrics_of(inputs)
    }
