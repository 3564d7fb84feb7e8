"""How the outputs of one model under one decoding are found: the search that fits the model, and its language model."""

from collections.abc import Callable
from pathlib import Path

from pipeline.config import DecodingConfig
from pipeline.data.alphabet import IDS
from pipeline.data.batches import TextBatch
from pipeline.data.speech_batches import SpeechBatch
from pipeline.data.token_store import TokenStore
from pipeline.decoding.trained_model import TrainedModel
from pipeline.errors import UserError
from pipeline.models.fusion.model import FusedModel
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import FrameModel, Seq2Seq
from pipeline.search.beam_search import Hypothesis, beam_search
from pipeline.search.ctc_prefix_search import TextScores, prefix_search
from pipeline.search.joint_search import joint_search
from pipeline.search.ngram import Ngram
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
    if config.word_bonus and not isinstance(trained.model, FrameModel | JointRecogniser):
        raise UserError(f"{trained.spec.name}: decoding.word_bonus is for CTC; a decoder ends its output itself")
    used: LanguageModel | Ngram | None = language_model
    if config.ngram_order:
        texts = TokenStore(Path(trained.spec.corpus) / "train.tgt")
        used = Ngram(config.ngram_order, trained.corpus.vocab_sizes[1], (texts[index] for index in range(len(texts))))
    prior = Prior(used, config.lm_weight) if used else None
    return fitting_search(trained.model, config, prior)


def fitting_search(model: Seq2Seq, config: DecodingConfig, prior: Prior | None = None) -> Search:
    """The search for what kind of model it is."""
    scores = TextScores(prior, config.word_bonus, IDS[" "])
    if isinstance(model, JointRecogniser):
        return lambda batch: joint_search(model, batch, config.beam_size, config.ctc_weight, scores)
    if isinstance(model, FrameModel):
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
