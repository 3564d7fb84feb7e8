"""Pages of outputs: each system's text for a test set, with scores, charts and recordings."""

import io
from typing import Any

import numpy as np

from pipeline.data.dataset import SplitName
from pipeline.data.speech.manifest import manifest_path, read_manifest
from pipeline.report.site.names import metric_title
from pipeline.report.site.output_charts import by_frequency, by_length
from pipeline.report.site.output_set import OutputSet
from pipeline.report.site.pages import Pages

MOST_SECONDS = 200.0
"""Recordings of a test set: about 5 MB."""


def write_outputs(pages: Pages, of: OutputSet) -> None:
    """Write the page of a test set."""
    if shown := pages.present.is_shown(of.dataset):
        audio = recordings(pages, of.dataset, of.split, of.shown) if of.record.form == "speech" else {}
        pages.script(f"{of.dataset}-{of.split}", "outputs", data(of, audio))
    pages.page(
        of.page,
        "outputs.html",
        title=f"Outputs: {of.title}",
        of=of,
        dataset=of.record,
        form=of.record.form,
        metric=f"{metric_title(of.metric.name)}, {of.metric.better} is better",
        charts=[by_length(of), *by_frequency(of)],
        shown=shown,
        lines=len(of.references),
        data=f"{of.dataset}-{of.split}",
    )


def data(of: OutputSet, audio: dict[int, str]) -> dict[str, Any]:
    """Return what the script of the page reads; scores of a sentence in the order of the systems."""
    systems = [{"name": output.name, "page": output.page} for output in of.outputs]
    rows = [
        {
            "line": line + 1,
            "source": of.sources[line],
            "reference": of.references[line],
            "outputs": [output.lines[line] for output in of.outputs],
            "scores": [None if np.isnan(score) else round(float(score), 1) for score in of.scores[:, line]],
            "audio": audio.get(line),
        }
        for line in of.shown
    ]
    return {
        "systems": systems,
        "rows": rows,
        "form": of.record.form,
        "better": of.metric.better,
        "metric": metric_title(of.metric.name),
    }


def recordings(pages: Pages, dataset: str, split: SplitName, lines: list[int]) -> dict[int, str]:
    """Write the recordings of some utterances; return the names of the files by the number of the utterance."""
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
    """Encode samples without loss: half the size, and the same bytes for the same samples."""
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="FLAC", subtype="PCM_16")
    return buffer.getvalue()
