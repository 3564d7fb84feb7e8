"""Build the decoder of a model: the search that fits it, and the external language model."""

from collections.abc import Callable
from pathlib import Path

from pipeline.config import DecodingConfig, load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.data.store.sequence_store import TokenStore
from pipeline.data.text.alphabet import IDS
from pipeline.decoding.trained_model import TrainedModel
from pipeline.models.fusion.model import FusedModel
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import FrameModel, Seq2Seq
from pipeline.search.beam_search import Hypothesis, beam_search
from pipeline.search.ctc_prefix_search import TextScores, joint_search, prefix_search
from pipeline.search.interface import ExternalLM
from pipeline.search.ngram import Ngram
from pipeline.training.run_model import check_vocabulary, load_language_model

Decoder = Callable[[TextBatch | SpeechBatch], list[Hypothesis]]
"""Finds the best hypothesis of each sequence of a batch."""


def build_decoder(
    model: Seq2Seq, config: DecodingConfig, language_model: LanguageModel | Ngram | None = None
) -> Decoder:
    """Build the search that fits a model: beam search, CTC prefix search, or both jointly.

    Args:
        model: In evaluation mode.
        config: Settings and weights of the search.
        language_model: Added to the model's scores, weighted by `config.lm_weight`.

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
        raise UserError("decoding.word_bonus: only for models with CTC; a decoder ends its output itself")
    return lambda batch: [best for best, *_ in beam_search(model, batch, config, external_lm=external_lm)]


def prepare_language_model(
    trained: TrainedModel, config: DecodingConfig, run_folder: Path | None
) -> LanguageModel | Ngram | None:
    """Load the language model of a decoding, and put it into the model if it replaces the model's own.

    Args:
        trained: The model to decode with.
        config: Names the language model or n-grams and their use.
        run_folder: Run of the language model; without it, n-grams are counted on the model's own training data.

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
    """Load the language model of a run, or count n-grams on its training data; see `prepare_language_model`."""
    if (config.language_model is None) != (run_folder is None):
        raise UserError(f"{trained.spec.name}: decoding.language_model and the folder of its run go together")
    used: LanguageModel | Ngram | None = None
    if config.ngram_order:
        if run_folder:
            check_vocabulary(trained.spec, run_folder, trained.corpus)
        spec = load_run(run_folder / RUN_FILE) if run_folder else trained.spec
        texts = TokenStore(Path(spec.corpus) / "train.tgt")
        used = Ngram(config.ngram_order, trained.corpus.vocab_sizes[1], (texts[index] for index in range(len(texts))))
    elif run_folder:
        used = load_language_model(run_folder, trained.spec)
    return used.to(trained.device) if used is not None else None


def replace_language_model(trained: TrainedModel, language_model: LanguageModel | Ngram) -> None:
    """Replace the language model of a fused model (Cold Fusion, section 3).

    Raises:
        UserError: The model has none, or reads its hidden state.
    """
    if not isinstance(trained.model, FusedModel):
        raise UserError(f"{trained.spec.name}: no language model is fused with it that could be replaced")
    try:
        trained.model.replace_language_model(language_model)
    except ValueError as error:
        raise UserError(f"{trained.spec.name}: {error}") from error
