"""The outputs browser: what every system wrote of a test set, with scores, by length and by frequency of words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from pipeline.core.artifacts import Parse, Score, Translation
from pipeline.core.errors import UserError
from pipeline.data.dataset import CorpusRecord, SplitName, TokenisedRecord
from pipeline.data.store.sequence_store import TokenStore
from pipeline.data.text.alphabet import Alphabet
from pipeline.data.text.checked_lines import name_of_split, read_lines
from pipeline.metrics import metric_named
from pipeline.metrics.metric import Metric
from pipeline.metrics.score_file import read_statistics
from pipeline.report.site.charts import Chart, Row, by_group
from pipeline.report.site.pages import Pages
from pipeline.report.site.present import Present, Written, run_page, system_name, written
from pipeline.report.site.recordings import recordings

METRICS = {"sentences": "sacrebleu", "trees": "f1", "speech": "wer"}
"""Of a sentence alone, by form of the dataset."""
MOST = 500
"""Sentences of a page: of a larger test set those on which systems differ most."""
BUCKETS = 6
COUNTED = 200_000
"""Training sentences in which words are counted."""
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)


@dataclass(frozen=True)
class Output:
    """What one system wrote, and the statistics of each sentence (N, F)."""

    name: str
    page: str
    lines: list[str]
    tokenised: list[str]
    statistics: np.ndarray


@dataclass(frozen=True)
class OutputSet:
    """Outputs of all systems for one split."""

    present: Present
    dataset: str
    split: SplitName

    @property
    def page(self) -> str:
        return f"outputs-{self.dataset}-{self.split}.html"

    @property
    def record(self):
        return self.present.project.dataset_records[self.dataset]

    @property
    def title(self) -> str:
        return name_of_split(self.record, self.split)

    @cached_property
    def metric(self) -> Metric[Any]:
        return metric_named(METRICS[self.record.form])

    @property
    def folder(self) -> Path:
        return self.present.project.layout.corpus(self.dataset)

    @cached_property
    def products(self) -> list[Written]:
        """Of the first seed, where text and score are there."""
        seed = self.present.project.config.seed_list[0]
        return [one for one in written(self.present) if one.run.seed == seed and self.has(one)]

    def has(self, product: Written) -> bool:
        dataset = getattr(product, "scored_on", product.run.dataset)
        return (dataset, product.split) == (self.dataset, self.split) and self.score(product) is not None

    def score(self, product: Written) -> Score | None:
        """The score file that its sentences' statistics lie beside."""
        elsewhere = getattr(product, "scored_on", None)
        found = Score(product.run, self.metric.reads.folder, product.decoding, product.split, elsewhere)
        return found if self.present.path(found).exists() else None

    @cached_property
    def sources(self) -> list[str]:
        match self.record.form:
            case "sentences":
                return read_lines(self.folder / f"prepared/{self.split}.{self.record.src}")
            case "trees":
                return read_lines(self.folder / f"prepared/{self.split}.tok.{self.record.src}")
        return [""] * len(self.references)

    @cached_property
    def references(self) -> list[str]:
        match self.record.form:
            case "sentences":
                return read_lines(self.folder / f"prepared/{self.split}.{self.record.references(self.split)[0]}")
            case "trees":
                return read_lines(self.folder / f"prepared/{self.split}.trees")
        store = TokenStore(self.folder / f"encoded/{self.split}.tgt")
        return Alphabet().decode([store[index] for index in range(len(store))])

    @cached_property
    def outputs(self) -> list[Output]:
        return [self.output(product) for product in self.products]

    def output(self, product: Written) -> Output:
        path, score = self.present.path(product), self.score(product)
        assert score is not None, "looked for when the products were"
        match product:
            case Translation():
                text = self.present.project.layout.text(product)
            case Parse():
                text = self.present.project.layout.trees(score)
            case _:
                text = path
        lines = read_lines(text)
        if len(lines) != len(self.references):
            raise UserError(f"{text}: {len(lines)} lines, but {self.title} has {len(self.references)}")
        statistics = read_statistics(self.present.path(score), self.metric.name)
        name = f"{system_name(product.run)} {product.decoding}"
        return Output(name, run_page(product.run), lines, read_lines(path), statistics)

    @cached_property
    def scores(self) -> np.ndarray:
        """(systems, N) of each sentence alone."""
        return np.array([self.metric.total(output.statistics) for output in self.outputs], dtype=float)

    @cached_property
    def shown(self) -> list[int]:
        """Sentences of the page, in their order."""
        spread = np.std(np.nan_to_num(self.scores), axis=0)
        return sorted(np.argsort(-spread, kind="stable")[:MOST].tolist())


