"""The commands `score` and `compare`: score a run without writing into its folder, and test differences of scores."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pipeline.analysis.run_folders import changed_in, decoded_record, is_outdated
from pipeline.analysis.view import measure_of
from pipeline.core.artifacts import Prepared, Score
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, path_in_run
from pipeline.core.records.outputs import ScoreFile
from pipeline.core.records.training import TrainedRun
from pipeline.core.schema import require_known
from pipeline.data.dataset import AnyDataset
from pipeline.metrics import compare_scores
from pipeline.papers.config_file import parse_settings
from pipeline.papers.project import Project, Settings
from pipeline.workflow.targets import snakemake_command
from reprise.find_runs import FoundRun, find_run
from reprise.opening import DecodingOptions, decoding_of, usual_decoding

log = logging.getLogger(__name__)
USUAL_METRICS = {"sentences": "bleu_paper", "trees": "f1", "speech": "wer", "characters": "perplexity"}
"""Metric of a comparison by default, by form of the dataset."""


def score(
    model: Annotated[str, Argument(metavar="RUN")],
    *,
    threads: int | None = None,
    split: str = "test",
    options: DecodingOptions,
) -> None:
    """Decode a test set of a run's dataset again, and score it with every metric and 95 % intervals.

        reprise score attention/base/wmt14-en-de/1 --decoding beam=8,alpha=1.0

    Writes nothing into the run's folder but averaged weights that are missing or out of date. To score any other text:
    `reprise translate RUN my.en | sacrebleu my.de`.

    Args:
        model: Run as paper/system/dataset/seed, or its folder; not a packed model.
        threads: CPU threads; by default all cores.
        split: Split to decode: dev, test, test2, ….
        options: How to decode, and the settings of the project.
    """
    with tempfile.TemporaryDirectory() as folder, silenced(logging.getLogger("pipeline.metrics")):
        found = decode_and_score(options.find(model), options.decoding, split, threads, Path(folder))
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


def decode_and_score(found: FoundRun, decoding: str, split: str, threads: int | None, folder: Path) -> ScoreFile:
    """Decode and score a split as the workflow does.

    Args:
        found: The run.
        decoding: Text of `--decoding`.
        split: Split of its dataset.
        threads: CPU threads; None means all cores.
        folder: Empty folder for the outputs.

    Returns:
        The scores.

    Raises:
        UserError: The split or decoding is unknown, or the run is a language model.
    """
    from pipeline.decoding import decode_split  # loads torch
    from pipeline.outputs import score_text
    from pipeline.outputs.score import score_parses

    if found.spec.model.reads == "text":
        raise UserError(f"{found.id.folder}: is a language model; measure it with the stage `perplexity`")
    dataset, corpus = found.dataset, Path(found.spec.corpus)
    require_known(split, dataset.split_names, f"--split of {found.spec.dataset}")
    chosen = decoding_of(found, decoding)
    tokens, text, scores = (folder / name for name in ("out.tok", "out.txt", "score.json"))
    prepared = corpus.parent / "prepared"
    if split == "train" and dataset.form == "sentences":
        require_text(found.project, dataset, prepared)
    settings = {"decoding": chosen.config.model_dump_json(), "language_model": chosen.language_model}
    how: dict[str, Any] = {"weights": chosen.weights, "split": split, "threads": threads, **settings}
    scoring: dict[str, Any] = {"dataset": found.project.datasets[dataset.name], "split": split, "out": scores}
    match dataset.form:
        case "sentences":
            decode_split.translate(**how, out=tokens, text=text)
            score_text.score_text(**scoring, prepared=prepared, tokenised=tokens, text=text)
        case "trees":
            decode_split.translate(**how, out=tokens)
            trees, aligned = folder / "out.trees", folder / "out.aligned.trees"
            score_parses(**scoring, prepared=prepared, sequences=tokens, trees=trees, aligned_trees=aligned)
        case "speech":
            decode_split.transcribe(**how, corpus=corpus, out=text)
            score_text.score_transcripts(**scoring, corpus=corpus, transcripts=text)
    return ScoreFile.read(scores)


def require_text(project: Project, dataset: AnyDataset, prepared: Path) -> None:
    """Check that the training text of a corpus, `prepared`, still exists.

    Raises:
        UserError: `free` removed the text.
    """
    if not all((prepared / f"train.{language}").exists() for language in dataset.languages):
        report = project.layout.path(Prepared(dataset.name))
        is_current = (project.root / report).resolve() == (prepared / "report.json").resolve()
        command = snakemake_command(project, report)
        again = f"; remove {report}, too, and run `{command}` to rebuild it" if is_current else ""
        raise UserError(f"{prepared}: the text of `train` was removed to free disk space{again}")


def compare(
    runs: Annotated[tuple[str, str], Argument(metavar="RUN")],
    *,
    metric: str | None = None,
    split: str | None = None,
    decoding: Annotated[str, Argument(metavar="NAME")] = "",
    settings: Settings = (),
) -> None:
    """Test whether one run's score is better than another's.

        reprise compare weighted/A/wmt14-en-de/1 attention/base/wmt14-en-de/1 --metric sacrebleu

    Runs a paired bootstrap over the sentences of a test set. Compares what the workflow has scored, or two score files
    of the same test set.

    Args:
        runs: Two of paper/system/dataset/seed, a run's folder, or a score file.
        metric: Metric to compare; by default bleu_paper, f1, wer or perplexity, by the output of the models.
        split: Split to compare: dev, test, test2, …; by default test.
        decoding: Decoding of both; by default the usual one.
        settings: Override a key of config.yaml. May be given several times.

    Raises:
        UserError: The runs or files cannot be compared.
    """
    files = [name for name in runs if name.endswith(".json")]
    if len(files) == 1:
        raise UserError(f"{files[0]}: is a score file; compare it with another score file, not with a run")
    if files:
        if decoding or split or settings:
            raise UserError("--split, --decoding, --set: apply to runs only; remove them to compare score files")
        ours, theirs = map(Path, files)
        metric = metric or usual_metric(ours)
    else:
        first, second = (find_run(name, parse_settings(settings), needs_weights=False) for name in runs)
        usual = [USUAL_METRICS[run.dataset.form] for run in (first, second)]
        if usual[0] != usual[1]:
            scored = f"{runs[0]} is scored by {usual[0]}, {runs[1]} by {usual[1]}"
            raise UserError(f"{scored}; compare two runs of one task")
        metric = metric or USUAL_METRICS[first.dataset.form]
        ours, theirs = (find_score(system, metric, split or "test", decoding) for system in (first, second))
        if ours == theirs:
            raise UserError(f"{runs[0]}: is compared with itself; name two different runs")
    found = compare_scores(ours, theirs, metric)
    between = f"95 % between {found.low:+.2f} and {found.high:+.2f}, p = {found.p_value:.4f}"
    print(f"{metric}: {runs[0]} less {runs[1]}: {found.difference:+.2f} ({between})")


def usual_metric(path: Path) -> str:
    """Return the default metric of a score file.

    Raises:
        UserError: It has none of the default metrics.
    """
    metrics = ScoreFile.read(path).metrics
    if not (usual := [metric for metric in USUAL_METRICS.values() if metric in metrics]):
        raise UserError(f"{path}: has no default metric; choose one with --metric: {', '.join(metrics)}")
    return usual[0]


def find_score(found: FoundRun, metric: str, split: str, decoding: str) -> Path:
    """Return the score file of a run.

    Args:
        found: The run.
        metric: Metric that it must have.
        split: Split of the run's dataset.
        decoding: Name of a decoding. Empty means the usual one or, if that is not scored, the first scored one.

    Raises:
        UserError: The run is not scored by this metric on this split, or the score is of other weights.
    """
    require_known(split, found.dataset.split_names, f"--split of {found.spec.dataset}")
    require_known(usual := decoding or usual_decoding(found), found.decodings, "--decoding")
    measure = measure_of(metric)
    scored_on = found.project.scored_apart(found.spec.dataset, measure)
    for name in [usual, *(() if decoding else found.decodings)]:
        score = Score(found.id, measure, name, split, scored_on)
        if (path := found.folder / path_in_run(score)).exists():
            if done := TrainedRun.read_if_there(found.folder / DONE_FILE):
                scored = ScoreFile.read(path)
                scored.require_training(done.weights_digest, path)
                if is_outdated(path, scored):
                    log.warning("%s: its output was decoded again since; `snakemake` scores the new one", path)
            config = found.project.decoding(found.spec.paper, found.spec.system, name)
            if changed := changed_in(found.folder, score, config, decoded_record(found.folder, score)):
                log.warning("%s: was decoded with another %s than %r has now", path, ", ".join(changed), name)
            if name != usual:
                log.warning("%s: decoding %r is not scored yet; comparing %r", found.id.folder, usual, name)
            return path
    raise UserError(found.missing(Score(found.id, measure, usual, split, scored_on)))
