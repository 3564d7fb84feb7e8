"""Scoring of every output of a run under one decoding. Needs no torch."""

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pipeline.core.command_line import Argument
from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.layout import CORPUS_FILE, OUTPUTS_FILE, SCORES_FILE
from pipeline.core.schema import parse_json
from pipeline.metrics import metric_names
from pipeline.outputs.manifest import ManifestWriter, entries_of
from pipeline.outputs.plan import PlannedScore, ScoringPlan
from pipeline.outputs.score_text import score_phenomena, score_text, score_transcripts
from pipeline.outputs.score_trees import score_parses

log = logging.getLogger(__name__)


def score_run(*, run: Path, plan: Annotated[str, Argument(metavar="JSON")]) -> None:
    r"""Score every output of a run under one decoding.

        python -m pipeline score --run work/demo/runs/attention/base/grammar-en-de/seed1-… \
            --plan '{"name": "final", …}'

    Writes a score file with the statistics of each sentence for every output. Lists them in `{decoding}/scores.json`,
    each with the digest of its inputs and its files. Keeps score files that are unchanged. If an output can't be
    scored, the others are scored, the cause is recorded in `{decoding}/scores.json.part`, and the exit status is 1.
    Needs no GPU.

    Args:
        run: Folder of a decoded run.
        plan: Decoding and its score files.

    Raises:
        UserError: An output could not be scored; the others are.
    """
    wanted = parse_json(ScoringPlan, plan, "--plan")
    manifest, keys, scored = score_outputs(run, wanted, wanted.scores)
    manifest.finish(keys)
    log.info("%s: %d of %d outputs scored", manifest.path, scored, len(keys))


def score_available(run_folder: Path, plan: ScoringPlan) -> None:
    """Score the outputs of an incomplete decoding, for partial reports.

    The scores are listed in `scores.json.part`, from which the rule `score` continues.

    Args:
        run_folder: Folder of a run whose decoding may be incomplete.
        plan: Decoding and its score files.
    """
    decoded = entries_of(run_folder / plan.name / OUTPUTS_FILE)
    there = {name for name, entry in decoded.items() if not entry.error}
    with contextlib.suppress(UserError):  # recorded in the manifest
        score_outputs(run_folder, plan, [score for score in plan.scores if score.output in there])


def score_outputs(
    run_folder: Path, plan: ScoringPlan, scores: Sequence[PlannedScore]
) -> tuple[ManifestWriter, dict[str, str], int]:
    """Make those of some score files that are missing or out of date.

    Args:
        run_folder: Folder of the run.
        plan: Decoding, whose name is the manifest's folder.
        scores: Score files to make.

    Returns:
        The manifest, the key of each score file, and how many were made.

    Raises:
        UserError: An output could not be scored; the others are.
    """
    planned = {score.file: score for score in scores}
    keys = {name: key_of(run_folder, plan, score) for name, score in planned.items()}
    manifest = ManifestWriter(run_folder, run_folder / plan.name / SCORES_FILE)
    lacking = {name: keys[name] for name in manifest.lacks(keys)}
    manifest.make(lacking, lambda name: make_score(run_folder, planned[name]))
    return manifest, keys, len(lacking)


def key_of(run_folder: Path, plan: ScoringPlan, planned: PlannedScore) -> str:
    """Return the digest of a score's inputs: the output, the references, and the names of the metrics.

    The report beside an output is left out, because it has the time that decoding took.

    Args:
        run_folder: Folder of the run.
        plan: Decoding, whose manifest has the digests of the output.
        planned: The score file.
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
    """Score one output.

    Args:
        run_folder: Folder of the run.
        planned: The score file.

    Returns:
        The written files: the score file, the sentence statistics, and any trees.

    Raises:
        UserError: The output has other lines than the test set.
    """
    corpus = Path(planned.corpus)
    output, out = run_folder / planned.output, run_folder / planned.file
    trees = [run_folder / name for name in planned.trees]
    common: dict[str, Any] = {"dataset": Path(planned.dataset), "split": planned.split, "out": out}
    match planned.kind:
        case "text":
            score_text(prepared=corpus / "prepared", tokenised=output, text=output.with_suffix(".txt"), **common)
        case "trees":
            in_order, aligned = trees
            score_parses(
                prepared=corpus / "prepared", sequences=output, trees=in_order, aligned_trees=aligned, **common
            )
        case "speech":
            score_transcripts(corpus=corpus / "encoded", transcripts=output, **common)
        case "phenomena":
            score_phenomena(corpus=corpus, tokenised=output, **common)
    return [out, out.with_suffix(".npz"), *trees]
