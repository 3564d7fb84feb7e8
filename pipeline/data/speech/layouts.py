"""How published corpora of speech are laid out: which utterances lie in a folder of unpacked files."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import soundfile

from pipeline.core.errors import UserError
from pipeline.data.speech.audio import decoded
from pipeline.data.speech.manifest import Utterance, number_of
from pipeline.data.speech.text_lines import is_comment, segment_text, table
from pipeline.data.text.text_files import lines_of

UNPACK = "run the stage `collect-recordings` again"


class Layout(NamedTuple):
    """Suffixes of the files it is made of, how utterances are read from them, and whether the name of a file says which
    recording it is, wherever it lies.

    `utterances(folder, members, domain, table)` yields those of the files below `folder` whose path fits the pattern
    `members`; `table` is a file beside the archive, of a layout that needs one.
    """

    suffixes: tuple[str, ...]
    utterances: Callable[[Path, str, str, Path | None], Iterator[Utterance]]
    named_once: bool

    def recording(self, utterance: Utterance) -> str:
        """Which recording an utterance is of."""
        return utterance.audio.name if self.named_once else str(utterance.audio)


def librispeech(folder: Path, members: str, domain: str, listing: Path | None) -> Iterator[Utterance]:
    """<reader>/<chapter>/<reader>-<chapter>.trans.txt, whose lines are the names of FLAC files beside it, and text."""
    for transcripts in fitting(folder, members, ".trans.txt"):
        for line in lines_of(transcripts, UNPACK):
            name, _, text = line.partition(" ")
            audio = transcripts.with_name(f"{name}.flac")
            yield Utterance(audio, text, name.split("-")[0], domain, seconds_of(audio))


def tedlium(folder: Path, members: str, domain: str, listing: Path | None) -> Iterator[Utterance]:
    """stm/<talk>.stm, whose lines are stretches of sph/<talk>.sph with their text, if somebody wrote it down."""
    for transcripts in fitting(folder, members, ".stm"):
        audio = transcripts.parents[1] / "sph" / f"{transcripts.stem}.sph"
        for number, line in enumerate(lines_of(transcripts, UNPACK), start=1):
            if is_comment(line) or not line.strip():
                continue
            fields = line.split(None, 6)
            if len(fields) < 6:
                raise UserError(f"{transcripts}: line {number}: no segment; fetch the archive again")
            if text := segment_text(line):
                start, end = (number_of(field, f"{transcripts}: line {number}") for field in fields[3:5])
                yield Utterance(audio, text, fields[2], domain, end - start, start)


def listed(folder: Path, members: str, domain: str, listing: Path | None) -> Iterator[Utterance]:
    """A TSV file with columns path, speaker and transcript."""
    assert listing, "every part of this layout names a table"
    for row in table(lines_of(listing, UNPACK), ("path", "speaker", "transcript"), str(listing)):
        if fnmatch(row["path"], members):
            audio = folder / row["path"]
            yield Utterance(audio, row["transcript"], row["speaker"], domain, seconds_of(audio))


LAYOUTS = {
    "librispeech": Layout((".flac", ".trans.txt"), librispeech, named_once=True),
    "tedlium": Layout((".sph", ".stm"), tedlium, named_once=True),
    "table": Layout((".flac", ".wav"), listed, named_once=False),
}


def fitting(folder: Path, members: str, suffix: str) -> list[Path]:
    """Files of one suffix below `folder` whose path in it fits the pattern, in a fixed order."""
    found = sorted(folder.rglob(f"*{suffix}"))
    return [path for path in found if fnmatch(path.relative_to(folder).as_posix(), members)]


def seconds_of(audio: Path) -> float:
    """Length of a file; 0 if it is none, and then it is left out and counted when features are computed."""
    try:
        return decoded(audio, lambda source: soundfile.info(source).duration)
    except (soundfile.SoundFileError, FileNotFoundError):
        return 0.0
