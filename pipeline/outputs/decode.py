"""Decode a run, in a job of its own or at the end of the training job: every output that reports read."""

import argparse
import contextlib
import gc
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.core.digests import checking_inputs, recording_digests
from pipeline.core.errors import UserError
from pipeline.core.layout import CORPUS_FILE, OUTPUTS_FILE
from pipeline.core.records.jobs import Decodings, last_event
from pipeline.core.schema import parse_json
from pipeline.outputs.manifest import ManifestWriter
from pipeline.outputs.plan import DecodingPlan, PlannedTraining, output_keys

log = logging.getLogger(__name__)


def decode_run(*, run: Path, plan: Annotated[str, Argument(metavar="JSON")], threads: int | None = None) -> None:
    r"""Make every output of a run under one decoding.

        python -m pipeline decode --run work/demo/runs/attention/base/grammar-en-de/seed1-… \
            --plan '{"name": "final", …}'

    Writes the translations, transcripts, perplexities and attention maps that reports read into the run's folder. Lists
    them in `{decoding}/outputs.json`, each with the digests of its inputs, settings and files. Keeps outputs whose
    digests are unchanged. If an output fails, the others are still made. The cause is then recorded in
    `{decoding}/outputs.json.part`, and the exit status is 1. Loads the model only if an output is missing.

    Args:
        run: Folder of a finished run.
        plan: The decoding and its outputs.
        threads: CPU threads; by default all.
    """
    decode(run, parse_json(DecodingPlan, plan, "--plan"), threads)


def is_complete(args: argparse.Namespace) -> bool:
    """Return whether every output exists, so that no job is needed; does not import torch."""
    plan = parse_json(DecodingPlan, args.plan, "--plan")
    return not missing(args.run, plan, manifest_at(args.run, plan))


def decode(run_folder: Path, plan: DecodingPlan, threads: int | None = None) -> None:
    """Make the missing outputs of a decoding and write the manifest.

    Args:
        run_folder: Folder of a finished run.
        plan: Decoding and its outputs.
        threads: CPU threads; None = all cores that this process may use.

    Raises:
        UserError: An input is missing, or an output failed. All other outputs are made before it is raised.
    """
    manifest = make_missing(run_folder, plan, threads)
    manifest.finish(output.file for output in plan.outputs if output.file in manifest.entries)


def make_missing(run_folder: Path, plan: DecodingPlan, threads: int | None) -> ManifestWriter:
    """Return the manifest in `outputs.json.part`, after making the missing outputs of a decoding; see `decode`.

    Raises:
        UserError: An input is missing, or an output failed. All other outputs are made before it is raised.
    """
    manifest = manifest_at(run_folder, plan)
    if keys := missing(run_folder, plan, manifest):
        from pipeline.outputs.maker import OutputMaker  # loads torch

        manifest.make(keys, OutputMaker(run_folder, plan, threads).make)
    log.info("%s: %d of %d outputs made", manifest.path, len(keys), len(plan.outputs))
    return manifest


def manifest_at(run_folder: Path, plan: DecodingPlan) -> ManifestWriter:
    """Return the manifest of a decoding."""
    return ManifestWriter(run_folder, run_folder / plan.name / OUTPUTS_FILE)


def missing(run_folder: Path, plan: DecodingPlan, manifest: ManifestWriter) -> dict[str, str]:
    """Return the digest of inputs and settings of each missing output, by its file, in the order of the plan.

    Averaged weights count as missing only if another output is missing too or some checkpoints exist. Otherwise
    `reprise free` has removed weights and checkpoints, and nothing needs them.
    """
    keys = output_keys(run_folder, plan)
    names = manifest.lacks(keys)
    averaged = [output.file for output in plan.outputs if output.kind == "averaged"]
    if names == averaged and not any((run_folder / "checkpoints").glob("step-*.safetensors")):
        return {}
    return {name: keys[name] for name in names}


def decode_ready(run_folder: Path) -> None:
    """Make the outputs of a run that need no other run and no missing corpus, at the end of its training job.

    A failure is logged and recorded in the manifest; the rule `decode` retries that output. Only that rule writes
    `outputs.json`: Snakemake records the parameters of its own jobs alone, and without such a record it would not
    redo a changed decoding.
    """
    planned = planned_decodings(run_folder)
    if planned is None:
        return
    gc.collect()  # frees the trainer's tensors
    with indented_log():
        for plan in filter(is_ready, planned.plans):
            try:
                with checking_inputs(), recording_digests():
                    make_missing(run_folder, plan, planned.threads)
            except UserError as error:
                log.error("%s: %s", plan.name, error)
            except Exception:  # the training is done; a bug in decoding must not fail its job
                log.exception("%s", plan.name)


@contextlib.contextmanager
def indented_log() -> Iterator[None]:
    """Indent log lines, to set them apart from the training's own lines."""

    def indent(record: logging.LogRecord) -> bool:
        record.msg = f"  {record.msg}"
        return True

    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(indent)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(indent)


def planned_decodings(run_folder: Path) -> PlannedTraining | None:
    """Read from a run's `state.jsonl` how it is decoded; None if its launcher recorded nothing that this code reads."""
    event = last_event(Decodings, run_folder)
    with contextlib.suppress(ValueError):
        return PlannedTraining.model_validate(event.planned) if event else None
    return None


def is_ready(plan: DecodingPlan) -> bool:
    """Return whether a decoding needs no other run, and every corpus that it reads is encoded."""
    corpora = (Path(output.corpus) / CORPUS_FILE for output in plan.outputs if output.corpus)
    return plan.language_model is None and not plan.tuned_with and all(path.exists() for path in corpora)
