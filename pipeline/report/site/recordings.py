"""Recordings of a test set, as files that a browser plays."""

import io

import numpy as np

from pipeline.data.dataset import SplitName
from pipeline.data.speech.manifest import manifest_path, read_manifest
from pipeline.report.site.pages import Pages

MOST_SECONDS = 200.0
"""Of a test set: about 5 MB."""


def recordings(pages: Pages, dataset: str, split: SplitName, lines: list[int]) -> dict[int, str]:
    """Names of files by the utterance's number, of the first of `lines`."""
    import soundfile

    manifest = manifest_path(pages.present.project.layout.corpus(dataset), split)
    kept, found, seconds = set(lines), {}, 0.0
    for number, utterance in enumerate(read_manifest(manifest)):
        if number not in kept or not utterance.audio.exists():
            continue
        if (seconds := seconds + utterance.seconds) > MOST_SECONDS:
            break
        rate = soundfile.info(utterance.audio).samplerate
        start = round(utterance.start * rate)
        samples, rate = soundfile.read(
            utterance.audio, start=start, frames=round(utterance.seconds * rate), dtype="int16"
        )
        found[number] = name = f"audio/{dataset}-{split}-{number + 1}.flac"
        pages.write(name, flac(samples, rate))
    return found


def flac(samples: np.ndarray, rate: int) -> bytes:
    """Lossless, half the size; the same bytes for the same samples."""
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()
