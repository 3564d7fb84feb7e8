"""Stage `features`: log-mel features and character ids of the utterances of a corpus."""

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pipeline.core import digests, disk, files, layout
from pipeline.core.errors import UserError, count_of
from pipeline.core.records.corpus import PreparedSpeech, SpeechCorpus, SpeechSizes, UtterancesReport
from pipeline.data.dataset import ManifestDataset, SplitName, SpokenDataset, SpokenRecord, load_one_of
from pipeline.data.encoded_files import encoded_stores, stores_digest
from pipeline.data.fetch.packages import Packages, own_files
from pipeline.data.processes import ProgressLog, chunks, map_in_order
from pipeline.data.sequence_store import FEATURES, FRAME_DTYPE, FRAMES_PER_SECOND, write_frames, write_tokens
from pipeline.data.speech.audio import LARGEST_OF_8_BITS, LOUDEST, QUIETEST
from pipeline.data.speech.frontend import KeptUtterance, Moments, features_of, normalise_speakers, write_noises
from pipeline.data.speech.manifest import (
    UNNAMED,
    Utterance,
    manifest_path,
    place_of,
    read_manifest,
    shared_speakers,
    shared_utterances,
)
from pipeline.data.text.vocabulary import Alphabet

log = logging.getLogger(__name__)

UTTERANCES_PER_CHUNK = 50
EXAMPLES = 5


def extract_features(*, dataset: Path, corpus: Path, package: Packages = (), processes: int = 1) -> None:
    r"""Compute memory-mapped features and character ids of the utterances of a corpus.

        python -m pipeline features --dataset workflow/datasets/grammar-speech-source.yaml \
            --corpus work/corpora/grammar-speech-source --processes 2

    reads   <corpus>/manifests/<split>.tsv, or <split>.tsv in the folder of your own corpus (manifest.py); the audio
    writes  <corpus>/prepared/<split>.en             transcripts of the utterances that are kept
            <corpus>/prepared/<split>.speakers       their speakers, one name per line
            <corpus>/prepared/report.json            counts, seconds, and utterances left out by reason
            <corpus>/encoded/<split>.frames[.offsets]  log-mel features (sequence_store.py)
            <corpus>/encoded/<split>.tgt.{tokens,offsets}  characters (vocabulary.py, sequence_store.py)
            <corpus>/encoded/noise.frames[.offsets]  background noises for training
            <corpus>/encoded/corpus.json             sizes, statistics and digests, written last

    Features are stored as they are, or normalised per speaker (frontend.py). corpus.json has the mean and standard
    deviation of each feature over all training frames.

    Args:
        dataset: Dataset file.
        corpus: Folder of the corpus.
        package: Folder of a licensed package, or of your own corpus. May be given several times.
        processes: Number of processes that share the work.
    """
    record = load_one_of(dataset, SpokenRecord, "speech")
    manifests = {split: manifest_path(corpus, split) for split in record.split_names}
    if isinstance(record, ManifestDataset):
        manifests = own_files(record, package)
    compute_features(record, manifests, corpus, processes)


