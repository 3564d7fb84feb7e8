"""Table of the pipeline's commands, and how one is parsed and run.

A command is a function whose signature and docstring define its options (pipeline/core/command_line.py). Only the
module of the requested command is imported, so a command without torch starts quickly.
"""

import argparse
import gc
import importlib.metadata
import os
import shlex
from collections.abc import Callable, Container, Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from pipeline.core.digests import checking_inputs, recording_digests
from pipeline.core.errors import UserError
from pipeline.core.retries import retry_stage


class Command(NamedTuple):
    """A command of a program.

    Attributes:
        target: `module:function`.
        summary: First sentence of the function's docstring, so that the list of commands imports none.
        is_stage: A step of the workflow: its inputs are checked, its outputs recorded, and a failed read is retried.
    """

    target: str
    summary: str
    is_stage: bool = True

    def load(self) -> Callable[..., None]:
        """Import the function."""
        return getattr(self.load_module(), self.target.partition(":")[2])

    def load_module(self) -> ModuleType:
        """Import the module that holds the command."""
        return loaded(self.target.partition(":")[0])


class Parser(argparse.ArgumentParser):
    """A parser that suggests what was meant by arguments that it does not know.

    Attributes:
        function: The command whose arguments it parses.
    """

    function: Callable[..., None] | None = None

    def error(self, message: str) -> NoReturn:
        """Print the usage and what is wrong, and exit with status 2."""
        _, unknown, words = message.partition("unrecognized arguments: ")
        _, required, missing = message.partition("arguments are required: ")
        if unknown:
            message += self.hint(words.split()[0])
        elif required:
            message += "".join(f"; {name}: {about}" for name in missing.split(", ") if (about := self.help_of(name)))
        super().error(message)

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse a command whose options may stand between its positional arguments.

        Args:
            args: The words after the command.
            namespace: The object that receives the values.

        Raises:
            UserError: A positional argument is a setting without `--set`.
        """
        found, unknown = self.parse_known_intermixed_args(args, namespace)
        self.refuse_settings(unknown)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        values = [getattr(found, action.dest) for action in self._actions if not action.option_strings]
        converted = (word for value in values for word in (value if isinstance(value, list) else [value]))
        self.refuse_settings(word for word in converted if str(word) in (args or ()))  # a path loses its `./`
        return found

    def refuse_settings(self, words: Iterable[object]) -> None:
        """Refuse `KEY=VALUE` of a key of config.yaml that is no file, as after `--set scale=small seeds=2`.

        Args:
            words: Positional arguments, converted or not.

        Raises:
            UserError: One of them is a setting.
        """
        for word in words:
            key, equals, _ = str(word).partition("=")
            if equals and key in self.keys() and not os.path.exists(str(word)):
                otherwise = (
                    f"; write `{shlex.quote(f'./{word}')}` if it is a file" if isinstance(word, os.PathLike) else ""
                )
                raise UserError(
                    f"{word}: is a setting; write `--set {shlex.quote(str(word))}`, with one --set for each{otherwise}"
                )

    def keys(self) -> set[str]:
        """Return the keys that `--set` of this command takes."""
        from pipeline.core.command_line import parameters

        found = parameters(self.function) if self.function else ()
        return {key for parameter in found for key in parameter.argument.keys}

    def help_of(self, name: str) -> str:
        """Return the help of an argument, which may be empty.

        Args:
            name: The argument as argparse names it in an error.
        """
        named = {"/".join(action.option_strings) or action.metavar: action.help for action in self._actions}
        return (named.get(name) or "").replace("%%", "%")

    def hint(self, word: str) -> str:
        """Return what may have been meant by an unknown word.

        Args:
            word: An option, or an argument of a command that takes none or fewer.
        """
        from pipeline.core.schema import nearest

        options = [name for name in self._option_string_actions if name.startswith("--")]
        every = f"; options are {', '.join(options)}"
        if not word.startswith("-"):
            return every
        word = word.partition("=")[0]
        key = word.lstrip("-").replace("-", "_")
        if key in self.keys():
            return f"; for a key of config.yaml, write `--set {key}=…`"
        if key == "config" and self.keys():
            return "; write `--set KEY=VALUE` for each setting"
        # Without the dashes, which would make short names look alike.
        close = [name for name in options if nearest(key, [name.lstrip("-").replace("-", "_")])]
        return nearest(word, close) or every


class PrintVersion(argparse.Action):
    """Print what a bug report needs: the version, commit, packages and processor."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print one line and exit with status 0."""
        from pipeline.core.provenance import provenance

        facts = (f"{name} {value}" for name, value in provenance().items() if name != "node")
        print(f"reprise {importlib.metadata.version('reprise')}: {', '.join(facts)}")
        parser.exit()


