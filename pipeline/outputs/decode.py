"""Making of everything that reports read of a run under one decoding."""

import argparse
import logging
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.core.layout import OUTPUTS_FILE
from pipeline.core.schema import parse_json
from pipeline.outputs.manifest import ManifestWriter
from pipeline.outputs.plan import DecodingPlan, output_keys

log = logging.getLogger(__name__)


def decode_run(*, run: Path, plan: Annotated[str, Argument(metavar="JSON")], threads: int | None = None) -> None:
    """Make every output of a run under one decoding.

        python -m pipeline decode --run work/demo/runs/attention/base/grammar-en-de/seed1-… \\
            --plan '{"name": "final", …}'

    Writes the translations, transcripts, perplexities and maps that reports read into the run's folder. Lists them in
    `{decoding}/outputs.json`, each with the digests of its inputs, settings and files. Keeps what is there and
    unchanged. If one output fails, the others are still made, its cause is recorded in `{decoding}/outputs.part.json`,
    and the exit status is 1. Loads the model only if needed.

    Args:
        run: Folder of a finished run.
        plan: Decoding and its outputs.
        threads: CPU threads; by default all.
    """
    decode(run, parse_json(DecodingPlan, plan, "--plan"), threads)


def is_complete(args: argparse.Namespace) -> bool:
    """Return whether nothing is left to be made, so that no job is needed. Needs no torch."""
    plan = parse_json(DecodingPlan, args.plan, "--plan")
    return not missing(args.run, plan, manifest_at(args.run, plan))


def decode(run_folder: Path, plan: DecodingPlan, threads: int | None = None) -> None:
    """Make what is missing of a decoding's outputs and write the manifest.

    Raises:
        UserError: Something that is read is missing, or an output failed; the others are there.
    """
    manifest = manifest_at(run_folder, plan)
    if keys := missing(run_folder, plan, manifest):
        from pipeline.outputs.maker import OutputMaker  # loads torch

        manifest.make(keys, OutputMaker(run_folder, plan, threads).make)
    manifest.finish(output.file for output in plan.outputs if output.file in manifest.entries)
    log.info("%s: %d of %d outputs made", manifest.path, len(keys), len(plan.outputs))


def manifest_at(run_folder: Path, plan: DecodingPlan) -> ManifestWriter:
    return ManifestWriter(run_folder, run_folder / plan.name / OUTPUTS_FILE)


def missing(run_folder: Path, plan: DecodingPlan, manifest: ManifestWriter) -> dict[str, str]:
    """Return the keys of the outputs to be made, in order.

    Averaged weights are only needed by another output, or while the checkpoints that they are made of are kept:
    `reprise free` may have removed both.
    """
    keys = output_keys(run_folder, plan)
    lacking = manifest.lacks(keys)
    averaged = [output.file for output in plan.outputs if output.kind == "averaged"]
    if lacking == averaged and not any((run_folder / "checkpoints").glob("step-*.safetensors")):
        return {}
    return {name: keys[name] for name in lacking}
