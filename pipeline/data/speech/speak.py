"""Stage `speak`: text read aloud by eSpeak NG, with the same readers for every domain.

eSpeak NG comes as a wheel and is called through its C library. The library keeps state between utterances (the flutter
of its voices), which it cannot reset, and seeds the breath of its voices by the clock unless it gets a seed. With a
seed, its samples depend on everything that its process has spoken before.
"""

import ctypes
import logging
import multiprocessing
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import espeakng_loader
import numpy as np

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import register_output, write_errors
from pipeline.core.records.corpus import SpokenReport, SpokenSplit
from pipeline.data.dataset import ReadAloudDataset, ReaderPool, load_one_of
from pipeline.data.processes import ProgressLog, chunks, map_in_order
from pipeline.data.speech.audio import flac
from pipeline.data.speech.encode_text import Sentence, select
from pipeline.data.speech.manifest import Utterance, manifest_path, write_manifest

log = logging.getLogger(__name__)

UTTERANCES_PER_PROCESS = 250
BYTES_PER_CHARACTER = 2000
"""Bytes of FLAC for each character at a slow rate."""


@dataclass(frozen=True)
class Reader:
    """A voice with its rate and pitch."""

    voice: str
    words_per_minute: int
    pitch: int

    @property
    def name(self) -> str:
        """Name of the speaker in manifests."""
        return self.voice.rpartition("/")[2]


def reader_of(pool: ReaderPool, split: str, number: int) -> Reader:
    """Return the reader of utterance `number` of a `split`, drawn from a `pool` independently of its text."""
    rng = Random(f"readers/{pool.seed}/{split}/{number}")
    return Reader(rng.choice(pool.voices), rng.randint(*pool.words_per_minute), rng.randint(*pool.pitch))


SAMPLE_RATE = 22050
SYNCHRONOUS = 2
RATE, PITCH = 1, 3
UTF8 = 1
SEED = 1
CHARACTER_POSITION = 1
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Synthesiser:
    """eSpeak NG; one per process, as the library has a single state.

    Raises:
        UserError: The library does not start.
    """

    def __init__(self):
        self.library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.rate = self.library.espeak_Initialize(SYNCHRONOUS, 0, str(espeakng_loader.get_data_path()).encode(), 0)
        if self.rate != SAMPLE_RATE:
            raise UserError(f"eSpeak NG starts at {self.rate} Hz, not {SAMPLE_RATE}; reinstall espeakng-loader")
        self.library.espeak_ng_SetRandSeed(ctypes.c_long(SEED))
        self.pieces: list[bytes] = []
        self.callback = Callback(self._receive)  # the library holds no reference to it
        self.library.espeak_SetSynthCallback(self.callback)

    def _receive(self, samples, count: int, events: int) -> int:
        if samples and count:
            self.pieces.append(ctypes.string_at(samples, count * ctypes.sizeof(ctypes.c_short)))
        return 0

    def say(self, text: str, voice: str, words_per_minute: int, pitch: int) -> np.ndarray:
        """Synthesise a text.

        Args:
            text: Sentence as written.
            voice: File name of a voice of eSpeak NG.
            words_per_minute: Rate of speech.
            pitch: Base pitch, 0 to 100.

        Returns:
            Samples (n,) int16 at `SAMPLE_RATE`.

        Raises:
            UserError: The voice is unknown, or the text can't be synthesised.
        """
        if self.library.espeak_SetVoiceByName(voice.encode()):
            raise UserError(f"readers.voices: eSpeak NG has no voice {voice!r}; `espeak-ng --voices` lists its files")
        self.library.espeak_SetParameter(RATE, words_per_minute, 0)
        self.library.espeak_SetParameter(PITCH, pitch, 0)
        self.pieces.clear()
        content = text.encode()
        fault = self.library.espeak_Synth(
            content, ctypes.c_size_t(len(content) + 1), 0, CHARACTER_POSITION, 0, UTF8, None, None
        )
        if fault or not self.pieces:
            raise UserError(f"eSpeak NG can't read {text!r} as {voice} (code {fault}); remove the sentence")
        return np.frombuffer(b"".join(self.pieces), np.int16)


def version() -> str:
    """Return the version of the library."""
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    library.espeak_Info.restype = ctypes.c_char_p
    return library.espeak_Info(None).decode()


