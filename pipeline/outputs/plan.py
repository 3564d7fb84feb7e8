"""Outputs and scores of a run under one decoding, and the digest of each output's inputs and settings.

Needs no torch.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pipeline.config import DecodingConfig, load_run
from pipeline.core.digests import sha256_file, sha256_json
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, RUN_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.training import TrainedRun
from pipeline.core.schema import Closed
from pipeline.data.dataset import SplitName

Kind = Literal[
    "averaged", "tuned", "perplexity", "attention", "gates", "alignments", "translation", "parse", "transcript"
]
OF_WEIGHTS: tuple[Kind, ...] = ("perplexity", "attention", "gates", "alignments")
"""Outputs that no setting of the search changes."""


class PlannedOutput(Closed):
    """One output of a decoding."""

    kind: Kind
    file: str = Field(description="File that reports read, by its path in the run's folder")
    split: SplitName | None = None
    corpus: str | None = Field(default=None, description="Encoded corpus whose split is read; null = the run's own")
    dataset: str | None = Field(default=None, description="Dataset file that describes the split, if it is checked")
    choice: Literal["distant", "pronoun", "contrast"] | None = Field(
        default=None, description="Rule that chooses the sentence of an attention map"
    )


class DecodingPlan(Closed):
    """All outputs of one run under one decoding, in the order in which they are made."""

    name: str
    settings: dict[str, Any] | None = Field(default=None, description="null = nothing is decoded")
    language_model: str | None = Field(default=None, description="Folder of the run of the decoding's language model")
    tuned_with: list[str] = Field(
        default=[], description="Files of weights that were tuned for other runs under this decoding"
    )
    outputs: list[PlannedOutput]

    @cached_property
    def config(self) -> DecodingConfig:
        """Return the settings of the search."""
        return DecodingConfig.model_validate(self.settings or {})


class PlannedTraining(Closed):
    """Decodings that a training job makes at its end.

    Attributes:
        threads: CPU threads.
        plans: One per decoding.
    """

    threads: int
    plans: list[DecodingPlan]


class PlannedScore(Closed):
    """One score file; paths are relative to the run's folder unless a field says otherwise."""

    kind: Literal["text", "trees", "speech", "phenomena"]
    file: str = Field(description="Score file")
    output: str = Field(description="Decoded file")
    split: SplitName
    dataset: str = Field(description="Dataset file of what is scored; not relative to the run")
    corpus: str = Field(description="Folder of its corpus; not relative to the run")
    trees: list[str] = Field(default=[], description="Files for the trees, words in order and by alignment")


class ScoringPlan(Closed):
    """All scores of one run under one decoding."""

    name: str
    scores: list[PlannedScore]


def output_keys(run_folder: Path, plan: DecodingPlan) -> dict[str, str]:
    """Return the digest of the inputs and settings of each output, by its file.

    Raises:
        UserError: The run is not trained, or its language model, a corpus or the weights of another run are missing.
    """
    own = Path(load_run(run_folder / RUN_FILE).corpus)
    weights = identify_weights(run_folder, plan)
    search = identify_search(plan)
    keys: dict[str, str] = {}
    for output in plan.outputs:
        corpus = Path(output.corpus) if output.corpus else own
        inputs: dict[str, Any] = {"kind": output.kind, "weights": weights}
        if output.kind != "averaged":
            inputs |= {"corpus": read_corpus(own).digest, "split": output.split, "choice": output.choice}
            inputs["read"] = read_corpus(corpus).digest
        if output.kind not in (*OF_WEIGHTS, "averaged"):
            inputs["search"] = search
        keys[output.file] = sha256_json(inputs)
    return keys


def identify_weights(run_folder: Path, plan: DecodingPlan) -> dict[str, Any]:
    """Return the digest of the final weights and, if checkpoints are averaged, which and how many."""
    found: dict[str, Any] = {"training": final_digest(run_folder)}
    if plan.settings and plan.config.reads_checkpoints:
        found |= {"averaged": plan.config.averaged, "count": plan.config.average_last}
    return found


def identify_search(plan: DecodingPlan) -> dict[str, Any]:
    """Return what the search depends on.

    Raises:
        UserError: The language model is not trained, or a file of tuned weights is missing.
    """
    settings = {key: value for key, value in (plan.settings or {}).items() if key not in ("averaged", "average_last")}
    other = final_digest(Path(plan.language_model)) if plan.language_model else None
    others: dict[str, Any] = {}
    if plan.tuned_with:
        try:
            others["tuned_with"] = [sha256_file(Path(file)) for file in plan.tuned_with]
        except FileNotFoundError as error:
            raise UserError(f"{error.filename}: weights are not tuned; run `decode` on that run first") from None
    return {"settings": settings, "language_model": other, **others}


def final_digest(run_folder: Path) -> str:
    """Return the digest of a run's final weights.

    Raises:
        UserError: It is not trained.
    """
    done = TrainedRun.read_if_there(run_folder / DONE_FILE)
    if done is None:
        raise UserError(f"{run_folder}: training is not finished; run `train` first")
    return done.weights_digest
