"""How the outputs of one model under one decoding are found: the search that fits the model, and its language model."""

from collections.abc import Callable
from pathlib import Path

from pipeline.config import DecodingConfig, load_run
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE
from pipeline.data.batches.batches import TextBatch
from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.data.store.token_store import TokenStore
from pipeline.data.text.alphabet import IDS
from pipeline.decoding.trained_model import TrainedModel
from pipeline.models.fusion.model import FusedModel
from pipeline.models.joint_recogniser.model import JointRecogniser
from pipeline.models.language_model.model import LanguageModel
from pipeline.models.seq2seq import FrameModel, Seq2Seq
from pipeline.search.beam_search import Hypothesis, beam_search
from pipeline.search.ctc_prefix_search import TextScores, prefix_search
from pipeline.search.joint_search import joint_search
from pipeline.search.ngram import Ngram
from pipeline.search.scorers import Prior
from pipeline.training.parts import check_vocabulary, load_language_model

Search = Callable[[TextBatch | SpeechBatch], list[Hypothesis]]
"""The best hypothesis of each sequence of a batch."""


def search_for(trained: TrainedModel, config: DecodingConfig, language_model: Path | None) -> Search:
    """Beam search or, with CTC, prefix search; with the language model in the folder `language_model`.

    Raises:
        UserError: the language model is missing or does not fit, or the model can't use it as asked for.
    """
    used = load_used(trained, config, language_model)
    if used is not None and config.language_model_use == "instead":
        replace_language_model(trained, used)
        used = None
    return weighted_search(trained, config, used)


def load_used(trained: TrainedModel, config: DecodingConfig, run_folder: Path | None) -> LanguageModel | Ngram | None:
    """The language model of a run, or n-grams of what it was trained on; without a run, of the model's own training."""
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


def weighted_search(trained: TrainedModel, config: DecodingConfig, used: LanguageModel | Ngram | None) -> Search:
    """The search with the weights of `config`, beside a language model."""
    if config.word_bonus and not isinstance(trained.model, FrameModel | JointRecogniser):
        raise UserError(f"{trained.spec.name}: decoding.word_bonus is for CTC; a decoder ends its output itself")
    return fitting_search(trained.model, config, Prior(used, config.lm_weight) if used is not None else None)


def fitting_search(model: Seq2Seq, config: DecodingConfig, prior: Prior | None = None) -> Search:
    """The search for what kind of model it is."""
    scores = TextScores(prior, config.word_bonus, IDS[" "])
    if isinstance(model, JointRecogniser):
        return lambda batch: joint_search(model, batch, config.beam_size, config.ctc_weight, scores)
    if isinstance(model, FrameModel):
        return lambda batch: prefix_search(*model.log_probs(batch), config.beam_size, scores)
    return lambda batch: [best for best, *_ in beam_search(model, batch, config, prior=prior)]


def replace_language_model(trained: TrainedModel, language_model: LanguageModel | Ngram) -> None:
    """Cold Fusion, section 3. Raises UserError when the model has none, or reads its hidden state."""
    if not isinstance(trained.model, FusedModel):
        raise UserError(f"{trained.spec.name}: no language model is fused with it that could be replaced")
    try:
        trained.model.replace_language_model(language_model)
    except ValueError as error:
        raise UserError(f"{trained.spec.name}: {error}") from error
