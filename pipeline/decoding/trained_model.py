"""A run's model with trained weights, and the search and language model that fit it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pipeline.config import DecodingConfig, RunSpec, load_run, run_folder_above
from pipeline.core.errors import REPAIR, UserError
from pipeline.core.layout import DONE_FILE, RUN_FILE
from pipeline.core.records.corpus import AnyCorpus, SpeechCorpus, read_corpus
from pipeline.core.records.training import TrainedRun
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.data.encoded_files import require_whole
from pipeline.data.sequence_store import TokenStore
from pipeline.data.text.vocabulary import IDS
from pipeline.decoding.captured_search import CapturedSearch
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.language_model.fusion import FusedModel
from pipeline.models.language_model.model import LanguageModel, Ngram
from pipeline.models.seq2seq import FrameModel, Seq2Seq
from pipeline.search.beam_search import Hypothesis, beam_search
from pipeline.search.ctc_prefix_search import TextScores, joint_search, prefix_search
from pipeline.search.interface import ExternalLM
from pipeline.training import checkpoint_files, graph_cache, run_model, specification, tensor_file
from pipeline.training.machine import autocast, prepare_device

Decoder = Callable[[TextBatch | SpeechBatch], list[Hypothesis]]
"""Finds the best hypothesis of each sequence of a batch."""


@dataclass(frozen=True)
class TrainedModel:
    """A trained model with the run that it comes from.

    Attributes:
        spec: Specification of the run.
        model: In evaluation mode, on `device`.
        device: Where the model is.
        corpus: Corpus of the training.
        weights_digest: Digest of the loaded weights.
        training_digest: Digest of the run's final weights; the loaded ones may be averages.
    """

    spec: RunSpec
    model: Seq2Seq
    device: torch.device
    corpus: AnyCorpus
    weights_digest: str
    training_digest: str | None

    @classmethod
    def load(cls, weights: Path, threads: int | None = None) -> "TrainedModel":
        """Return the model of a weights file in evaluation mode, on a GPU if there is one.

        Args:
            weights: Final or averaged weights.
            threads: CPU threads; None takes the cores that this process may use.

        Raises:
            UserError: The weights are missing, damaged, of another run, in no run's folder, or do not fit.
        """
        if not weights.exists():
            raise UserError(f"{weights}: no such weights; {REPAIR}")
        run_folder = run_folder_above(weights)
        if run_folder is None:
            raise UserError(f"{weights}: no run.yaml in any folder above it; keep weights in the folder of their run")
        spec = load_run(run_folder / RUN_FILE)
        corpus = read_corpus(Path(spec.corpus))
        require_whole(Path(spec.corpus))
        device = prepare_device(threads)
        model = run_model.build_initial_model(spec)
        tensor_file.load_weights(model, weights, specification.run_key(run_folder))
        done = TrainedRun.read_if_there(run_folder / DONE_FILE)
        training_digest = done.weights_digest if done else None
        return cls(
            spec,
            model.to(device).eval(),
            device,
            corpus,
            checkpoint_files.read_metadata(weights)["digest"],
            training_digest,
        )

    def require_positions(self, name: str, lengths: np.ndarray) -> None:
        """Check that the model has positions for sequences of `lengths` (N,); see `run_model.require_positions`."""
        run_model.require_positions(self.model, name, lengths, f"train {self.spec.name} with a larger")

    def recorder(self) -> graph_cache.Recorder | None:
        """Return a recorder of CUDA graphs for searches.

        It is None on a CPU, if the run has `cuda_graphs: false`, and with n-grams in the model.
        """
        counted = any(isinstance(module, Ngram) for module in self.model.modules())
        fits = self.device.type == "cuda" and self.spec.training.cuda_graphs and not counted
        return graph_cache.CudaRecorder(self.device) if fits else None

    def autocast(self) -> AbstractContextManager:
        """Return autocast in the run's precision, or in float32 if the machine is faster in it."""
        return autocast(self.device, self.spec)


