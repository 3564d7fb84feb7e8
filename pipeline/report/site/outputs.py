"""Pages of outputs: each system's text for a test set, with scores, charts and recordings."""

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.data.dataset import CorpusRecord, SplitName, TokenisedRecord
from pipeline.data.speech.manifest import manifest_path, read_manifest
from pipeline.data.text.text_files import read_lines
from pipeline.metrics import read_statistics
from pipeline.report.labels import metric_title
from pipeline.report.site.charts import LineChart, Row, by_group
from pipeline.report.site.output_set import OutputSet
from pipeline.report.site.pages import Pages
from pipeline.report.site.site_data import file_name

MOST_SECONDS = 200.0
"""Recordings of a test set: about 5 MB."""
BUCKETS = 6
COUNTED = 200_000
"""Training sentences in which words are counted."""
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)


def write_outputs(pages: Pages, of: OutputSet) -> None:
    """Write the page of a test set."""
    if shown := pages.site.is_shown(of.dataset):
        audio = recordings(pages, of.dataset, of.split, of.shown) if of.record.form == "speech" else {}
        pages.script(of.stem, "outputs", data(of, audio))
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
        data=of.stem,
    )


def data(of: OutputSet, audio: dict[int, str]) -> dict[str, Any]:
    """Return the data of the page's script; scores of a sentence are in the order of the systems."""
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
    """Write the recordings of utterances `lines`, up to `MOST_SECONDS`, and return their files by number."""
    import soundfile

    from pipeline.data.speech.audio import flac

    manifest = manifest_path(pages.site.project.layout.corpus(dataset), split)
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
        found[number] = name = f"audio/{file_name(dataset)}-{split}-{number + 1}.flac"
        pages.write(name, flac(samples, rate))
    return found


def by_length(of: OutputSet) -> LineChart:
    """Draw the score of sentences of similar length, computed as one set."""
    words = np.array([len(line.split()) for line in of.words_to_count])
    edges = np.unique(np.quantile(words, np.linspace(0, 1, BUCKETS + 1)).astype(int))
    lows = edges[:-1] if len(edges) > 1 else edges
    found = {output.name: read_statistics(output.scores, of.metric.name) for output in of.outputs}
    rows: list[Row] = []
    for low, high in zip(lows, [*(lows[1:] - 1), edges[-1]], strict=True):
        chosen = (words >= low) & (words <= high)
        for name, statistics in found.items() if chosen.any() else ():
            value = float(of.metric.total(statistics[chosen].sum(axis=0)))
            if np.isfinite(value):
                group, count = f"{low}–{high}" if low < high else str(low), int(chosen.sum())
                rows.append({"group": group, "y": round(value, 2), "series": name, "of": count})
    title = metric_title(of.metric.name)
    return by_group(rows, title, f"{title} by length", "words of the sentence")


def by_frequency(of: OutputSet) -> Iterator[LineChart]:
    """Draw the share of right words by their frequency in the training text."""
    record = of.record
    if not isinstance(record, CorpusRecord) or not isinstance(record, TokenisedRecord):
        return
    training = of.folder / f"prepared/train.tok.{record.tgt}"
    if not training.exists():  # `free` removes it
        return
    counts, counted = training_counts(training)
    references = read_lines(of.folder / f"prepared/{of.split}.tok.{record.references(of.split)[0]}")
    rows: list[Row] = []
    for output in of.outputs:
        for bucket, (value, words) in word_accuracy(counts, references, output.tokenised).items():
            found = {"group": bucket_name(bucket), "y": round(value, 1), "of": words, "order": bucket}
            rows.append(found | {"series": output.name})
    rows.sort(key=lambda row: row["order"])
    yield by_group(rows, "F1 of words, %", "Words that are right, by frequency", f"times in the {counted}")


def training_counts(path: Path) -> tuple[Counter[str], str]:
    """Count the words of the training text, or of its first `COUNTED` lines, and name what was counted."""
    counts: Counter[str] = Counter()
    with open(path, encoding="utf-8") as lines:
        for line in islice(lines, COUNTED):
            counts.update(line.split())
        part = f"first {COUNTED:,} lines of the " if next(lines, "") else ""
    return counts, f"{part}training text"


def word_accuracy(
    counts: Counter[str], references: Sequence[str], outputs: Sequence[str]
) -> dict[int, tuple[float, int]]:
    """Return F1 in percent of words by bucket of their `counts` in training, and their number in `references`.

    The `outputs` have the order of the references.
    """
    right, wanted, written = Counter[int](), Counter[int](), Counter[int]()
    for reference, output in zip(references, outputs, strict=True):
        ours, theirs = Counter(output.split()), Counter(reference.split())
        for found, total in ((ours & theirs, right), (theirs, wanted), (ours, written)):
            for word, times in found.items():
                total[bucket_of(counts[word])] += times
    return {
        bucket: (200 * right[bucket] / (wanted[bucket] + written[bucket]), wanted[bucket]) for bucket in sorted(wanted)
    }


def bucket_of(count: int) -> int:
    """Return the bucket of a frequency."""
    return bisect(FREQUENCIES, count) - 1


def bucket_name(bucket: int) -> str:
    """Return the frequencies of a bucket as a range."""
    low, *higher = FREQUENCIES[bucket:]
    high = higher[0] - 1 if higher else None
    return f"{low}+" if high is None else str(low) if low == high else f"{low}–{high}"