def output_sets(present: Present) -> list[OutputSet]:
    """One for each split that something was written of."""
    keys = dict.fromkeys((getattr(one, "scored_on", one.run.dataset), one.split) for one in written(present))
    sets = (OutputSet(present, dataset, cast(SplitName, split)) for dataset, split in keys)
    return [one for one in sets if one.products]


def write_outputs(pages: Pages, of: OutputSet) -> None:
    charts = [by_length(of), *by_frequency(of)]
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
        better=of.metric.better,
        charts=charts,
        shown=shown,
        lines=len(of.references),
        data=f"{of.dataset}-{of.split}",
    )


def data(of: OutputSet, audio: dict[int, str]) -> dict[str, Any]:
    """What the page's script reads; scores of a sentence in the order of the systems."""
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
        "metric": of.metric.name,
    }


def by_length(of: OutputSet) -> Chart:
    """The metric of sentences of about a length, as one set."""
    words = np.array([len(line.split()) for line in (of.references if of.record.form == "speech" else of.sources)])
    edges = np.unique(np.quantile(words, np.linspace(0, 1, BUCKETS + 1)).astype(int))
    rows: list[Row] = []
    lows = edges[:-1] if len(edges) > 1 else edges
    for low, high in zip(lows, [*(lows[1:] - 1), edges[-1]], strict=True):
        chosen = (words >= low) & (words <= high)
        for output in of.outputs if chosen.any() else []:
            value = float(of.metric.total(output.statistics[chosen].sum(axis=0)))
            if np.isfinite(value):
                group, count = f"{low}–{high}" if low < high else str(low), int(chosen.sum())
                rows.append({"group": group, "y": round(value, 2), "series": output.name, "of": count})
    return by_group(rows, of.metric.name, f"{of.metric.name} by length", "words of the sentence")


def by_frequency(of: OutputSet) -> Iterator[Chart]:
    """How many words are right, by how often the training text has them."""
    record = of.record
    if not isinstance(record, CorpusRecord) or not isinstance(record, TokenisedRecord):
        return
    training = of.folder / f"prepared/train.tok.{record.tgt}"
    if not training.exists():  # `free` removes it
        return
    counts = training_counts(training)
    references = read_lines(of.folder / f"prepared/{of.split}.tok.{record.references(of.split)[0]}")
    rows: list[Row] = []
    for output in of.outputs:
        for bucket, (value, words) in word_accuracy(counts, references, output.tokenised).items():
            rows.append(
                {
                    "group": bucket_name(bucket),
                    "y": round(value, 1),
                    "series": output.name,
                    "of": words,
                    "order": bucket,
                }
            )
    rows.sort(key=lambda row: row["order"])
    yield by_group(rows, "F1 of words, %", "Words that are right, by frequency", "times in the training text")


def training_counts(path: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    with open(path, encoding="utf-8") as lines:
        for _, line in zip(range(COUNTED), lines, strict=False):
            counts.update(line.split())
    return counts


def word_accuracy(
    counts: Counter[str], references: Sequence[str], outputs: Sequence[str]
) -> dict[int, tuple[float, int]]:
    """F1, per cent, of words by bucket of frequency, and how many such words the references have."""
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
    return max(place for place, least in enumerate(FREQUENCIES) if count >= least)


def bucket_name(bucket: int) -> str:
    low, *higher = FREQUENCIES[bucket:]
    high = higher[0] - 1 if higher else None
    return f"{low}+" if high is None else str(low) if low == high else f"{low}–{high}"