def build_decoder(
    model: Seq2Seq,
    config: DecodingConfig,
    language_model: LanguageModel | Ngram | None = None,
    recorder: graph_cache.Recorder | None = None,
) -> Decoder:
    """Build the search that fits a model: beam search, CTC prefix search, or both jointly.

    Args:
        model: In evaluation mode.
        config: Settings and weights of the search.
        language_model: Added to the model's scores, weighted by `config.lm_weight`; None for none.
        recorder: Records steps of a beam search as CUDA graphs, unless n-grams are added; None runs all eagerly.

    Returns:
        A function from a batch to the best hypothesis of each sequence.

    Raises:
        UserError: `config.word_bonus` is set for a model without CTC.
    """
    external_lm = ExternalLM(language_model, config.lm_weight) if language_model is not None else None
    scores = TextScores(external_lm, config.word_bonus, IDS[" "])
    if isinstance(model, JointRecogniser):
        return lambda batch: joint_search(model, batch, config.beam_size, config.ctc_weight, scores)
    if isinstance(model, FrameModel):
        return lambda batch: prefix_search(*model.log_probs(batch), config.beam_size, scores)
    if config.word_bonus:
        raise UserError("decoding.word_bonus: only models with CTC take a word bonus; set it to 0")
    if recorder and not isinstance(language_model, Ngram):  # their probabilities are on the host
        captured = CapturedSearch(model, config, recorder, external_lm)
        return lambda batch: [best for best, *_ in captured.search(batch)]
    return lambda batch: [best for best, *_ in beam_search(model, batch, config, external_lm=external_lm)]


def prepare_language_model(
    trained: TrainedModel, config: DecodingConfig, run_folder: Path | None
) -> LanguageModel | Ngram | None:
    """Load the language model of a decoding, and put it into the model if it replaces the model's own.

    Args:
        trained: The model to decode with; changed if `config.language_model_use` is "instead".
        config: Names the language model or n-grams and their use.
        run_folder: Run of the language model; None counts n-grams on the model's own training data, if they are asked
            for.

    Returns:
        The language model to add to the search, or None.

    Raises:
        UserError: The language model is missing or does not fit, or the model cannot use it as `config` says.
    """
    used = load_external_lm(trained, config, run_folder)
    if used is not None and config.language_model_use == "instead":
        replace_language_model(trained, used)
        return None
    return used


def load_external_lm(
    trained: TrainedModel, config: DecodingConfig, run_folder: Path | None
) -> LanguageModel | Ngram | None:
    """Return the language model of a run, or count n-grams; see `prepare_language_model`. None if there is none.

    Raises:
        UserError: The language model is missing or does not fit, or exactly one of `config.language_model` and
            `run_folder` is set.
    """
    if (config.language_model is None) != (run_folder is None):
        raise UserError(
            f"{trained.spec.name}: decoding.language_model and the folder of its run go together; give both or neither"
        )
    used: LanguageModel | Ngram | None = None
    if config.ngram_order:
        if run_folder:
            run_model.check_vocabulary(trained.spec, run_folder, trained.corpus)
        spec = load_run(run_folder / RUN_FILE) if run_folder else trained.spec
        texts, record = TokenStore(Path(spec.corpus) / "train.tgt"), read_corpus(Path(spec.corpus))
        copies = record.speeds if isinstance(record, SpeechCorpus) else 1  # repeats would look like evidence
        once = (texts[index] for index in range(0, len(texts), copies))
        used = Ngram(config.ngram_order, trained.corpus.vocab_sizes[1], once)
    elif run_folder:
        used = run_model.load_language_model(run_folder, trained.spec)
    return used.to(trained.device) if used is not None else None


def replace_language_model(trained: TrainedModel, language_model: LanguageModel | Ngram) -> None:
    """Replace the language model of a fused model (Cold Fusion, section 3).

    Raises:
        UserError: The model has none, or reads its hidden state.
    """
    if not isinstance(trained.model, FusedModel):
        raise UserError(f"{trained.spec.name}: has no fused language model to replace; set language_model_use: beside")
    try:
        trained.model.replace_language_model(language_model)
    except ValueError as error:
        raise UserError(f"{trained.spec.name}: {error}") from error
