"""A trained model with its preparation of text or sound; its outputs equal those of the workflow."""

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
from reprise.find_runs import FoundRun
from reprise.model_input import GivenSpeech, GivenText, Preparation
from reprise.opening import decoding_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Model:
    """A model that translates, parses or transcribes, as it was trained to."""

    trained: TrainedModel
    config: DecodingConfig
    preparation: Preparation
    symbols: tuple[Subwords | None, Subwords | Alphabet]
    """Vocabularies of source and target; None for speech or without a source."""
    search: Decoder

    @classmethod
    def of_run(cls, found: FoundRun, decoding: str = "", threads: int | None = None) -> "Model":
        """Load the model of a run. Raises UserError if weights or settings are missing, damaged or do not fit."""
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
        """Build a model from its loaded parts and its decoding."""
        replace_branch_weights(trained, config)
        search = build_decoder(trained.model, config, prepare_language_model(trained, config, language_model))
        return cls(trained, config, preparation, symbols, search)

    def __repr__(self) -> str:
        """Return architecture, name, dataset and scale."""
        kind, spec = self.trained.spec.model.architecture, self.trained.spec
        return f"<{kind} {self.name}, trained on {spec.dataset} at scale {spec.scale}>"

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return self.trained.spec.name

    def require(self, form: str, does: str) -> None:
        """Check that the model was trained for a task. Raises UserError if it was not."""
        reads = "characters" if self.trained.spec.model.reads == "text" else self.preparation.form
        if reads != form:
            verbs = {"sentences": "translates", "trees": "parses", "speech": "transcribes"}
            what = verbs.get(reads, "is a language model without an input")
            raise UserError(f"{self.name} {what}, it does not {does}")

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translate lines, and detokenise the translations; a line without words gives an empty one.

        Raises:
            UserError: It is no translation model, or a line is longer than its positions.
        """
        self.require("sentences", "translate")
        return self.each(lines, lambda tokens: self.preparation.text(self.outputs(tokens)))

    def parse(self, lines: Sequence[str]) -> list[str]:
        """Return the bracketed tree over the words of each line. Raises UserError as `translate` does."""
        self.require("trees", "parse")

        def trees(tokens: list[str]) -> list[str]:
            found = zip(self.outputs(tokens), tokens, strict=True)
            return [str(rebuild(symbols.split(), line.split(" "))[0]) for symbols, line in found]

        return self.each(lines, trees)

    def each(self, lines: Sequence[str], work: Callable[[list[str]], list[str]]) -> list[str]:
        """Apply `work` to the tokenised lines that have words; the others stay empty.

        Raises:
            UserError: `lines` is one string.
        """
        if isinstance(lines, str):
            raise UserError("expected a list of lines, got one string: write [text]")
        tokens = [self.preparation.tokens(line) for line in lines]
        found = iter(work([line for line in tokens if line]) if any(tokens) else [])
        return [next(found) if line else "" for line in tokens]

    def outputs(self, tokens: list[str]) -> list[str]:
        """Return the tokenised outputs of tokenised lines."""
        assert self.symbols[0] is not None, "only speech has no source symbols, and it is not read here"
        return self.decoded(GivenText("the text", self.symbols[0].encode(tokens)))

    def decoded(self, split: GivenText | GivenSpeech) -> list[str]:
        """Decode a split, and return its outputs in order."""
        batches = EvalBatches[Any, Any](split, self.config.batch_tokens)
        return self.symbols[1].decode(decode_split(self.trained, batches, self.search).outputs)

    @property
    def hears_speakers(self) -> bool:
        """Return whether recordings of one call are normalised together, as one speaker's."""
        return isinstance(self.trained.corpus, SpeechCorpus) and self.trained.corpus.speaker_cmvn

    def transcribe(self, samples: np.ndarray, rate: int) -> str:
        """Transcribe one recording.

        Args:
            samples: Shape (n,) or (n, channels), in [-1, 1].
            rate: In Hz.

        Raises:
            UserError: It is no speech model, or the recording is too short or no sound.
        """
        return self.transcribe_all({"the recording": (samples, rate)})[0]

    def transcribe_all(self, sounds: dict[str, tuple[np.ndarray, int]]) -> list[str]:
        """Transcribe several recordings (samples, rate) by name.

        With `speaker_cmvn`, all must have the same speaker.
        """
        from reprise.sound import features, of_one_speaker  # soundfile is needed for speech only

        self.require("speech", "transcribe")
        known, corpus = self.preparation, self.trained.corpus
        assert known.sample_rate and known.high_hz and isinstance(corpus, SpeechCorpus), "all speech has them"
        for name, (samples, rate) in sounds.items():
            if known.max_seconds and (seconds := len(samples) / max(rate, 1)) > known.max_seconds:
                log.warning("%s: %.1f s; no training utterance is above %g s", name, seconds, known.max_seconds)
        frames = [features(name, *sound, known.sample_rate, known.high_hz) for name, sound in sounds.items()]
        if self.hears_speakers:
            if len(sounds) == 1:
                log.warning("the model normalises by speaker, which needs several recordings; give them at once")
            frames = of_one_speaker(frames, corpus.statistics)
        return self.decoded(GivenSpeech("the recordings", frames, corpus.statistics))


def heard_as_in_training(trained: TrainedModel) -> TrainedModel:
    """Use the feature statistics of training: those of another corpus for a fine-tuned model."""
    if not isinstance(trained.corpus, SpeechCorpus):
        return trained
    statistics = {"statistics": SpeechCorpus.read(normalisation_corpus(trained.spec) / CORPUS_FILE).statistics}
    return replace(trained, corpus=trained.corpus.model_copy(update=statistics))
