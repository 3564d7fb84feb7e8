"""Scoring of everything that was decoded of a run under one decoding. Needs no torch."""

import contextlib
import logging
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.layout import CORPUS_FILE, OUTPUTS_FILE, SCORES_FILE
from pipeline.core.schema import parse_json
from pipeline.core.sha256 import sha256_file, sha256_json
from pipeline.evaluation.phenomena import score_phenomena
from pipeline.evaluation.score_speech import score_transcripts
from pipeline.evaluation.score_text import score_text
from pipeline.evaluation.score_trees import score_parses
from pipeline.metrics import metric_names
from pipeline.outputs.manifest import ManifestWriter, entries_of
from pipeline.outputs.scoring_plan import PlannedScore, ScoringPlan

log = logging.getLogger(__name__)


def score_run(*, run: Path, plan: Annotated[str, Argument(metavar="JSON")]) -> None:
    """Score every output of a run under one decoding.

        python -m pipeline score --run work/demo/runs/attention/base/grammar-en-de/seed1-… \\
            --plan '{"name": "final", …}'

    Writes a score file with the statistics of each sentence for every output. Lists them in `{decoding}/scores.json`,
    each with the digest of its inputs and its files. Keeps what is there and unchanged. If one output can't be scored,
    the others are, its cause is recorded in `{decoding}/scores.part.json`, and the exit status is 1. Needs no GPU.

    Args:
        run: Folder of a decoded run.
        plan: Decoding and what is scored.
    """
    score(run, parse_json(ScoringPlan, plan, "--plan"))


def score(run_folder: Path, plan: ScoringPlan) -> None:
    """Score what is new or changed and write the manifest.

    Raises:
        UserError: One or more outputs could not be scored; the others are.
    """
    planned = {one.file: one for one in plan.scores}
    keys = {name: key_of(run_folder, plan, one) for name, one in planned.items()}
    manifest = ManifestWriter(run_folder, run_folder / plan.name / SCORES_FILE)
    lacking = {name: keys[name] for name in manifest.lacks(keys)}
    if lacking:
        manifest.make(lacking, lambda name: make_score(run_folder, planned[name]))
    manifest.finish(keys)
    log.info("%s: %d of %d outputs scored", manifest.path, len(lacking), len(keys))


def score_available(run_folder: Path, plan: ScoringPlan) -> None:
    """Score what is there of a decoding of which an output failed, for reports of what is there.

    The scores are listed in `scores.part.json`, from which the rule `score` goes on.
    """
    decoded = entries_of(run_folder / plan.name / OUTPUTS_FILE)
    there = {name for name, entry in decoded.items() if not entry.error}
    planned = {one.file: one for one in plan.scores if one.output in there}
    manifest = ManifestWriter(run_folder, run_folder / plan.name / SCORES_FILE)
    keys = {name: key_of(run_folder, plan, one) for name, one in planned.items()}
    with contextlib.suppress(UserError):  # recorded
        manifest.make(
            {name: keys[name] for name in manifest.lacks(keys)}, lambda one: make_score(run_folder, planned[one])
        )


def key_of(run_folder: Path, plan: ScoringPlan, planned: PlannedScore) -> str:
    """Return the digest of what a score is counted on: the output, the references, and the metrics that there are.

    The report beside an output is left out: it has the time that decoding took.
    """
    decoded = entries_of(run_folder / plan.name / OUTPUTS_FILE).get(planned.output)
    corpus = Path(planned.corpus)
    records = (corpus / "prepared/report.json", corpus / "encoded" / CORPUS_FILE)
    references = {path.name: sha256_file(path) for path in records if path.exists()}
    output = (
        [decoded.key, {file: digest for file, digest in decoded.files.items() if not file.endswith(".json")}]
        if decoded
        else None
    )
    return sha256_json([planned.kind, planned.split, output, references, metric_names()])


def make_score(run_folder: Path, planned: PlannedScore) -> list[Path]:
    """Score one output and return the files that were written. Raises UserError when its lines are wrong."""
    dataset, corpus = Path(planned.dataset), Path(planned.corpus)
    output, out = run_folder / planned.output, run_folder / planned.file
    trees = [run_folder / name for name in planned.trees]
    match planned.kind:
        case "text":
            score_text(dataset, corpus / "prepared", planned.split, output, output.with_suffix(".txt"), out)
        case "trees":
            in_order, aligned = trees
            score_parses(dataset, corpus / "prepared", planned.split, output, in_order, aligned, out)
        case "speech":
            score_transcripts(dataset, corpus / "encoded", planned.split, output, out)
        case "phenomena":
            score_phenomena(dataset, corpus, planned.split, output, out)
    return [out, out.with_suffix(".npz"), *trees]