@dataclass
class SplitCounts:
    """Counts of the utterances of one split.

    Attributes:
        speakers: Speaker of each utterance kept; another speed counts as another speaker.
        scaled: Number of utterances kept that were scaled.
        loudest: Largest absolute sample of those, in the units of their files.
        silent: Number of utterances kept that are silent.
    """

    read: int = 0
    utterances: int = 0
    seconds: float = 0.0
    characters: int = 0
    words: int = 0
    rejected: Counter = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    moments: Moments = field(default_factory=Moments)
    speakers: list[str] = field(default_factory=list)
    scaled: int = 0
    loudest: float = 0.0
    silent: int = 0

    def reject(self, utterance: Utterance, reason: str) -> None:
        """Count an `utterance` that is left out for a `reason`, and keep some examples."""
        self.rejected[reason] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{reason}: {utterance.audio.name}: {utterance.text[:80]}")

    def add(self, utterance: Utterance, heard: KeptUtterance) -> None:
        """Count an `utterance`, whose length is that at its speed, with what is `heard` in it."""
        self.utterances += 1
        self.seconds += utterance.seconds
        self.characters += len(heard.text)
        self.words += heard.text.count(" ") + 1
        self.moments.add(heard.features)
        self.silent += heard.loudness < QUIETEST
        if heard.loudness > LOUDEST:
            self.scaled += 1
            self.loudest = max(self.loudest, heard.loudness)

    def report(self) -> UtterancesReport:
        """Return the split's part of the report."""
        left_out = ("moments", "speakers", "scaled", "loudest", "silent")
        counts = {name: value for name, value in vars(self).items() if name not in left_out}
        rounded = {"seconds": round(self.seconds, 3), "rejected": dict(self.rejected)}
        return UtterancesReport(**counts | rounded, frames=self.moments.frames, kept=self.utterances)

    def size(self) -> SpeechSizes:
        """Return the split's part of corpus.json."""
        seconds = round(self.seconds, 3)
        frames = self.moments.frames
        return SpeechSizes(pairs=self.utterances, src_tokens=frames, tgt_tokens=self.characters, seconds=seconds)


def compute_features(
    dataset: SpokenDataset, manifests: Mapping[SplitName, Path], corpus: Path, processes: int
) -> SpeechCorpus:
    """Return the record in `encoded/corpus.json`, after writing `prepared/` and `encoded/`; see `extract_features`.

    Raises:
        UserError: A manifest is missing or faulty, a split is empty or not as expected, splits share utterances or
            speakers that they must not, or the disk is too small.
    """
    shared = shared_utterances(manifests)
    speakers = shared_speakers(manifests, refused=dataset.disjoint_speakers)
    times = {"train": sum(1 / speed for speed in dataset.speeds)}
    seconds = sum(
        utterance.seconds * times.get(split, 1)
        for split, path in manifests.items()
        for utterance in read_manifest(path)
    )
    bytes_needed = seconds * FRAMES_PER_SECOND * FEATURES * FRAME_DTYPE.itemsize
    disk.require_space(corpus, bytes_needed * (2 if dataset.speaker_cmvn else 1), "the features")
    (corpus / "encoded" / layout.CORPUS_FILE).unlink(missing_ok=True)  # a record means a complete corpus
    kept = {split: write_split(dataset, split, manifests[split], corpus, processes) for split in dataset.split_names}
    if dataset.speaker_cmvn:
        for split, counts in kept.items():
            normalise_speakers(corpus / "encoded" / split, counts.speakers, kept["train"].moments.statistics())
    write_noises(dataset, manifests["train"], corpus)
    report = PreparedSpeech(
        dataset=dataset.name,
        splits={split: counts.report() for split, counts in kept.items()},
        shared=len(shared),
        shared_examples=shared[:EXAMPLES],
        shared_speakers=speakers[:EXAMPLES],
    )
    report.write(corpus / "prepared/report.json")
    return write_record(dataset, kept, corpus)


