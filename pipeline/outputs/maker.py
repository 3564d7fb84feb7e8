"""Make all outputs of one decoding, in one process with one loaded model."""

from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pipeline.config import DecodingConfig
from pipeline.core.layout import WEIGHTS_FILE
from pipeline.decoding import averaging, trained_model, tune
from pipeline.decoding.decode_split import replace_branch_weights, transcribe_split, translate_split, with_tuned_weights
from pipeline.outputs.plan import DecodingPlan, PlannedOutput
from pipeline.probes import alignments, attention_maps, perplexity

Value = TypeVar("Value")


class OutputMaker:
    """Maker of the outputs of a run under one decoding.

    Building the search may replace parts of the model, so outputs that only measure the weights are made first.

    Args:
        threads: CPU threads; None = all cores that this process may use.
    """

    def __init__(self, run_folder: Path, plan: DecodingPlan, threads: int | None):
        self.run_folder, self.plan, self.threads = run_folder, plan, threads
        self.planned = {output.file: output for output in plan.outputs}

    def make(self, name: str) -> list[Path]:
        """Return the file that reports read and those beside it, after making one output.

        Raises:
            UserError: It cannot be made.
        """
        output = self.planned[name]
        out = self.run_folder / output.file
        match output.kind:
            case "averaged":
                config = self.plan.config
                averaging.write_average(self.run_folder, config.average_last, config.averaged == "best", out)
            case "alignments":
                alignments.write_alignments(self.run_folder, required(output.split), self.threads, out)
            case "gates":
                from pipeline.probes.gate_values import measure_gates  # imports the claims, 70 ms

                measure_gates(self.trained, Path(required(output.dataset)), out)
            case "attention":
                attention_maps.write_map(self.trained, required(output.split), required(output.choice), out)
            case "perplexity":
                elsewhere = Path(output.corpus) if output.corpus else None
                perplexity.measure_perplexity(
                    self.trained, Path(required(output.dataset)), elsewhere, required(output.split), out
                )
            case "tuned":
                others = [Path(file) for file in self.plan.tuned_with]
                tune.choose_weights(self.trained, self.plan.config, self.language_model, out, others)
            case "translation" | "parse":
                text = out.with_suffix(".txt") if output.kind == "translation" else None
                translate_split(
                    self.trained, self.search, self.config, required(output.split), out, text, self.language_model
                )
            case "transcript":
                corpus = Path(required(output.corpus))
                transcribe_split(
                    self.trained, self.search, self.config, corpus, required(output.split), out, self.language_model
                )
        return files_of(output, out)

    @cached_property
    def trained(self) -> trained_model.TrainedModel:
        """Load the model with averaged weights if the decoding averages, else with the final ones."""
        averaged = next((output.file for output in self.plan.outputs if output.kind == "averaged"), WEIGHTS_FILE)
        return trained_model.TrainedModel.load(self.run_folder / averaged, self.threads)

    @cached_property
    def config(self) -> DecodingConfig:
        """Return the settings of the search, with the weights of the language model that were tuned."""
        tuned = next((self.run_folder / output.file for output in self.plan.outputs if output.kind == "tuned"), None)
        return with_tuned_weights(self.plan.config, tuned)

    @cached_property
    def search(self) -> trained_model.Decoder:
        """Build the search, with branch weights replaced and the language model loaded if the decoding says so."""
        if any(output.kind == "translation" or output.kind == "parse" for output in self.plan.outputs):
            replace_branch_weights(self.trained, self.config)
        language_model = trained_model.prepare_language_model(self.trained, self.config, self.language_model)
        return trained_model.build_decoder(self.trained.model, self.config, language_model, self.trained.recorder())

    @property
    def language_model(self) -> Path | None:
        """Return the folder of the language model's run."""
        return Path(self.plan.language_model) if self.plan.language_model else None


def required(value: Value | None) -> Value:
    """Return a field that every output of this kind has."""
    assert value is not None
    return value


def files_of(output: PlannedOutput, out: Path) -> list[Path]:
    """Return the files of an output: the one that reports read, and those written beside it."""
    match output.kind:
        case "averaged" | "parse" | "transcript":
            return [out, out.with_suffix(".json")]
        case "translation":
            return [out, out.with_suffix(".txt"), out.with_suffix(".json")]
        case "perplexity" | "gates":
            return [out, out.with_suffix(".npz")]
    return [out]
