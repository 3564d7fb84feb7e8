"""Text read aloud by eSpeak NG: the same readers for every domain, so that domains differ in their text only."""

import io
import logging
import multiprocessing
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import soundfile

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import made
from pipeline.core.records.preparation import Spoken, SpokenSplit
from pipeline.data.dataset import ReadAloudDataset, load_one_of
from pipeline.data.processes import Progress, chunks, map_in_order
from pipeline.data.speech.espeak import Synthesiser, version
from pipeline.data.speech.manifest import Utterance, manifest_path, write_manifest
from pipeline.data.speech.readers import Reader, reader_of
from pipeline.data.speech.sentences import Sentence, select

log = logging.getLogger(__name__)

UTTERANCES_PER_PROCESS = 250
BYTES_PER_CHARACTER = 2000  # of FLAC at a slow rate


@dataclass(frozen=True)
class Task:
    """One utterance to read."""

    audio: Path
    sentence: Sentence
    reader: Reader


def speak_corpus(*, dataset: Path, corpus: Path, processes: int = 1) -> None:
    """Read the text of a corpus aloud with eSpeak NG.

        python -m pipeline speak --dataset workflow/datasets/grammar-speech-source.yaml \\
            --corpus work/corpora/grammar-speech-source --processes 2

    reads   <corpus>/raw/<split>.en
    writes  <corpus>/audio/<split>/<number>.flac   one per utterance, 16 bits
            <corpus>/manifests/<split>.tsv         transcript, speaker and length of each utterance (manifest.py)
            <corpus>/spoken.json                   sentences read, and those left out by reason

    The synthesiser keeps its state from utterance to utterance. So utterances are read in chunks of fixed size, each in
    a process of its own: the same dataset file gives the same samples with any number of processes.

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
        processes: Number of processes that share the work.
    """
    speak(load_one_of(dataset, ReadAloudDataset, "text to be read aloud"), corpus, processes)


def speak(dataset: ReadAloudDataset, corpus: Path, processes: int) -> Spoken:
    """Write audio and manifests; returns what spoken.json says, which is written last.

    Raises:
        UserError: raw text is missing or too short, a voice is unknown, or the disk is too small.
    """
    chosen = select(dataset, corpus, dataset.utterances)
    characters = sum(len(one.spelt) for split in chosen.sentences.values() for one in split)
    require_space(corpus, BYTES_PER_CHARACTER * characters, "speech read aloud")
    splits: dict[str, SpokenSplit] = {}
    for split in dataset.split_names:
        folder = corpus / "audio" / split
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        tasks = [
            Task(folder / f"{number:06}.flac", sentence, reader_of(dataset.readers, split, number))
            for number, sentence in enumerate(chosen.sentences[split])
        ]
        progress = Progress(log, f"{dataset.name} {split}: read", "utterances")
        spoken = read_aloud(tasks, dataset.domain, processes, progress)
        kept = write_manifest(manifest_path(corpus, split), spoken)
        made(folder)
        progress.finish()
        splits[split] = SpokenSplit(utterances=kept, **chosen.record(split))
    report = Spoken(dataset=dataset.name, synthesiser=f"eSpeak NG {version()}", splits=splits)
    report.write(corpus / "spoken.json")
    return report


def read_aloud(tasks: list[Task], domain: str, processes: int, progress: Progress) -> Iterator[Utterance]:
    """Utterances in order, their audio written."""
    parts = chunks(tasks, UTTERANCES_PER_PROCESS)
    for part in map_in_order(partial(in_fresh_process, domain=domain), parts, processes):
        yield from part
        progress.advance(len(part))


def in_fresh_process(tasks: list[Task], domain: str) -> list[Utterance]:
    """`read_part` in a process in which the synthesiser has not said anything yet.

    Raises:
        UserError: as it does, or the process was killed.
    """
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as fresh:
            return fresh.submit(read_part, tasks, domain).result()
    except BrokenProcessPool as error:
        killed = "the process that reads aloud was killed, perhaps for want of memory; run it again"
        raise UserError(killed) from error


def read_part(tasks: list[Task], domain: str) -> list[Utterance]:
    synthesiser = Synthesiser()
    return [read_one(synthesiser, task, domain) for task in tasks]


def read_one(synthesiser: Synthesiser, task: Task, domain: str) -> Utterance:
    reader = task.reader
    samples = synthesiser.say(task.sentence.written, reader.voice, reader.words_per_minute, reader.pitch)
    audio = io.BytesIO()  # the library does not say what the disk's fault is
    soundfile.write(audio, samples, synthesiser.rate, subtype="PCM_16", format="FLAC")
    task.audio.write_bytes(audio.getvalue())
    return Utterance(task.audio, task.sentence.spelt, reader.name, domain, len(samples) / synthesiser.rate)
