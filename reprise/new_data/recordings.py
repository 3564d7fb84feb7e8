"""Recordings of a user, each with its transcript, listed in a table.

The table is a TSV file with a header. Its columns are `audio` (a path relative to the table) and `text`, and optionally
`speaker`, and `start` and `seconds` of an utterance within a longer file. With three speakers or more, no speaker is in
two splits; else no transcript is.
"""

import logging
import math
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import soundfile

from pipeline.core.errors import UserError, count_of
from pipeline.data.speech.audio import TOLERANCE_S, UNKNOWN_FRAMES, sizes_of_cut_off
from pipeline.data.speech.manifest import UNNAMED, Utterance, number_of, write_manifest
from pipeline.data.text.checks import comparison_key
from pipeline.data.text.text_files import read_rows
from pipeline.data.text.vocabulary import to_alphabet
from reprise.new_data import SPLITS, by_split, by_weight
from reprise.new_data.text import flow
from reprise.user_files import checked_path, lines_of, new_file, refuse_pipe

log = logging.getLogger(__name__)

BYTES_A_SAMPLE = 2
LARGEST_DIFFERENCE = 0.05
"""Difference between the requested and the actual share of a split above which a warning is logged."""
MOST_FAULTS = 3
"""Largest number of faulty lines that an error describes."""
NEEDED, KNOWN = {"audio", "text"}, {"audio", "text", "speaker", "start", "seconds"}
HIGHEST_HZ, BELOW_HALF_THE_RATE = 7600, 0.95
"""Upper edge of the mel filters: in Hz for wideband speech, and as a share of half the sampling rate."""


def read_table(path: Path, name: str) -> list[Utterance]:
    """Return the utterances of the TSV `path` of dataset `name`, in order; a missing length is that of the audio.

    Raises:
        UserError: The table or one of its recordings can't be read, or a column is missing or unknown.
    """
    checked_path(path)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a table with the columns audio and text, separated by tabs")
    try:
        (_, columns), *rows = read_rows(lines_of(path), str(path)) or [(1, [""])]
    except UserError as error:
        raise UserError(f"{error}; name a table in UTF-8 with the columns audio and text, separated by tabs") from error
    if missing := NEEDED - set(columns):
        raise UserError(
            f"{path}: the first line must name the columns, separated by tabs; missing: {', '.join(sorted(missing))}"
        )
    if wrong := [column for column, count in Counter(columns).items() if count > 1 or column not in KNOWN]:
        raise UserError(f"{path}: unknown or repeated columns {', '.join(wrong)}; known: {', '.join(sorted(KNOWN))}")
    found, faults = [], []
    for number, fields in rows:
        if fields != [""]:
            try:
                found.append(read_row(columns, fields, path.parent, f"line {number}", name))
            except UserError as error:
                faults.append(str(error))
    if faults:
        shown = faults[:MOST_FAULTS]
        if more := len(faults) - len(shown):
            shown.append(count_of(more, "more line has a fault", "more lines have faults"))
        raise UserError(f"{path}: {'; '.join(shown)}")
    warn_of_signs(path, [utterance.text for utterance in found])
    return found


def warn_of_signs(path: Path, texts: Sequence[str]) -> None:
    """Warn if `texts` of the table `path` have digits or signs, as the features leave such utterances out."""
    if strange := [text for text in texts if to_alphabet(text)[1]]:
        count = count_of(len(strange), f"of {len(texts)} transcripts has", f"of {len(texts)} transcripts have")
        log.warning(
            "%s: %s digits, signs or other letters, and will be left out, such as %r; spell them in a to z",
            *(path, count, strange[0][:80]),
        )


def read_row(columns: list[str], fields: list[str], folder: Path, where: str, domain: str) -> Utterance:
    """Return the utterance of one row of a table.

    Args:
        columns: Names of the columns.
        fields: Texts of the row.
        folder: Folder of the table.
        where: Place of the row, for errors.
        domain: Name of the dataset.

    Raises:
        UserError: A field, the transcript or sound is missing, or the audio can't be read, states no length or is cut
            off.
    """
    if len(fields) != len(columns):
        raise UserError(f"{where}: {count_of(len(fields), 'field')}, the first line names {len(columns)} columns")
    row = dict(zip(columns, fields, strict=True))
    audio = folder / row["audio"]
    if not row["text"].strip():
        raise UserError(f"{where}: no transcript")
    start = number_of(row.get("start") or "0", f"{where}: start")
    sound = sound_of(audio, where)
    left = (math.inf if sound.frames == UNKNOWN_FRAMES else sound.duration) - start
    seconds = number_of(row["seconds"], f"{where}: seconds") if row.get("seconds") else left
    if not seconds:
        raise UserError(f"{where}: has no sound")
    if seconds == math.inf:
        raise UserError(
            f"{where}: {audio} does not state its length, as if written to a pipe; convert it to WAV, or add a column "
            "`seconds`"
        )
    if start and left <= 0:
        raise UserError(f"{where}: starts at {start:g} s, but {audio} has {left + start:.2f} s")
    if not row.get("seconds") and (sizes := sizes_of_cut_off(sound.extra_info)):
        announced, present = sizes
        if (missing := sound.duration * (announced / present - 1)) > TOLERANCE_S:
            raise UserError(
                f"{where}: {audio} has {sound.duration:.2f} of the {sound.duration + missing:.2f} s that its header "
                "says, as if cut off; copy it again, or add a column `seconds`"
            )
    if seconds > left + TOLERANCE_S:
        raise UserError(f"{where}: ends {seconds - left:.2f} s after {audio} does")
    return Utterance(audio, row["text"].strip(), row.get("speaker") or UNNAMED, domain, seconds, start)


