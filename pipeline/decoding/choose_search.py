"""How the outputs of one model under one decoding are found: the search that fits the model, and its language model."""

from collections.abc import Callable
from pathlib import Path

from pipeline.config import DecodingConfig
from pipeline.data.alphabet import IDS
from pipeline.data.batches import TextBatch
from pipeline.data.speech_batches import SpeechBatch
from pipeline.decoding.trained_model import TrainedModel
from pipeline.errors import UserError
from pipeline.models.fusion.model import FusedModel
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import FrameModel, Seq2Seq
from pipeline.search.beam_search import Hypothesis, beam_search
from pipeline.search.ctc_prefix_search import TextScores, prefix_search
from pipeline.search.scorers import Prior
from pipeline.training.parts import load_language_model

Search = Callable[[TextBatch | SpeechBatch], list[Hypothesis]]
"""The best hypothesis of each sequence of a batch."""


def search_for(trained: TrainedModel, config: DecodingConfig, language_model: Path | None) -> Search:
    """Beam search or, with CTC, prefix search; with the language model in the folder `language_model`.

    Raises:
        UserError: the language model is missing or does not fit, or the model can't use it as asked for.
    """
    if (config.language_model is None) != (language_model is None):
        raise UserError(f"{trained.spec.name}: decoding.language_model and the folder of its run go together")
    loaded = load_language_model(language_model, trained.spec).to(trained.device) if language_model else None
    if loaded and config.language_model_use == "instead":
        replace_language_model(trained, loaded)
        loaded = None
    return weighted_search(trained, config, loaded)


def weighted_search(trained: TrainedModel, config: DecodingConfig, language_model: LanguageModel | None) -> Search:
    """The search with the weights of `config`."""
    if config.word_bonus and not isinstance(trained.model, FrameModel):
        raise UserError(f"{trained.spec.name}: decoding.word_bonus is for CTC; a decoder ends its output itself")
    prior = Prior(language_model, config.lm_weight) if language_model else None
    return fitting_search(trained.model, config, prior)


def fitting_search(model: Seq2Seq, config: DecodingConfig, prior: Prior | None = None) -> Search:
    """The search for what kind of model it is."""
    if isinstance(model, FrameModel):
        scores = TextScores(prior, config.word_bonus, IDS[" "])
        return lambda batch: prefix_search(*model.log_probs(batch), config.beam_size, scores)
    return lambda batch: [best for best, *_ in beam_search(model, batch, config, prior=prior)]


def replace_language_model(trained: TrainedModel, language_model: LanguageModel) -> None:
    """Cold Fusion, section 3. Raises UserError when the model has none, or reads its hidden state."""
    if not isinstance(trained.model, FusedModel):
        raise UserError(f"{trained.spec.name}: no language model is fused with it that could be replaced")
    try:
        trained.model.replace_language_model(language_model)
    except ValueError as error:
        raise UserError(f"{trained.spec.name}: {error}") from error
