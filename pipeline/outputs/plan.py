"""The outputs of a run under one decoding, and the digest of the inputs and settings of each. Needs no torch."""

from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pipeline.config import DecodingConfig, load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, RUN_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.training import TrainedRun
from pipeline.core.schema import Closed
from pipeline.core.sha256 import sha256_json
from pipeline.data.dataset import SplitName

Kind = Literal[
    "averaged", "tuned", "perplexity", "attention", "gates", "alignments", "translation", "parse", "transcript"
]
OF_WEIGHTS: tuple[Kind, ...] = ("perplexity", "attention", "gates", "alignments")
"""Outputs that no setting of the search changes."""


class PlannedOutput(Closed):
    """One output of a decoding."""

    kind: Kind
    file: str = Field(description="The file that readers open, by its path in the run's folder")
    split: SplitName | None = None
    corpus: str | None = Field(default=None, description="Encoded corpus whose split is read; None = the run's own")
    dataset: str | None = Field(default=None, description="Dataset file, of what is measured on a described test set")
    choice: Literal["distant", "pronoun", "contrast"] | None = Field(
        default=None, description="Rule by which a sentence is chosen, of an attention map"
    )


class DecodingPlan(Closed):
    """All outputs of one run under one decoding, in the order in which they are made."""

    name: str
    settings: dict[str, Any] | None = Field(default=None, description="None where nothing is decoded")
    language_model: str | None = Field(default=None, description="Folder of the run of the decoding's language model")
    outputs: list[PlannedOutput]

    @cached_property
    def config(self) -> DecodingConfig:
        return DecodingConfig.model_validate(self.settings or {})


class PlannedTraining(Closed):
    """How a run is decoded at the end of its training job.

    Attributes:
        threads: CPU threads.
        plans: Of each decoding.
    """

    threads: int
    plans: list[DecodingPlan]


def output_keys(run_folder: Path, plan: DecodingPlan) -> dict[str, str]:
    """Return the digest of the inputs and settings of each output, by its file.

    Raises:
        UserError: The run, its language model or a corpus is not there.
    """
    own = Path(load_run(run_folder / RUN_FILE).corpus)
    weights = weights_of(run_folder, plan)
    search = searched(plan)
    keys: dict[str, str] = {}
    for output in plan.outputs:
        corpus = Path(output.corpus) if output.corpus else own
        made_of: dict[str, Any] = {"kind": output.kind, "weights": weights}
        if output.kind != "averaged":
            made_of |= {"corpus": read_corpus(own).digest, "split": output.split, "choice": output.choice}
            made_of["read"] = read_corpus(corpus).digest
        if output.kind not in (*OF_WEIGHTS, "averaged"):
            made_of["search"] = search
        keys[output.file] = sha256_json(made_of)
    return keys


def weights_of(run_folder: Path, plan: DecodingPlan) -> dict[str, Any]:
    """Return what identifies the weights of a decoding: the training's, and how they are averaged."""
    found: dict[str, Any] = {"training": final_digest(run_folder)}
    if plan.settings and plan.config.reads_checkpoints:
        found |= {"averaged": plan.config.averaged, "count": plan.config.average_last}
    return found


def searched(plan: DecodingPlan) -> dict[str, Any]:
    """Return the settings of the search, without those of the weights, and its language model."""
    settings = {key: value for key, value in (plan.settings or {}).items() if key not in ("averaged", "average_last")}
    other = final_digest(Path(plan.language_model)) if plan.language_model else None
    return {"settings": settings, "language_model": other}


def final_digest(run_folder: Path) -> str:
    """Return the digest of a run's final weights. Raises UserError when it is not trained."""
    done = TrainedRun.read_if_there(run_folder / DONE_FILE)
    if done is None:
        raise UserError(f"{run_folder}: training is not finished; run `train` first")
    return done.weights_digest