def sound_of(audio: Path, where: str) -> Any:
    """Return length, format and notes of an `audio` file, named at `where` in the table.

    Raises:
        UserError: It is not readable or not mono.
    """
    refuse_pipe(audio)
    try:
        found = soundfile.info(audio)
    except (soundfile.SoundFileError, OSError) as error:
        fault = "is no audio that can be read (WAV, FLAC, OGG, …)" if os.path.isfile(audio) else "does not exist"
        raise UserError(f"{where}: {audio} {fault}") from error
    if found.channels > 1:
        raise UserError(f"{where}: {audio} has {found.channels} channels; keep one of them: sox IN.wav OUT.wav remix 1")
    return found


def split_recordings(utterances: list[Utterance], shares: Sequence[float], folder: Path) -> dict[str, Any]:
    """Write the table of each split, `<folder>/<split>.tsv`.

    Args:
        utterances: All utterances, at least one.
        shares: Shares of train, dev and test; they sum to 1.
        folder: Folder of the tables.

    Returns:
        The values that the template of recordings needs.

    Raises:
        UserError: There are too few speakers and transcripts, or files of several sampling rates.
    """
    speakers = {comparison_key(utterance.speaker) for utterance in utterances}
    by_speaker = len(speakers) >= len(SPLITS)
    by_key: dict[str, list[Utterance]] = defaultdict(list)
    for utterance in utterances:
        by_key[comparison_key(utterance.speaker if by_speaker else spelling(utterance.text))].append(utterance)
    weights = {key: sum(utterance.seconds for utterance in of_key) for key, of_key in by_key.items()}
    chosen = by_weight(weights, shares, "speakers") if by_speaker else by_split(by_key, shares, "transcripts")
    warn_of_shares(chosen, weights, shares)
    counts = []
    for split, keys in chosen.items():
        counts.append(sum(len(by_key[key]) for key in keys))
        with new_file(folder / f"{split}.tsv") as new:
            write_manifest(new, [utterance for key in keys for utterance in by_key[key]])
    rate, seconds = common_rate(utterances), sum(utterance.seconds for utterance in utterances)
    lengths = [len(to_alphabet(utterance.text)[0]) for utterance in utterances]  # "Mr" is spelt out
    return {
        "disjoint": str(by_speaker).lower(),
        "sample_rate": rate,
        "high_hz": min(HIGHEST_HZ, int(rate / 2 * BELOW_HALF_THE_RATE)),
        "max_seconds": math.ceil(max(utterance.seconds for utterance in utterances)) + 1,
        "max_characters": max(lengths) + 1,
        "size": flow(
            utterances=counts,
            seconds=round(seconds / len(utterances), 2),
            characters=max(1.0, round(fmean(lengths), 1)),
            raw_bytes=round(seconds * rate * BYTES_A_SAMPLE),
        ),
    }


def spelling(transcript: str) -> str:
    """Return what training reads of a `transcript`, then its digits and signs, which make it unusable."""
    return "".join(to_alphabet(transcript))


def warn_of_shares(chosen: dict[str, list[str]], weights: dict[str, float], shares: Sequence[float]) -> None:
    """Warn if the splits' shares of the audio (`weights` in seconds) of `chosen` keys differ from `shares`."""
    total = sum(weights.values())
    found = [sum(weights[key] for key in keys) / total for keys in chosen.values()]
    if max(abs(actual - share) for actual, share in zip(found, shares, strict=True)) > LARGEST_DIFFERENCE:
        log.warning(
            "train, dev and test have %s %% of the audio, because no speaker or transcript is in two of them",
            "/".join(f"{100 * actual:.0f}" for actual in found),
        )


def common_rate(utterances: list[Utterance]) -> int:
    """Return the sampling rate of all files in Hz.

    Raises:
        UserError: It differs between files.
    """
    by_file = {audio: soundfile.info(audio).samplerate for audio in {utterance.audio for utterance in utterances}}
    rates = Counter(by_file.values())
    if len(rates) > 1:
        found = ", ".join(f"{count} of {rate} Hz" for rate, count in rates.most_common())
        rarest = min(audio for audio, rate in by_file.items() if rate == rates.most_common()[-1][0])
        raise UserError(
            f"recordings have several sampling rates ({found}, such as {rarest}); convert them to one, e.g. with sox -r"
        )
    return next(iter(rates))
