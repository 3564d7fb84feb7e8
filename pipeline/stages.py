"""The stages by name, and the arguments of each.

A stage is a module with `add_arguments(parser)` and `run(args)`; only the one asked for is imported, so a stage
that needs no torch starts without it.
"""

import argparse
import gc
import importlib
from collections.abc import Container, Mapping
from contextlib import nullcontext
from types import ModuleType

from pipeline.core.digests import recording
from pipeline.core.intact import looking
from pipeline.core.patience import persevere

# stage -> (module, one-line help)
STAGES = {
    "schemas": ("pipeline.planning.schemas", "write the JSON schemas of every YAML file"),
    "claims": ("pipeline.report.claims", "set what was measured next to what a paper says, with a verdict"),
    "figure": ("pipeline.report.figure", "draw a figure, with the numbers in it and a caption"),
    "attention-maps": ("pipeline.probes.attention_maps", "attention of single heads on a sentence chosen by a rule"),
    "alignments": ("pipeline.probes.alignments", "attention over speech at every kept checkpoint of a training"),
    "gate-values": ("pipeline.probes.gate_values", "the gate between channels over kinds of words, on the grammar"),
    "layer-table": ("pipeline.report.layer_table", "set layer types' times next to their printed complexities"),
    "model-sizes": ("pipeline.probes.model_sizes", "count the parameters of a paper's systems at the paper's own size"),
    "layer-times": ("pipeline.probes.layer_cost", "time layer types over sequence lengths and widths"),
    "table": ("pipeline.report.table", "set scores next to the numbers a paper printed"),
    "example-table": (
        "pipeline.report.example_table",
        "set every system's translation of one sentence side by side",
    ),
    "transcript-table": (
        "pipeline.report.transcript_table",
        "set what systems write down of a few utterances next to what a paper printed",
    ),
    # of `reprise`, which this package imports nothing of: who looks for them here finds them, too
    "show": ("reprise.cli.show", "show a table in a terminal, with what it means"),
    "free": ("reprise.cli.free", "remove what finished work no longer needs on disk"),
    "status": ("reprise.cli.status", "say how far a campaign is, what failed and what to do"),
    "check-data": ("pipeline.planning.check_data", "say which files of the data are here, and how to get the others"),
    "calibrate": ("pipeline.planning.calibrate", "measure how fast this machine trains and decodes"),
    "plan": ("pipeline.planning.plan", "forecast what the papers will cost"),
    "cost": ("pipeline.planning.cost_table", "put what trainings took next to the forecast"),
    "continue": ("reprise.longer", "train a run for more updates, from its last checkpoint"),
    "unlock": ("reprise.status.unlock", "forget a snakemake that was killed"),
    "verify": ("reprise.store.verify", "hash again all that was made or fetched, and set damaged files aside"),
    "download": ("pipeline.data.fetch.download", "fetch and verify a dataset's files, and write its raw splits"),
    "generate": ("pipeline.data.fetch.generate", "write a corpus with the embedded grammar"),
    "prepare": ("pipeline.data.text.prepare", "clean and tokenise the raw splits"),
    "collect-trees": ("pipeline.data.fetch.collect_trees", "bring together the trees of a treebank"),
    "prepare-trees": ("pipeline.data.trees.prepare_trees", "clean and linearise the trees of a treebank"),
    "subwords": ("pipeline.data.text.subwords", "learn the subword vocabulary"),
    "collect-text": ("pipeline.data.speech.collect_text", "write or fetch the text of speech or a language model"),
    "collect-recordings": ("pipeline.data.speech.collect_recordings", "fetch recordings and list their utterances"),
    "speak": ("pipeline.data.speech.speak", "read text aloud"),
    "features": ("pipeline.data.speech.features", "turn speech into memory-mapped features and characters"),
    "encode-text": ("pipeline.data.speech.encode_text", "turn text into memory-mapped characters"),
    "encode": ("pipeline.data.text.encode", "turn tokenised text into memory-mapped ids"),
    "train": ("pipeline.training.job", "train a run, or go on with it"),
    "launch": ("pipeline.cluster.launch", "have a job done on Slurm or here, and wait for it"),
    "average": ("pipeline.decoding.averaging", "average the last checkpoints of a run"),
    "translate": ("pipeline.decoding.translate", "translate a split by beam search"),
    "transcribe": ("pipeline.decoding.transcribe", "write down the speech of a split"),
    "tune": ("pipeline.decoding.tune", "choose the weights of shallow fusion on the development set"),
    "score-speech": ("pipeline.evaluation.score_speech", "score transcripts: character and word error rate"),
    "perplexity": ("pipeline.probes.perplexity", "perplexity of a split, without smoothing"),
    "score-trees": ("pipeline.evaluation.score_trees", "score parses: labelled bracketing F1, with intervals"),
    "score-text": ("pipeline.evaluation.score_text", "score translations: every BLEU, chrF and GLEU, with intervals"),
    "score": ("pipeline.outputs.score", "score all that was decoded of a run under one decoding"),
    "decode": ("pipeline.outputs.decode", "make all that reports want of a run under one decoding"),
    "phenomena": ("pipeline.evaluation.phenomena", "count names, idioms and word order that are right, on the grammar"),
}


def parse(
    argv: list[str],
    commands: Mapping[str, tuple[str, str]] = STAGES,
    program: str = "python -m pipeline",
    description: str = "One stage of the reproduction.",
) -> argparse.Namespace:
    """The arguments of a stage, which `stage_module` of them runs; only that stage is imported."""
    argv = [*(word.replace("_", "-") for word in argv[:1]), *argv[1:]]  # rules are called so, with underscores
    parser, stages = parsers(commands, program, description, argv[:1])
    if commands is not STAGES and argv and argv[0] in stages:  # of a command, options may stand between files
        return stages[argv[0]].parse_intermixed_args(argv[1:])
    return parser.parse_args(argv)


def parsers(
    commands: Mapping[str, tuple[str, str]], program: str, description: str, imported: Container[str]
) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Of a program, and of each of its commands; those that are not imported have no arguments."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    stages = parser.add_subparsers(dest="stage", required=True, metavar="STAGE" if commands is STAGES else "COMMAND")
    for name, (module_name, summary) in commands.items():
        stage = stages.add_parser(name, help=summary)
        if name in imported:
            module = loaded(module_name)
            stage.description = module.__doc__
            stage.formatter_class = argparse.RawDescriptionHelpFormatter
            module.add_arguments(stage)
            stage.set_defaults(stage_module=module, stage=name)
    return parser, dict(stages.choices)


def loaded(name: str) -> ModuleType:
    """A module, without a search for garbage meanwhile: loading torch makes much and frees nothing, and takes a fifth
    less time so."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()


def perform(argv: list[str]) -> None:
    """A stage in this process; what it makes is noted, what it reads is checked, unless it looks for damage itself.

    Raises:
        UserError: as the stage does.
    """
    args = parse(argv)

    def once() -> None:
        with nullcontext() if args.stage == "verify" else looking(), recording():
            args.stage_module.run(args)

    persevere(once)