def write_split(dataset: SpokenDataset, split: SplitName, manifest: Path, corpus: Path, processes: int) -> SplitCounts:
    """Write features, ids, transcripts and speakers of the utterances of a split that are kept; see `extract_features`.

    Other speeds are added to train only.

    Returns:
        Counts and moments of the utterances kept.

    Raises:
        UserError: A speaker has no name but is normalised, or `check_split` fails.
    """
    found, alphabet, places = SplitCounts(), Alphabet(), set()
    progress = ProgressLog(log, f"{dataset.name} {split}: features of", "utterances")
    speeds = dataset.speeds if split == "train" else [1.0]
    work = partial(features_of, dataset=dataset, speeds=speeds)
    with ExitStack() as stack:
        stem = corpus / "encoded" / split
        frames = stack.enter_context(write_frames(stem))
        tokens = stack.enter_context(write_tokens(stem.with_name(f"{split}.tgt"), len(alphabet)))
        texts = stack.enter_context(files.atomic_write(corpus / f"prepared/{split}.en"))
        speakers = stack.enter_context(files.atomic_write(corpus / f"prepared/{split}.speakers"))
        for part in map_in_order(work, chunks(read_manifest(manifest), UTTERANCES_PER_CHUNK), processes):
            for number, (utterance, result) in enumerate(part):
                found.read += 1
                if isinstance(result, str):
                    found.reject(utterance, result)
                    continue
                if (place := (place_of(utterance), number % len(speeds))) in places:
                    found.reject(utterance, "listed twice")
                    continue
                places.add(place)
                found.add(utterance, result)
                found.speakers.append(f"{utterance.speaker} {number % len(speeds)}")
                if dataset.speaker_cmvn and utterance.speaker in ("", UNNAMED):
                    raise UserError(f"{manifest}: {utterance.audio.name}: speaker_cmvn needs its speaker's name")
                frames.append(result.features)
                ids, lengths = alphabet.flat([result.text])
                tokens.append(ids, lengths)
                texts.write(f"{result.text}\n")
                speakers.write(f"{utterance.speaker}\n")
            progress.advance(len(part))
    progress.finish()
    check_split(dataset, split, found, corpus / f"prepared/{split}.en", manifest)
    return found


def check_split(
    dataset: SpokenDataset, split: SplitName, found: SplitCounts, transcripts: Path, manifest: Path
) -> None:
    """Check that a split is not empty and as the dataset file expects; log what was left out, is scaled or is silent.

    `transcripts` are those of the utterances kept, and messages name the `manifest`.

    Raises:
        UserError: It is empty, or its number of utterances or digest differs.
    """
    reasons = ", ".join(f"{count} {reason}" for reason, count in found.rejected.most_common()) or "none left out"
    if found.rejected:
        log.warning("%s %s: %d of %d left out: %s", dataset.name, split, found.rejected.total(), found.read, reasons)
    if found.scaled:
        units = "16-bit units and are divided by 32768"
        if found.loudest <= LARGEST_OF_8_BITS:
            units += f" (none exceeds {found.loudest:.0f}: if they are in 8-bit units, divide them by 128 first)"
        log.warning("%s %s: %d of %d utterances are in %s", dataset.name, split, found.scaled, found.read, units)
    if found.silent:
        log.warning("%s %s: %d of %d utterances are silent", dataset.name, split, found.silent, found.utterances)
    if not found.utterances:
        raise UserError(f"{manifest}: no usable utterance ({reasons}); see `python -m pipeline features --help`")
    expected = dataset.expected.get(split)
    if expected and expected.utterances != found.utterances:
        raise UserError(
            f"{manifest}: {count_of(found.utterances, 'utterance')} kept, expected {expected.utterances} ({reasons})"
        )
    digests.require_digest(transcripts, expected.sha256 if expected else None, "the transcripts differ")


def write_record(dataset: SpokenDataset, kept: Mapping[SplitName, SplitCounts], corpus: Path) -> SpeechCorpus:
    """Write and return `encoded/corpus.json` of a `dataset` in a `corpus`, with what is `kept` of each split."""
    encoded, alphabet = corpus / "encoded", Alphabet()
    record = SpeechCorpus(
        dataset=dataset.name,
        tgt="en",
        features=FEATURES,
        vocab_size=len(alphabet),
        vocab_digest=alphabet.digest,
        statistics=kept["train"].moments.statistics(),
        speaker_cmvn=dataset.speaker_cmvn,
        speeds=len(dataset.speeds),
        digest=stores_digest(encoded_stores(encoded, "speech", kept)),
        splits={split: counts.size() for split, counts in kept.items()},
    )
    record.write(encoded / layout.CORPUS_FILE)
    return record
