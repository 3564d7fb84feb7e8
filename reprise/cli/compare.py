"""Comparison of the scores of two runs."""

import logging
from pathlib import Path
from typing import Annotated

from pipeline.analysis.view import measure_of
from pipeline.core.artifacts import Score
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.layout import path_in_run
from pipeline.core.records.outputs import ScoreFile
from pipeline.core.schema import known
from pipeline.papers.project import Settings
from pipeline.papers.settings import parse_settings
from pipeline.report.comparison import compare_scores
from reprise.find_runs import FoundRun, find_run
from reprise.opening import usual_decoding

log = logging.getLogger(__name__)
USUAL = {"sentences": "bleu_paper", "trees": "f1", "speech": "wer", "characters": "perplexity"}


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
        first, second = (find_run(name, parse_settings(settings)) for name in runs)
        metric = metric or USUAL[first.dataset.form]
        ours, theirs = (score_of(one, metric, split or "test", decoding) for one in (first, second))
    found = compare_scores(ours, theirs, metric)
    between = f"95 % between {found.low:+.2f} and {found.high:+.2f}, p = {found.p_value:.4f}"
    print(f"{metric}: {runs[0]} less {runs[1]}: {found.difference:+.2f} ({between})")


def usual_metric(path: Path) -> str:
    """Return the default metric of a score file. Raises UserError if it has none of the default metrics."""
    metrics = ScoreFile.read(path).metrics
    if not (usual := [metric for metric in USUAL.values() if metric in metrics]):
        raise UserError(f"{path}: has no default metric; choose one with --metric: {', '.join(metrics)}")
    return usual[0]


def score_of(found: FoundRun, metric: str, split: str, decoding: str) -> Path:
    """Return the score file of a run.

    Without a decoding it is the first that is scored, beginning with the usual one. The log names any other.

    Raises:
        UserError: The run is not scored by this metric on this split.
    """
    known(split, found.dataset.split_names, f"--split of {found.spec.dataset}")
    known(usual := decoding or usual_decoding(found), found.decodings, "--decoding")
    measure = measure_of(metric)
    scored_on = found.project.scored_apart(found.spec.dataset, measure)
    for name in [usual, *(() if decoding else found.decodings)]:
        path = found.folder / path_in_run(Score(found.id, measure, name, split, scored_on))
        if path.exists():
            if name != usual:
                log.warning("%s: decoding %r is not scored yet; comparing %r", found.id.folder, usual, name)
            return path
    raise UserError(found.missing(Score(found.id, measure, usual, split, scored_on)))