class Program(NamedTuple):
    """A command line.

    Attributes:
        name: As typed.
        about: What it is for.
        commands: Its commands by name.
        unlisted: Commands that its `--help` leaves out.
        epilog: Last paragraph of its `--help`.
    """

    name: str
    about: str
    commands: Mapping[str, Command]
    unlisted: Container[str] = ()
    epilog: str = ""


STAGES = {
    "schemas": Command(
        "pipeline.planning.schemas:write_schemas",
        "Write the JSON schemas of the YAML files that users edit",
    ),
    "claims": Command(
        "pipeline.report.claims:write_claims",
        "Compare the claims of a paper with the measured scores, and give verdicts",
    ),
    "figure": Command(
        "pipeline.report.figure:write_figure",
        "Draw one figure of a paper, with its numbers and a caption",
    ),
    "table": Command(
        "pipeline.report.table:write_table",
        "Compare the scores of a table with the numbers that the paper prints",
    ),
    "example-table": Command(
        "pipeline.report.text_tables:write_example_table",
        "Compare the translations of one sentence by every system",
    ),
    "transcript-table": Command(
        "pipeline.report.text_tables:write_transcript_table",
        "Compare transcripts of a few utterances with those that the paper prints",
    ),
    "layer-table": Command(
        "pipeline.report.layer_table:write_layer_table",
        "Compare measured layer times with the complexities that the paper prints",
    ),
    "results": Command(
        "pipeline.report.results:write_results",
        "Write tables, figures and claims from the outputs made so far",
        is_stage=False,
    ),
    "site": Command(
        "pipeline.report.site.build:write_site",
        "Write the site of all results, to be opened from disk",
        is_stage=False,
    ),
    "model-sizes": Command(
        "pipeline.probes.layer_cost:write_model_sizes",
        "Count the parameters of a paper's systems at the paper's own size",
    ),
    "layer-times": Command(
        "pipeline.probes.layer_cost:time_layers",
        "Time the layer types of Attention Is All You Need, Table 1",
    ),
    "check-data": Command(
        "pipeline.planning.check_data:check_data",
        "List which data files are present, and how to get the others",
    ),
    "calibrate": Command("pipeline.planning.calibrate:calibrate", "Measure how fast this machine trains and decodes"),
    "plan": Command(
        "pipeline.planning.plan:write_plan",
        "Forecast what the papers will cost: FLOPs, hours, disk and downloads",
    ),
    "cost": Command(
        "pipeline.planning.cost_table:write_costs",
        "Compare the measured cost of trainings and decodings with the forecast",
    ),
    "download": Command(
        "pipeline.data.fetch.download:download",
        "Fetch and verify the files of a dataset, and write its raw splits",
    ),
    "collect-ldc": Command(
        "pipeline.data.fetch.ldc_text:collect_ldc",
        "Write the sentence pairs of LDC training packages as plain text",
        is_stage=False,
    ),
    "generate": Command("pipeline.data.fetch.download:generate", "Write a corpus with the embedded grammar"),
    "prepare": Command("pipeline.data.text.prepare:prepare_corpus", "Clean and tokenise the raw splits of a dataset"),
    "collect-trees": Command("pipeline.data.fetch.collect_trees:collect_trees", "Collect the trees of a treebank"),
    "prepare-trees": Command(
        "pipeline.data.trees.prepare_trees:prepare_treebank",
        "Clean and linearise the trees of a treebank",
    ),
    "subwords": Command("pipeline.data.text.subwords:learn_vocabulary", "Learn the subword vocabulary of a dataset"),
    "collect-text": Command(
        "pipeline.data.speech.collect_text:write_raw_text",
        "Write or fetch the text of a corpus of speech or of a language model",
    ),
    "collect-recordings": Command(
        "pipeline.data.speech.collect_recordings:collect_recordings",
        "Fetch, verify and unpack the archives of a corpus of recordings, and list its utterances",
    ),
    "speak": Command("pipeline.data.speech.speak:speak_corpus", "Read the text of a corpus aloud with eSpeak NG"),
    "features": Command(
        "pipeline.data.speech.features:extract_features",
        "Compute memory-mapped features and character ids of the utterances of a corpus",
    ),
    "encode-text": Command(
        "pipeline.data.speech.encode_text:encode_text_corpus",
        "Encode the text of a character language model as memory-mapped ids",
    ),
    "encode": Command("pipeline.data.text.encode:encode_corpus", "Encode tokenised text as memory-mapped ids"),
    "train": Command("pipeline.training.job:train", "Train a run, or resume it from its last checkpoint"),
    "search-rate": Command(
        "pipeline.training.rate_search:search_rate",
        "Search the learning rate of a run at random",
        is_stage=False,
    ),
    "launch": Command("pipeline.cluster.launch:launch", "Run a job on Slurm or here, and wait until it ends"),
    "decode": Command("pipeline.outputs.decode:decode_run", "Make every output of a run under one decoding"),
    "score": Command("pipeline.outputs.score:score_run", "Score every output of a run under one decoding"),
    "translate": Command("pipeline.decoding.decode_split:translate", "Translate a split by beam search"),
    "transcribe": Command("pipeline.decoding.decode_split:transcribe", "Transcribe the speech of a split"),
    "perplexity": Command(
        "pipeline.probes.perplexity:write_perplexity",
        "Measure the perplexity of a split, without smoothing",
    ),
    "score-text": Command(
        "pipeline.outputs.score_text:score_text",
        "Score translations: every BLEU, chrF and GLEU, with intervals",
    ),
    "score-speech": Command(
        "pipeline.outputs.score_text:score_transcripts",
        "Score transcripts: character and word error rate",
    ),
    "score-trees": Command(
        "pipeline.outputs.score:score_parses",
        "Score parses: labelled bracketing F1, with intervals",
    ),
}