@dataclass(frozen=True)
class Task:
    """One utterance to read."""

    audio: Path
    sentence: Sentence
    reader: Reader


def speak_corpus(*, dataset: Path, corpus: Path, processes: int = 1) -> None:
    r"""Read the text of a corpus aloud with eSpeak NG.

        python -m pipeline speak --dataset workflow/datasets/grammar-speech-source.yaml \
            --corpus work/corpora/grammar-speech-source --processes 2

    reads   <corpus>/raw/<split>.en
    writes  <corpus>/audio/<split>/<number>.flac   one per utterance, 16 bits
            <corpus>/manifests/<split>.tsv         transcript, speaker and length of each utterance
            <corpus>/spoken.json                   numbers of sentences read and left out, by reason

    The synthesiser keeps its state from utterance to utterance. So utterances are read in chunks of fixed size, each in
    a process of its own: the same dataset file gives the same samples with any number of processes.

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
        processes: Number of processes that share the work.
    """
    speak(load_one_of(dataset, ReadAloudDataset, "text to be read aloud"), corpus, processes)


def speak(dataset: ReadAloudDataset, corpus: Path, processes: int) -> SpokenReport:
    """Return the report in `spoken.json`, after writing audio and manifests; see `speak_corpus`.

    Raises:
        UserError: Raw text is missing or too short, a voice is unknown, or the disk is too small.
    """
    chosen = select(dataset, corpus, dataset.utterances)
    characters = sum(len(sentence.spelt) for split in chosen.values() for sentence in split.sentences)
    require_space(corpus, BYTES_PER_CHARACTER * characters, "speech read aloud")
    splits: dict[str, SpokenSplit] = {}
    for split in dataset.split_names:
        folder = corpus / "audio" / split
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        tasks = [
            Task(folder / f"{number:06}.flac", sentence, reader_of(dataset.readers, split, number))
            for number, sentence in enumerate(chosen[split].sentences)
        ]
        progress = ProgressLog(log, f"{dataset.name} {split}: read", "utterances")
        spoken = read_aloud(tasks, dataset.domain, processes, progress)
        kept = write_manifest(manifest_path(corpus, split), spoken)
        register_output(folder)
        progress.finish()
        splits[split] = SpokenSplit(utterances=kept, **chosen[split].record())
    report = SpokenReport(dataset=dataset.name, synthesiser=f"eSpeak NG {version()}", splits=splits)
    report.write(corpus / "spoken.json")
    return report


def read_aloud(tasks: list[Task], domain: str, processes: int, progress: ProgressLog) -> Iterator[Utterance]:
    """Write the audio of each task and yield the utterances in order, with several `processes`; as `read_part`."""
    parts = chunks(tasks, UTTERANCES_PER_PROCESS)
    for part in map_in_order(partial(in_fresh_process, domain=domain), parts, processes):
        yield from part
        progress.advance(len(part))


def in_fresh_process(tasks: list[Task], domain: str) -> list[Utterance]:
    """Return the result of `read_part`, run in a process whose synthesiser has no state yet; see `read_part`.

    Raises:
        UserError: A sentence can't be synthesised, or the process was killed.
    """
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as fresh:
            return fresh.submit(read_part, tasks, domain).result()
    except BrokenProcessPool as error:
        killed = "the process that reads aloud was killed, perhaps for lack of memory; run the command again"
        raise UserError(killed) from error


def read_part(tasks: list[Task], domain: str) -> list[Utterance]:
    """Read some `tasks` of a `domain` with one synthesiser, and return the utterances in order."""
    synthesiser = Synthesiser()
    return [read_one(synthesiser, task, domain) for task in tasks]


def read_one(synthesiser: Synthesiser, task: Task, domain: str) -> Utterance:
    """Write the audio of one `task` of a `domain` by this process' `synthesiser`, and return its utterance."""
    reader = task.reader
    samples = synthesiser.say(task.sentence.written, reader.voice, reader.words_per_minute, reader.pitch)
    with write_errors(task.audio):  # the library itself would hide errors of the disk
        task.audio.write_bytes(flac(samples, synthesiser.rate))
    return Utterance(task.audio, task.sentence.spelt, reader.name, domain, len(samples) / synthesiser.rate)
