"""The jobs behind the tables, claims and figures of some papers, each with its forecast cost and whether it is done."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipeline.data.dataset import ReadAloudDataset, SpokenRecord, TextRecord
from pipeline.data.frame_store import FEATURES, FRAMES_A_SECOND, STORED
from pipeline.experiment.project import Project
from pipeline.planning.corpus_size import Corpus
from pipeline.planning.data_files import fetched_files, is_extracted, sources_of
from pipeline.planning.needs import datasets_of, run_files
from pipeline.planning.rates import Calibration
from pipeline.planning.run_forecast import BYTES, RunForecast, decoding_flops, forecast_run, forward_flops
from pipeline.products import RunId

# Measured by bench/prepare.py, of one core of a 2020s server: pairs a second.
PREPARED_A_SECOND = 6000
MEASURED = 64  # utterances that the stage alignments looks at
ENCODED_A_SECOND = 11_000
SPELT_A_SECOND = 100_000
# Measured by bench/features.py, of one core too: seconds of speech a second.
SPOKEN_A_SECOND, HEARD_A_SECOND = 600, 340
PREPARED_BYTES = 1.9  # cleaned and tokenised text, over raw text
SUBWORD_BYTES, OFFSET_BYTES = 2, 8


@dataclass(frozen=True)
class Job:
    """One job. `seconds` of the device that `calibrate` ran on; None where it was not run.

    Attributes:
        done: share of it that is done already.
        peak_bytes: on disk while it runs; disk_bytes: when it is done.
    """

    kind: str
    name: str
    dataset: str
    done: float
    forecast: RunForecast | None = None
    flops: float = 0.0
    seconds: float | None = None
    disk_bytes: float = 0.0
    peak_bytes: float = 0.0
    download_bytes: int = 0
    run: RunId | None = None

    @property
    def on_device(self) -> bool:
        """Whether the job computes with a model."""
        return self.flops > 0


@dataclass
class Jobs:
    """Finds the jobs of `papers`."""

    project: Project
    papers: list[str]
    calibration: Calibration | None
    corpora: dict[str, Corpus] = field(default_factory=dict)
    to_fetch: dict[str, int] = field(default_factory=dict)
    """Bytes to download by file: several datasets may need the same."""

    @cached_property
    def all(self) -> list[Job]:
        runs = run_files(self.project, self.papers)
        found = [job for dataset in datasets_of(runs) for job in self.corpus_jobs(dataset)]
        return found + [job for run, files in runs.items() for job in self.run_jobs(run, files)]

    @property
    def work(self) -> Path:
        return Path(self.project.config.work)

    def corpus(self, dataset: str) -> Corpus:
        if dataset not in self.corpora:
            record = self.project.dataset_records[dataset]
            self.corpora[dataset] = Corpus.of(record, self.work / f"corpora/{dataset}")
        return self.corpora[dataset]

    def corpus_jobs(self, name: str) -> Iterator[Job]:
        """Fetching or writing, preparing, encoding."""
        record, folder = self.project.dataset_records[name], self.work / f"corpora/{name}"
        pairs, threads = sum(self.corpus(name).pairs.values()), self.project.scale.resources["prepare"].threads
        raw = record.size.raw_bytes if record.size else 0
        extracted = is_extracted(folder)
        files = fetched_files(record, self.work / "downloads", self.project.config.mirror, verify=False)
        missing = {} if extracted else {file.name: file.to_fetch for file in files}
        self.to_fetch |= missing
        yield Job(
            "download" if sources_of(record) else "generate",
            name,
            name,
            float(extracted),
            disk_bytes=0 if isinstance(record, ReadAloudDataset) else raw,
            download_bytes=sum(missing.values()),
        )
        prepared = float((folder / "prepared/report.json").exists())
        encoded = float((folder / "encoded/corpus.json").exists())
        encoding = {"done": encoded, "disk_bytes": self.encoded_bytes(name)}
        seconds = self.corpus(name).src_subwords * pairs / FRAMES_A_SECOND / threads  # of speech
        match record:
            case SpokenRecord():
                if isinstance(record, ReadAloudDataset):
                    spoken = float((folder / "spoken.json").exists())
                    yield Job("speak", name, name, spoken, seconds=seconds / SPOKEN_A_SECOND, disk_bytes=raw)
                yield Job("features", name, name, seconds=seconds / HEARD_A_SECOND, **encoding)
            case TextRecord():
                yield Job("encode", name, name, seconds=pairs / SPELT_A_SECOND, **encoding)
            case _:
                working = pairs / PREPARED_A_SECOND / threads
                yield Job("prepare", name, name, prepared, seconds=working, disk_bytes=PREPARED_BYTES * raw)
                yield Job("encode", name, name, seconds=pairs / ENCODED_A_SECOND / threads, **encoding)

    def encoded_bytes(self, name: str) -> float:
        corpus = self.corpus(name)
        src_bytes = FEATURES * STORED.itemsize if corpus.kind == "speech" else SUBWORD_BYTES
        positions = src_bytes * corpus.src_subwords + SUBWORD_BYTES * corpus.tgt_subwords
        return sum(corpus.pairs.values()) * (positions + 2 * OFFSET_BYTES)

    def run_jobs(self, run: RunId, files: set[str]) -> Iterator[Job]:
        """The training of a run, and all that is then made of it."""
        corpus = self.corpus(run.dataset)
        forecast = forecast_run(self.project.run_spec(run), corpus)
        folder = self.work / self.project.config.scale / "runs" / run.folder
        yield Job(
            "train",
            run.folder,
            run.dataset,
            done_share(folder, forecast.steps),
            forecast=forecast,
            flops=forecast.flops,
            seconds=self.calibration and self.calibration.training_seconds(forecast, corpus),
            disk_bytes=forecast.kept_bytes,
            peak_bytes=forecast.peak_bytes,
            run=run,
        )
        for decoding in sorted({parts[1] for file in files if len(parts := file.split("/")) == 3}):
            if self.project.decoding(run.paper, run.system, decoding).average_last > 1:
                path = folder / f"averaged/{decoding}.safetensors"
                weights = forecast.parameters * BYTES
                yield Job("average", f"{run.folder} {decoding}", run.dataset, float(path.exists()), disk_bytes=weights)
        # What takes no time beside translating.
        counted = {file for file in files if file.startswith("phenomena/") or file == "gates.json"}
        for file in sorted(files - {"trained.json"} - counted):
            yield self.measuring_job(run, forecast, folder, file)

    def measuring_job(self, run: RunId, forecast: RunForecast, folder: Path, file: str) -> Job:
        """What writes one score, perplexity or attention map; scoring itself takes no time beside translating."""
        if file.startswith("alignments/"):
            return self.alignments_job(run, forecast, folder, file)
        what, decoding, name = file.removesuffix(".json").split("/")
        shown, _, scored_on = name.partition("@")
        split, corpus = shown.split("-")[0], self.corpus(scored_on or run.dataset)
        settings = self.project.decoding(run.paper, run.system, decoding)
        if what != "scores":  # one pass over the split
            settings = settings.model_copy(update={"beam_size": 1})
        flops = decoding_flops(forecast.spec, corpus, split, settings)
        kind = {"scores": "translate", "perplexities": "perplexity", "attention": "attention"}[what]
        seconds = self.calibration and self.calibration.decoding_seconds(forecast, corpus, flops)
        return Job(
            kind,
            f"{run.folder} {decoding} {name}",
            run.dataset,
            float((folder / file).exists()),
            flops=flops,
            seconds=seconds,
            run=run,
        )

    def alignments_job(self, run: RunId, forecast: RunForecast, folder: Path, file: str) -> Job:
        """A pass over some utterances for each kept checkpoint."""
        training = forecast.spec.training
        passes = min(training.keep_checkpoints, -(-training.max_steps // training.checkpoint_every))
        flops = passes * forward_flops(forecast.spec, self.corpus(run.dataset), MEASURED, 1, 1.0)
        seconds = self.calibration and self.calibration.decoding_seconds(forecast, self.corpus(run.dataset), flops)
        done = float((folder / file).exists())
        return Job("attention", f"{run.folder} {file}", run.dataset, done, flops=flops, seconds=seconds, run=run)


def done_share(folder: Path, steps: int) -> float:
    """How much of a training is done: all of it, or up to the newest checkpoint."""
    if (folder / "trained.json").exists() or (folder / "done.json").exists():
        return 1.0
    found = (re.match(r"step-(\d+)\.", path.name) for path in (folder / "checkpoints").glob("step-*.safetensors"))
    return max((int(match[1]) for match in found if match), default=0) / steps