PIPELINE = Program("python -m pipeline", "Run one step of the reproduction.", STAGES)


def parse(argv: list[str], program: Program = PIPELINE) -> argparse.Namespace:
    """Parse a command line.

    Args:
        argv: Name of the command, and its arguments.
        program: Table of the commands.

    Returns:
        The arguments of the command by name, and the name of the command as `stage`.

    Raises:
        SystemExit: The arguments are wrong (2), or help was asked for (0).
    """
    argv = [*(word.replace("_", "-") for word in argv[:1]), *argv[1:]]  # rule names have underscores
    # Parsers of the other commands would take 20 ms.
    named = {name: program.commands[name] for name in argv[:1] if name in program.commands}
    parser, by_name = parsers(program._replace(commands=named or program.commands), argv[:1])
    if not argv:
        parser.error(f"name a command; `{program.name} --help` lists them")
    if argv[0] not in by_name and not argv[0].startswith("-"):
        from pipeline.core.schema import nearest  # brings pydantic, which the list of commands does without

        hint = nearest(argv[0], by_name)
        if "make" in program.commands and os.path.exists(f"workflow/papers/{argv[0]}/paper.yaml"):
            hint = f"; to make that paper, write `{program.name} make {argv[0]}`"
        parser.error(f"unknown command {argv[0]!r}{hint}; `{program.name} --help` lists the commands")
    if argv[0] in by_name and not program.commands[argv[0]].is_stage:
        return by_name[argv[0]].parse_intermixed_args(argv[1:])  # options may stand between files
    return parser.parse_args(argv)


def parsers(
    program: Program, imported: Container[str]
) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of a program and those of its commands; commands not in `imported` have no arguments.

    Args:
        program: Table of the commands.
        imported: Names of the commands whose arguments are needed.
    """
    parser = Parser(prog=program.name, description=program.about, epilog=program.epilog)
    parser.add_argument(
        "--version", action=PrintVersion, nargs=0, help="show the versions of code and packages and exit"
    )
    by_name = parser.add_subparsers(dest="stage", required=True, metavar="COMMAND")
    for name, command in program.commands.items():
        listed: dict[str, Any] = {} if name in program.unlisted else {"help": command.summary.replace("%", "%%")}
        stage_parser = by_name.add_parser(name, **listed)
        if name in imported:
            from pipeline.core.command_line import add_arguments  # 10 ms that the list of commands does without

            stage_parser.function = command.load()
            add_arguments(stage_parser, stage_parser.function)
            stage_parser.set_defaults(stage=name)
    return parser, dict(by_name.choices)


def loaded(name: str) -> ModuleType:
    """Import a module with garbage collection off, which loads torch a fifth faster."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if was_enabled:
            gc.enable()


def run(args: argparse.Namespace, program: Program = PIPELINE) -> None:
    """Run a command with the arguments that `parse` returned.

    Raises:
        UserError: The command raised it, or a file error remained after all retries.
    """
    if not program.commands[args.stage].is_stage:
        invoke(args, program)
        return

    def once() -> None:
        with checking_inputs(), recording_digests():
            invoke(args, program)

    retry_stage(once)


def invoke(args: argparse.Namespace, program: Program = PIPELINE) -> None:
    """Call the function of a command with `args` (see `run`), without checks, records and retries of a stage."""
    from pipeline.core.command_line import call

    call(program.commands[args.stage].load(), args)


def perform(argv: list[str]) -> None:
    """Parse a command line of the pipeline and run its command in this process.

    Raises:
        UserError: The command raised it.
    """
    run(parse(argv))
