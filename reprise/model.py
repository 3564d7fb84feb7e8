"""A trained model for text or sound as users have it; its outputs equal those of the workflow."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError, count_of, shown
from pipeline.core.layout import CORPUS_FILE
from pipeline.core.records.corpus import SpeechCorpus
from pipeline.data.batches.corpus_batches import EvalBatches, normalisation_corpus
from pipeline.data.text.vocabulary import Alphabet, Subwords, vocabularies
from pipeline.data.trees.linearisation import rebuild
from pipeline.decoding.decode_split import decode_split, replace_branch_weights
from pipeline.decoding.trained_model import Decoder, TrainedModel, build_decoder, prepare_language_model
from reprise.find_runs import FoundRun
from reprise.model_input import GivenSpeech, GivenText, Preparation, features, normalise_speaker
from reprise.opening import decoding_of

log = logging.getLogger(__name__)

LONGEST_SOURCE = 2047
"""Subwords of a line. Memory and time grow quadratically: 10,000 take gigabytes and many minutes."""
LONGEST_SOUND_S = 600.0
"""Seconds of a recording, which take a small model 1.4 GB and minutes. Memory and time grow quadratically here, too."""


@dataclass(frozen=True, repr=False)
class Model:
    """A trained model that translates, parses or transcribes.

    Attributes:
        trained: Network in evaluation mode, with its settings and corpus.
        config: Settings of the decoding.
        preparation: How text or sound is prepared.
        symbols: Vocabularies of source and target; the source has none for speech or a language model.
        search: Search of the decoding.
    """

    trained: TrainedModel
    config: DecodingConfig
    preparation: Preparation
    symbols: tuple[Subwords | None, Subwords | Alphabet]
    search: Decoder

    @classmethod
    def of_run(cls, found: FoundRun, decoding: str = "", threads: int | None = None) -> "Model":
        """Return the model of a run, in evaluation mode.

        Args:
            found: The run.
            decoding: Text of `--decoding`; "" means the default decoding.
            threads: CPU threads; None means all cores.

        Raises:
            UserError: Weights or settings are missing, damaged or do not fit.
        """
        chosen = decoding_of(found, decoding)
        trained = with_training_statistics(TrainedModel.load(chosen.weights, threads))
        symbols = vocabularies(Path(trained.spec.corpus))
        return cls.assemble(trained, chosen.config, Preparation.of(found.dataset), symbols, chosen.language_model)

    @classmethod
    def assemble(
        cls,
        trained: TrainedModel,
        config: DecodingConfig,
        preparation: Preparation,
        symbols: tuple[Subwords | None, Subwords | Alphabet],
        language_model: Path | None = None,
    ) -> "Model":
        """Return a model of its loaded network, its preparation and its decoding.

        Args:
            trained: The loaded network; its branch weights may be replaced by those of the decoding.
            config: Settings of the decoding.
            preparation: How text or sound is prepared.
            symbols: Vocabularies of source and target.
            language_model: Run folder of an external language model, if the decoding uses one.
        """
        replace_branch_weights(trained, config)
        search = build_decoder(
            trained.model, config, prepare_language_model(trained, config, language_model), trained.recorder()
        )
        return cls(trained, config, preparation, symbols, search)

    def __repr__(self) -> str:
        """Return architecture, name, dataset and scale."""
        kind, spec = self.trained.spec.model.architecture, self.trained.spec
        return f"<{kind} {self.name}, trained on {spec.dataset} at scale {spec.scale}>"

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return self.trained.spec.name

    def require(self, form: str, verb: str) -> None:
        """Check that the model was trained for a task.

        Args:
            form: Form of the datasets of the task: sentences, trees or speech.
            verb: The task, for the message.

        Raises:
            UserError: The model was trained for another task.
        """
        reads = "characters" if self.trained.spec.model.reads == "text" else self.preparation.form
        if reads != form:
            commands = {"sentences": "translate", "trees": "parse", "speech": "transcribe"}
            what = (
                f"use `reprise {commands[reads]}`" if reads in commands else "it is a language model without an input"
            )
            raise UserError(f"{self.name} does not {verb}; {what}")

    def translate(self, lines: Sequence[str], place: Callable[[int], str] = "line {}".format) -> list[str]:
        """Return one detokenised translation per line; empty for a line without words.

        Args:
            lines: Sentences as plain text, not tokenised.
            place: Names a line in messages, by its number from 1.

        Raises:
            UserError: The model does not translate, or a line has too many subwords.
        """
        self.require("sentences", "translate")
        return self.map_lines(lines, place, lambda output, _: self.preparation.text(output))

    def parse(self, lines: Sequence[str], place: Callable[[int], str] = "line {}".format) -> list[str]:
        """Return one bracketed tree per line of words that are separated by spaces; empty for a line without words.

        Args:
            lines: Sentences tokenised as in the treebank.
            place: Names a line in messages, by its number from 1.

        Raises:
            UserError: The model does not parse, or a line has too many subwords.
        """
        self.require("trees", "parse")
        return self.map_lines(lines, place, lambda output, line: str(rebuild(output.split(), line.split(" "))[0]))

    def map_lines(
        self, lines: Sequence[str], place: Callable[[int], str], finish: Callable[[str, str], str]
    ) -> list[str]:
        """Decode the lines that have words; the others stay empty.

        Args:
            lines: Lines of text.
            place: Names a line in messages, by its number from 1.
            finish: Maps the output for a line and its tokens to the result.

        Returns:
            One output per line.

        Raises:
            UserError: `lines` is one string, or one of them is no text or has too many subwords.
        """
        if isinstance(lines, str):
            raise UserError("expected a list of lines, got one string: write [text]")
        texts = list(lines)
        if others := [line for line in texts if not isinstance(line, str)]:
            raise UserError(f"expected lines of text, got {shown(others[0])}; fill empty cells with ''")
        tokens = [self.preparation.tokens(line) for line in texts]
        words = {number: line for number, line in enumerate(tokens, start=1) if line}
        found = map(finish, self.decode_tokens(words, place), words.values())
        return [next(found) if line else "" for line in tokens]

    def decode_tokens(self, tokens: Mapping[int, str], place: Callable[[int], str] = "line {}".format) -> list[str]:
        """Return the tokenised outputs of tokenised lines; empty for one without symbols, as of a zero-width space.

        Args:
            tokens: Tokens of each line, by its number.
            place: Names a line in messages, by its number.

        Raises:
            UserError: A line has more than `LONGEST_SOURCE` subwords, or more than the model has positions for.
        """
        assert self.symbols[0] is not None, "only speech has no source symbols, and `require` refused it"
        sentences = self.symbols[0].encode([*tokens.values()])
        positions = self.trained.model.max_positions
        longest = LONGEST_SOURCE if positions is None else min(LONGEST_SOURCE, positions - 1)  # EOS needs one, too
        if long := [number for number, found in zip(tokens, sentences, strict=True) if len(found) > longest]:
            fault = f"{count_of(len(long), 'line has', 'lines have')} more than {longest:,} subwords"
            raise UserError(f"{fault}; write a sentence per line, unlike {place(long[0])}")
        read = [sentence for sentence in sentences if sentence]
        found = iter(self.decode(GivenText("the text", read)) if read else [])
        return [next(found) if sentence else "" for sentence in sentences]

    def decode(self, split: GivenText | GivenSpeech) -> list[str]:
        """Return the outputs of prepared inputs, in order."""
        batches = EvalBatches[Any, Any](split, self.config.batch_tokens)
        return self.symbols[1].decode(decode_split(self.trained, batches, self.search).outputs)

    @property
    def normalises_by_speaker(self) -> bool:
        """Return whether recordings of one call are normalised together, as one speaker's."""
        return isinstance(self.trained.corpus, SpeechCorpus) and self.trained.corpus.speaker_cmvn

    def transcribe(self, samples: np.ndarray, rate: int) -> str:
        """Return the transcript of one recording.

        Args:
            samples: Shape (n,) or (n, channels): floats in [-1, 1], or integers, which are scaled by their type. Wider
                integers with values of 16 bits are scaled as 16 bits, with a warning.
            rate: Sampling rate in Hz.

        Raises:
            UserError: The model does not transcribe, or the recording is too short, too long or invalid.
        """
        return self.transcribe_all({"the recording": (samples, rate)})[0]

    def transcribe_all(self, sounds: dict[str, tuple[np.ndarray, int]]) -> list[str]:
        """Transcribe several recordings; with `speaker_cmvn`, all must have the same speaker.

        Args:
            sounds: For each name, samples of shape (n,) or (n, channels) and their rate in Hz.

        Returns:
            The transcripts in the same order.

        Raises:
            UserError: The model does not transcribe, or a recording is too short, too long or invalid.
        """
        self.require("speech", "transcribe")
        preparation, corpus = self.preparation, self.trained.corpus
        assert preparation.sample_rate and preparation.high_hz and isinstance(corpus, SpeechCorpus), "set for speech"
        for name, (samples, rate) in sounds.items():
            longest = preparation.max_seconds
            seconds = len(samples) / rate if rate > 0 else 0.0  # `features` refuses other rates
            if seconds > LONGEST_SOUND_S:
                fault = f"{seconds:,.0f} s are more than a model reads at once ({LONGEST_SOUND_S:g} s)"
                raise UserError(f"{name}: {fault}; cut it at pauses")
            if longest and seconds > longest:
                log.warning("%s: %.1f s; no training utterance is above %g s", name, seconds, longest)
        frames = [
            features(name, *sound, preparation.sample_rate, preparation.high_hz) for name, sound in sounds.items()
        ]
        if self.normalises_by_speaker:
            if len(sounds) == 1:
                log.warning("the model normalises by speaker, which needs several recordings; give them at once")
            frames = normalise_speaker(frames, corpus.statistics)
        return self.decode(GivenSpeech("the recordings", frames, corpus.statistics))


def with_training_statistics(trained: TrainedModel) -> TrainedModel:
    """Replace the feature statistics by those of training, which differ for a fine-tuned model."""
    if not isinstance(trained.corpus, SpeechCorpus):
        return trained
    statistics = {"statistics": SpeechCorpus.read(normalisation_corpus(trained.spec) / CORPUS_FILE).statistics}
    return replace(trained, corpus=trained.corpus.model_copy(update=statistics))
