"""A trained model with all that stands between it and text or sound; its outputs are those of the workflow."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.layout import CORPUS_FILE
from pipeline.core.records.corpus import SpeechCorpus
from pipeline.data.batches.base import EvalBatches
from pipeline.data.batches.corpus_batches import normalisation_corpus
from pipeline.data.text.alphabet import Alphabet
from pipeline.data.text.vocabulary import Subwords, vocabularies
from pipeline.data.trees.linearisation import rebuild
from pipeline.decoding.choose_search import Decoder, build_decoder, prepare_language_model
from pipeline.decoding.decode import decode_split, replace_branch_weights
from pipeline.decoding.trained_model import TrainedModel
from reprise.model_input import GivenSpeech, GivenText, Preparation
from reprise.named import FoundRun
from reprise.opening import decoding_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Model:
    """Ready to translate, to parse or to transcribe, whichever it was trained for."""

    trained: TrainedModel
    config: DecodingConfig
    preparation: Preparation
    symbols: tuple[Subwords | None, Subwords | Alphabet]
    """Of source and target; None where the source is speech, or there is none."""
    search: Decoder

    @classmethod
    def of_run(cls, found: FoundRun, decoding: str = "", threads: int | None = None) -> "Model":
        """Raises UserError when weights or settings are missing, damaged, or do not fit."""
        chosen = decoding_of(found, decoding)
        trained = heard_as_in_training(TrainedModel.load(chosen.weights, threads))
        symbols = vocabularies(Path(trained.spec.corpus))
        return cls.ready(trained, chosen.config, Preparation.of(found.dataset), symbols, chosen.language_model)

    @classmethod
    def ready(
        cls,
        trained: TrainedModel,
        config: DecodingConfig,
        preparation: Preparation,
        symbols: tuple[Subwords | None, Subwords | Alphabet],
        language_model: Path | None = None,
    ) -> "Model":
        replace_branch_weights(trained, config)
        search = build_decoder(trained.model, config, prepare_language_model(trained, config, language_model))
        return cls(trained, config, preparation, symbols, search)

    def __repr__(self) -> str:
        kind, spec = self.trained.spec.model.architecture, self.trained.spec
        return f"<{kind} {self.name}, trained on {spec.dataset} at scale {spec.scale}>"

    @property
    def name(self) -> str:
        return self.trained.spec.name

    def require(self, form: str, does: str) -> None:
        """Raises UserError unless it was trained for what is asked of it."""
        reads = "characters" if self.trained.spec.model.reads == "text" else self.preparation.form
        if reads != form:
            verbs = {"sentences": "translates", "trees": "parses", "speech": "transcribes"}
            what = verbs.get(reads, "is a language model: it has no input of which it makes another text")
            raise UserError(f"{self.name} {what}, it does not {does}")

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The translation of each line, detokenised; of a line without words an empty one.

        Raises:
            UserError: it is no translation model, or a line is longer than it has positions for.
        """
        self.require("sentences", "translate")
        return self.each(lines, lambda tokens: self.preparation.text(self.outputs(tokens)))

    def parse(self, lines: Sequence[str]) -> list[str]:
        """The tree over each line's words, in brackets. Raises UserError as `translate` does."""
        self.require("trees", "parse")

        def trees(tokens: list[str]) -> list[str]:
            found = zip(self.outputs(tokens), tokens, strict=True)
            return [str(rebuild(symbols.split(), line.split(" "))[0]) for symbols, line in found]

        return self.each(lines, trees)

    def each(self, lines: Sequence[str], work: Callable[[list[str]], list[str]]) -> list[str]:
        """`work` done on the tokens of lines that have any; the others stay empty. Raises UserError for one text."""
        if isinstance(lines, str):
            raise UserError("a list of lines is read, not one text: give [text]")
        tokens = [self.preparation.tokens(line) for line in lines]
        found = iter(work([line for line in tokens if line]) if any(tokens) else [])
        return [next(found) if line else "" for line in tokens]

    def outputs(self, tokens: list[str]) -> list[str]:
        """What the model writes of tokenised lines, tokenised."""
        assert self.symbols[0] is not None, "only speech has no source symbols, and it is not read here"
        return self.decoded(GivenText("the text", self.symbols[0].encode(tokens)))

    def decoded(self, split: GivenText | GivenSpeech) -> list[str]:
        batches = EvalBatches[Any, Any](split, self.config.batch_tokens)
        return self.symbols[1].decode(decode_split(self.trained, batches, self.search).outputs)

    @property
    def hears_speakers(self) -> bool:
        """Whether it normalises recordings by their speaker: those that are given at once count as one's."""
        return isinstance(self.trained.corpus, SpeechCorpus) and self.trained.corpus.speaker_cmvn

    def transcribe(self, samples: np.ndarray, rate: int) -> str:
        """What is said in samples (n,) or (n, channels), in [-1, 1], of `rate` Hz.

        Raises:
            UserError: it is no model of speech, or there is nothing to hear.
        """
        return self.transcribe_all({"the recording": (samples, rate)})[0]

    def transcribe_all(self, sounds: dict[str, tuple[np.ndarray, int]]) -> list[str]:
        """`transcribe` of several recordings, by name, at once; of one speaker, where `speaker_cmvn` was trained on."""
        from reprise.sound import features, of_one_speaker  # only speech needs what reads it

        self.require("speech", "transcribe")
        known, corpus = self.preparation, self.trained.corpus
        assert known.sample_rate and known.high_hz and isinstance(corpus, SpeechCorpus), "all speech has them"
        for name, (samples, rate) in sounds.items():
            if known.max_seconds and (seconds := len(samples) / max(rate, 1)) > known.max_seconds:
                log.warning("%s: %.1f s; no training utterance is above %g s", name, seconds, known.max_seconds)
        frames = [features(name, *sound, known.sample_rate, known.high_hz) for name, sound in sounds.items()]
        if self.hears_speakers:
            if len(sounds) == 1:
                log.warning("one recording says little of its speaker, by whom it is normalised; give several at once")
            frames = of_one_speaker(frames, corpus.statistics)
        return self.decoded(GivenSpeech("the recordings", frames, corpus.statistics))


def heard_as_in_training(trained: TrainedModel) -> TrainedModel:
    """With the statistics by which its encoder learnt to hear: of another corpus, where it was fine-tuned."""
    if not isinstance(trained.corpus, SpeechCorpus):
        return trained
    statistics = {"statistics": SpeechCorpus.read(normalisation_corpus(trained.spec) / CORPUS_FILE).statistics}
    return replace(trained, corpus=trained.corpus.model_copy(update=statistics))
