"""Make everything that reports want of a run under one decoding: translations, transcripts, perplexities, maps.

    python -m pipeline decode --run work/demo/runs/attention/base/grammar-en-de/seed1-… --plan '{"name": "final", …}'

Writes the outputs into the run's folder and lists them in `{decoding}/outputs.json`, each with the digests of its
inputs, settings and files. Keeps what is there and unchanged. If one output fails, the others are still made, its
cause is recorded in `{decoding}/outputs.part.json`, and the exit status is 1. Loads the model only if needed.
"""

import argparse
import logging
from pathlib import Path

from pipeline.core.layout import OUTPUTS_FILE
from pipeline.core.schema import parse_json
from pipeline.outputs.manifest import ManifestWriter
from pipeline.outputs.plan import DecodingPlan, output_keys

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", dest="run_folder", type=Path, required=True, help="folder of a finished run")
    parser.add_argument("--plan", required=True, metavar="JSON", help="the decoding and its outputs")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")


def run(args: argparse.Namespace) -> None:
    decode(args.run_folder, parse_json(DecodingPlan, args.plan, "--plan"), args.threads)


def is_complete(args: argparse.Namespace) -> bool:
    """Return whether nothing is left to be made, so that no job is needed. Needs no torch."""
    plan = parse_json(DecodingPlan, args.plan, "--plan")
    return not missing(args.run_folder, plan, manifest_at(args.run_folder, plan))


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
