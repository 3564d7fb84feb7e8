"""Jobs behind the reports of some papers, with forecast cost and progress."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipeline.cluster.state import newest_checkpoint
from pipeline.core import artifacts
from pipeline.core.artifacts import Artifact, Encoded, Prepared, RunArtifact, RunId, Spoken
from pipeline.core.layout import DONE_FILE
from pipeline.data.dataset import ReadAloudDataset, SpokenRecord, TextRecord, TreebankRecord, sources_of
from pipeline.data.sequence_store import FEATURES, FRAME_DTYPE, FRAMES_PER_SECOND
from pipeline.papers.project import Project
from pipeline.planning.corpus_size import Corpus
from pipeline.planning.data_files import fetched_files, is_extracted
from pipeline.planning.run_forecast import LONGER, MeasuredSpeed, RunForecast, forecast_run, forward_flops
from pipeline.workflow.file_checks import bytes_of
from pipeline.workflow.graph import Graph, datasets_in, runs_in

ALIGNED_UTTERANCES = 64  # utterances that the output `alignments` reads
# Sentence pairs per second on one core of a 2020s server (bench/prepare.py)
PREPARED_PER_SECOND = 6000
ENCODED_PER_SECOND = 11_000
CHARACTER_TEXT_PER_SECOND = 100_000
# Seconds of speech per second on one core (bench/features.py)
SPOKEN_PER_SECOND, FEATURES_PER_SECOND = 600, 340
PREPARED_BYTES = 1.9  # bytes of cleaned and tokenised text per byte of raw text
SUBWORD_BYTES, OFFSET_BYTES = 2, 8


@dataclass(frozen=True)
class Job:
    """A job with its forecast cost and progress.

    Attributes:
        kind: First column of the plan, e.g. train or translate.
        name: Its name in the plan.
        dataset: Dataset of its corpus or training.
        done: Fraction that is done.
        forecast: Forecast of a training.
        flops: FLOPs; 0 if it does not compute with a model.
        precision: Precision of its FLOPs.
        seconds: Time on the device that `calibrate` measured; None if unknown.
        averaged: Forecast of the training whose checkpoints it averages.
        data_bytes: Disk space of the data that it writes.
        run: Its run; None for jobs of corpora.
    """

    kind: str
    name: str
    dataset: str
    done: float
    forecast: RunForecast | None = None
    flops: float = 0.0
    precision: str = ""
    seconds: float | None = None
    averaged: RunForecast | None = None
    data_bytes: float = 0.0
    download_bytes: int = 0
    run: RunId | None = None

    @property
    def disk_bytes(self) -> float:
        """Return the disk space when the job is done."""
        kept = self.forecast.kept_bytes if self.forecast else 0
        return self.data_bytes + kept + (self.averaged.weight_bytes if self.averaged else 0)

    @property
    def peak_bytes(self) -> float:
        """Return the disk space of a training while it runs; 0 for other jobs."""
        return self.forecast.peak_bytes if self.forecast else 0.0

    @property
    def on_device(self) -> bool:
        """Return whether the job computes with a model."""
        return self.flops > 0


@dataclass
class Jobs:
    """The jobs of some papers.

    Attributes:
        calibration: Speed of this machine, if measured.
        corpora: Cache of corpus sizes by dataset.
        forecasts: Cache of forecasts by paper, system and dataset.
        to_fetch: Bytes to download by file; several datasets may need the same file.
    """

    project: Project
    papers: list[str]
    calibration: MeasuredSpeed | None
    corpora: dict[str, Corpus] = field(default_factory=dict)
    forecasts: dict[tuple[str, str, str], RunForecast] = field(default_factory=dict)
    to_fetch: dict[str, int] = field(default_factory=dict)

    @cached_property
    def all(self) -> list[Job]:
        """Return a job for each artifact of the papers, except those that take almost no time."""
        graph = Graph(self.project)
        needed = graph.closure(graph.readable(self.papers))
        found = [job for dataset in datasets_in(needed) for job in self.corpus_jobs(dataset)]
        by_run: dict[RunId, list[RunArtifact]] = {run: [] for run in runs_in(needed)}
        for artifact in needed:
            if isinstance(artifact, RunArtifact) and artifact.run in by_run:
                by_run[artifact.run].append(artifact)
        return found + [job for run, wanted in by_run.items() for job in self.run_jobs(run, wanted)]

    @property
    def disk_bytes(self) -> float:
        """Return the disk space when all is done: outputs of jobs, and downloads."""
        fetched = bytes_of(self.project.layout.downloads) if self.project.layout.downloads.exists() else 0
        return sum(job.disk_bytes for job in self.all) + fetched + sum(self.to_fetch.values())

    def corpus(self, dataset: str) -> Corpus:
        """Return the sizes of a dataset."""
        if dataset not in self.corpora:
            record = self.project.dataset_records[dataset]
            self.corpora[dataset] = Corpus.of(record, self.project.layout.corpus(dataset))
        return self.corpora[dataset]

    def corpus_jobs(self, name: str) -> Iterator[Job]:
        """Yield the jobs of a corpus: fetch or generate, prepare, encode."""
        record, folder = self.project.dataset_records[name], self.project.layout.corpus(name)
        pairs, threads = sum(self.corpus(name).pairs.values()), self.project.scale.resources["prepare"].threads
        raw = record.size.raw_bytes if record.size else 0
        extracted = is_extracted(folder)
        files = fetched_files(record, self.project.layout.downloads, self.project.config.mirror, verify=False)
        missing = {} if extracted else {file.name: file.to_fetch for file in files}
        self.to_fetch |= missing
        yield Job(
            "download" if sources_of(record) else "generate",
            name,
            name,
            float(extracted),
            data_bytes=0 if isinstance(record, ReadAloudDataset) else raw,
            download_bytes=sum(missing.values()),
        )
        prepared = float(self.exists(Prepared(name)))
        encoded = float(self.exists(Encoded(name)))
        seconds = self.corpus(name).src_subwords * pairs / FRAMES_PER_SECOND / threads  # of speech
        if isinstance(record, ReadAloudDataset):
            spoken = float(self.exists(Spoken(name)))
            yield Job("speak", name, name, spoken, seconds=seconds / SPOKEN_PER_SECOND, data_bytes=raw)
        match record:
            case SpokenRecord():
                encoding, working = "features", seconds / FEATURES_PER_SECOND
            case TextRecord():
                encoding, working = "encode", pairs / CHARACTER_TEXT_PER_SECOND
            case _:
                processes = 1 if isinstance(record, TreebankRecord) else threads
                working = pairs / PREPARED_PER_SECOND / processes
                yield Job("prepare", name, name, prepared, seconds=working, data_bytes=PREPARED_BYTES * raw)
                encoding, working = "encode", pairs / ENCODED_PER_SECOND / threads
        yield Job(encoding, name, name, encoded, seconds=working, data_bytes=self.encoded_bytes(name))

    def encoded_bytes(self, name: str) -> float:
        """Return the size of an encoded corpus."""
        corpus = self.corpus(name)
        src_bytes = FEATURES * FRAME_DTYPE.itemsize if corpus.kind == "speech" else SUBWORD_BYTES
        positions = src_bytes * corpus.src_subwords + SUBWORD_BYTES * corpus.tgt_subwords
        return sum(corpus.pairs.values()) * (positions + 2 * OFFSET_BYTES)

    def forecast(self, run: RunId) -> RunForecast:
        """Forecast a training. Seeds of a system share the forecast, because counting parameters builds the model."""
        key = (run.paper, run.system, run.dataset)
        if key not in self.forecasts:
            self.forecasts[key] = forecast_run(self.project.run_spec(run), self.corpus(run.dataset))
        return self.forecasts[key]

    def run_jobs(self, run: RunId, following: Iterable[RunArtifact]) -> Iterator[Job]:
        """Yield the training of a run and the jobs that follow."""
        forecast = self.forecast(run)
        yield Job(
            "train",
            run.folder,
            run.dataset,
            done_share(self.project.layout.run(run), forecast.steps),
            forecast=forecast,
            flops=forecast.flops,
            precision=forecast.spec.training.precision,
            seconds=self.calibration.training_seconds(forecast) if self.calibration else None,
            run=run,
        )
        for artifact in following:
            yield from self.following_jobs(artifact, forecast)

    def following_jobs(self, artifact: RunArtifact, forecast: RunForecast) -> Iterator[Job]:
        """Yield the job that makes an artifact after a training; scoring takes so little time that it has none."""
        run = artifact.run
        match artifact:
            case artifacts.Averaged(_, decoding):
                done = float(self.exists(artifact))
                yield Job("average", f"{run.folder} {decoding}", run.dataset, done, averaged=forecast)
            case artifacts.Translation(_, decoding, split) | artifacts.Parse(_, decoding, split):
                yield self.decoding_job("translate", artifact, forecast, run.dataset, split, f"{decoding} {split}")
            case artifacts.Transcript(_, decoding, split, scored_on):
                name = f"{decoding} {split}@{scored_on}"
                yield self.decoding_job("translate", artifact, forecast, scored_on, split, name)
            case artifacts.Tuned(_, decoding):
                yield self.decoding_job("tune", artifact, forecast, run.dataset, "dev", decoding)
            case artifacts.Score(_, "perplexities", decoding, split, scored_on):
                name = f"{decoding} {split}" + (f"@{scored_on}" if scored_on else "")
                yield self.decoding_job("perplexity", artifact, forecast, scored_on or run.dataset, split, name)
            case artifacts.AttentionMaps(_, decoding, split, choice):
                name = f"{decoding} {split}-{choice}"
                yield self.decoding_job("attention", artifact, forecast, run.dataset, split, name)
            case artifacts.Alignments(_, split):
                yield self.alignments_job(artifact, forecast, split)

    def decoding_job(
        self, kind: str, artifact: RunArtifact, forecast: RunForecast, dataset: str, split: str, name: str
    ) -> Job:
        """Return a job that reads one split of a dataset with a trained model.

        Args:
            kind: Kind of the job.
            artifact: Artifact that it makes.
            forecast: Forecast of the training.
            dataset: Dataset whose split is read.
            split: Name of the split.
            name: Decoding, then the split, as the plan shows them.
        """
        run, corpus = artifact.run, self.corpus(dataset)
        settings = self.project.decoding(run.paper, run.system, name.split()[0])
        hypotheses = settings.beam_size if kind in ("translate", "tune") else 1  # others make one pass over the split
        flops = forward_flops(forecast.spec, corpus, corpus.pairs_of(split), hypotheses, LONGER)
        if kind == "tune":
            share = min(1.0, settings.tuning_sentences / corpus.pairs_of(split))
            flops *= share * len(settings.lm_weights) * len(settings.word_bonuses)
        return self.computing_job(kind, artifact, forecast, f"{run.folder} {name}", flops)

    def alignments_job(self, artifact: RunArtifact, forecast: RunForecast, split: str) -> Job:
        """Return the job that runs over some utterances with each kept checkpoint."""
        training, dataset = forecast.spec.training, artifact.run.dataset
        passes = min(training.keep_checkpoints, -(-training.max_steps // training.checkpoint_every))
        flops = passes * forward_flops(forecast.spec, self.corpus(dataset), ALIGNED_UTTERANCES, 1, 1.0)
        name = f"{artifact.run.folder} alignments/{split}.json"
        return self.computing_job("attention", artifact, forecast, name, flops)

    def computing_job(self, kind: str, artifact: RunArtifact, forecast: RunForecast, name: str, flops: float) -> Job:
        """Return a job that computes forward `flops` with a trained model, shown as `name` in the plan."""
        return Job(
            kind,
            name,
            artifact.run.dataset,
            float(self.exists(artifact)),
            flops=flops,
            precision=forecast.spec.training.precision,
            seconds=self.calibration.decoding_seconds(forecast, flops) if self.calibration else None,
            run=artifact.run,
        )

    def exists(self, artifact: Artifact) -> bool:
        """Return whether an artifact exists."""
        return self.project.layout.path(artifact).exists()


def done_share(folder: Path, steps: int) -> float:
    """Return the fraction of a training of so many `steps` in `folder` that is done, by its newest checkpoint."""
    if (folder / DONE_FILE).exists():
        return 1.0
    return newest_checkpoint(folder) / steps
