"""The command `record`: write records of finished runs, to be committed, and a table over seeds.

Records are small files; the tables are made from them.
"""

import csv
import logging
import shlex
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pipeline.analysis.run_folders import is_outdated
from pipeline.analysis.training_curves import loss_curve
from pipeline.config import RunSpec
from pipeline.config.training import differing_settings
from pipeline.core.command_line import Argument
from pipeline.core.digests import sha256_json
from pipeline.core.disk import require_writable
from pipeline.core.errors import UserError, count_of
from pipeline.core.layout import COST_FILE, DONE_FILE, PROGRESS_FILE
from pipeline.core.records.outputs import Decoded, MetricValue, ScoreFile
from pipeline.core.records.record import Record
from pipeline.core.records.training import TrainedRun, TrainingCost
from pipeline.metrics import metric_named
from pipeline.papers.comparability import MACHINE_SETTINGS
from pipeline.papers.config_file import parse_settings
from pipeline.papers.project import Settings
from pipeline.report.markup import grid, readable, write_report
from reprise.find_runs import find_run
from reprise.user_files import filling

log = logging.getLogger(__name__)
USUAL = ("bleu_paper", "sacrebleu", "f1", "f1_aligned", "wer", "cer", "perplexity")
"""Metrics of a table by default."""
MEASURES = ("scores", "perplexities", "phenomena")


class RunRecord(Record):
    """One seed of one system: settings, outcome, cost and scores, without weights, texts, or the machine's names."""

    remedy: ClassVar[str] = "record the run again: `reprise record RUN --into FOLDER`"

    run: RunSpec
    trained: TrainedRun
    cost: TrainingCost | None
    late_gain: float | None = Field(
        description="Share by which the lowest dev loss fell in the last fifth; null: unknown"
    )
    scores: dict[str, ScoreFile] = Field(description="By measure/decoding/split")
    decodings: dict[str, dict[str, Any]] = Field(
        default={}, description="Settings behind scored outputs, by decoding/split; of older records none"
    )

    @classmethod
    def of(cls, folder: Path, run: RunSpec) -> "RunRecord":
        """Return the record of a run, without names and folders of the machine.

        Raises:
            UserError: The run is not finished or not scored, or a score belongs to an earlier training.
        """
        trained, cost = TrainedRun.read(folder / DONE_FILE), TrainingCost.read_if_there(folder / COST_FILE)
        if not (scores := dict(read_scores(folder, trained.weights_digest))):
            raise UserError(f"{folder}: not scored yet; run `snakemake` for a table that reads it")
        provenance = {key: value for key, value in trained.provenance.items() if key != "node"}
        starts = tuple(start.model_copy(update={"node": ""}) for start in cost.starts) if cost else ()
        gain = loss_curve(folder).late_gain if (folder / PROGRESS_FILE).exists() else 1.0
        return cls(
            run=run.map_folders(portable_path),
            trained=trained.model_copy(update={"provenance": provenance}),
            cost=cost and cost.model_copy(update={"starts": starts}),
            late_gain=gain if gain < 1 else None,
            scores=scores,
            decodings=dict(read_decodings(folder, scores)),
        )

    @property
    def system(self) -> tuple[str, str, str, str]:
        """Return name, dataset, scale and digest of the settings, which all seeds of a system share."""
        content = self.run.content() | {"seed": 0, "data": self.run.corpus}
        content["training"] = {key: value for key, value in content["training"].items() if key not in MACHINE_SETTINGS}
        return f"{self.run.paper}/{self.run.system}", self.run.dataset, self.run.scale, sha256_json(content)

    @property
    def names(self) -> tuple[str, str, str, str]:
        """Return the names of paper, system, dataset and scale."""
        return self.run.paper, self.run.system, self.run.dataset, self.run.scale

    def path_in(self, folder: Path) -> Path:
        """Return the file of the record in a folder.

        Its name joins names by hyphens. As these may contain hyphens, another run may have that file; then by dots.
        """
        hyphens, dots = (folder / f"{joint.join(self.names)}-seed{self.run.seed}.json" for joint in "-.")
        if dots.exists():
            return dots
        there = RunRecord.read_if_there(hyphens)
        return hyphens if there is None or there.names == self.names else dots

    def store(self, folder: Path) -> Path:
        """Return the file of the record, written into a folder and merged with its scores there.

        Raises:
            UserError: The folder has another training of this name and seed.
        """
        path, scores, decodings = self.path_in(folder), self.scores, self.decodings
        if there := RunRecord.read_if_there(path):
            if there.trained.weights_digest != self.trained.weights_digest:
                weights = there.trained.weights_digest[:12]
                raise UserError(f"{path}: belongs to another training (weights {weights}); remove it first")
            scores, decodings = there.scores | scores, there.decodings | decodings
        self.model_copy(update={"scores": scores, "decodings": decodings}).write(path)
        return path


def read_scores(folder: Path, weights: str) -> Iterator[tuple[str, ScoreFile]]:
    """Read every score file of a run, but none of an output that was decoded again since.

    Args:
        folder: Folder of the run.
        weights: Digest of its final weights.

    Yields:
        measure/decoding/split and the score file, with input paths relative to the work folder.

    Raises:
        UserError: A score belongs to other weights.
    """
    for path in sorted(path for measure in MEASURES for path in folder.glob(f"{measure}/*/*.json")):
        score = ScoreFile.read(path)
        score.require_training(weights, path)
        if is_outdated(path, score):
            log.warning("%s: is left out, as its output was decoded again since; `snakemake` scores the new one", path)
            continue
        inputs = {portable_path(name): digest for name, digest in score.inputs.items()}
        yield str(path.relative_to(folder).with_suffix("")), score.model_copy(update={"inputs": inputs})


def read_decodings(folder: Path, scores: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield decoding/split and settings of each output in the `folder` of a run that `scores` were counted on.

    Others are left out, because the record may keep a score of an earlier output, with its settings.
    """
    scored = {output for measure, output in (name.split("/", 1) for name in scores) if measure != "perplexities"}
    for path in sorted(path for kind in ("translations", "transcripts") for path in folder.glob(f"{kind}/*/*.json")):
        name = f"{path.parent.name}/{path.stem}"
        if name in scored and (record := Decoded.read_if_valid(path)):
            yield name, record.decoding


def portable_path(name: str) -> str:
    """Return a path from `corpora/` or `runs/` on; for any other file its name alone."""
    parts = Path(name).parts
    begins = [number for number, part in enumerate(parts) if part in ("corpora", "runs")]
    return "/".join(parts[begins[-1] :]) if begins else Path(name).name


def read_records(folder: Path) -> list[RunRecord]:
    """Return all records of a folder, by system and seed.

    Raises:
        UserError: There are none, or a file has a fault.
    """
    if not (paths := sorted(folder.glob("*-seed*.json"))):
        raise UserError(f"{folder}: has no records; run `reprise record RUN --into {shlex.quote(str(folder))}`")
    return sorted(map(RunRecord.read, paths), key=lambda record: (*record.system, record.run.seed))


def table_rows(records: Iterable[RunRecord], metrics: list[str]) -> list[dict[str, str]]:
    """Return one row per system: means of `metrics` (default: `USUAL`) over its seeds, with standard deviations.

    Raises:
        UserError: Seeds were scored on different references or in different ways, or nothing has a metric.
    """
    by_system = defaultdict(list)
    for record in records:
        by_system[record.system].append(record)
    every = {metric for seeds in by_system.values() for _, metric in score_columns(seeds, metrics)}
    if missing := set(metrics) - every:
        raise UserError(f"no record has the metric {', '.join(sorted(missing))}")
    rows = [system_row(seeds, metrics) for seeds in by_system.values()]
    columns = dict.fromkeys(name for row in rows for name in row)
    last = ("hours", "commit")
    ordered = [*(name for name in columns if name not in last), *last]
    return [{name: row.get(name, "") for name in ordered} for row in rows]


def system_row(seeds: list[RunRecord], metrics: list[str]) -> dict[str, str]:
    """Return the row of one system, of its records `seeds` (see `table_rows`).

    Raises:
        UserError: Seeds were decoded or scored in different ways, or on different references.
    """
    name, dataset, scale, _ = seeds[0].system
    gains = [record.late_gain for record in seeds if record.late_gain is not None]
    row = {
        "system": name,
        "dataset": dataset,
        "scale": scale,
        "seeds": joined(record.run.seed for record in seeds),
        "steps": joined(record.trained.steps for record in seeds),
        "dev loss": mean_and_deviation([record.trained.dev.nll_per_token for record in seeds], 3),
        "fell in last fifth": f"{100 * fmean(gains):.1f} %" if gains else "",
    }
    for score, metric in dict.fromkeys(score_columns(seeds, metrics)):
        files = [seed.scores[score] for seed in seeds if score in seed.scores and metric in seed.scores[score].metrics]
        if len({file.basis(metric) for file in files}) > 1:
            ways = f"seeds were scored on different references, or {metric} in different ways"
            raise UserError(f"{name}, {score}: {ways}")
        require_one_decoding(seeds, name, score)
        fewer = f", {len(files)} of {len(seeds)} seeds" if len(files) < len(seeds) else ""
        row[f"{metric} {score.partition('/')[2]}"] = format_scores([file.metrics[metric] for file in files]) + fewer
    hours = sum(record.cost.device_hours for record in seeds if record.cost)
    commits = joined(record.trained.provenance.get("commit", "") for record in seeds)
    return row | {"hours": readable(hours) if hours else "", "commit": commits}


def require_one_decoding(seeds: list[RunRecord], name: str, score: str) -> None:
    """Check that the outputs behind a score were decoded by the same settings with all seeds.

    Args:
        seeds: Records of the seeds.
        name: Name of the system.
        score: Measure, decoding and split.

    Raises:
        UserError: They were not.
    """
    measure, output = score.split("/", 1)
    made = [seed.decodings[output] for seed in seeds if output in seed.decodings and score in seed.scores]
    for other in made[1:] if measure != "perplexities" else ():
        if changed := differing_settings(made[0], other):
            raise UserError(
                f"{name}, {score}: seeds were decoded with different {', '.join(changed)}; decode them alike"
            )


def joined(values: Iterable[object]) -> str:
    """Join distinct values by spaces."""
    return " ".join(dict.fromkeys(map(str, values)))


def score_columns(seeds: list[RunRecord], metrics: list[str]) -> Iterator[tuple[str, str]]:
    """Yield measure/decoding/split and metric of the scores that a system has (see `table_rows`)."""
    for record in seeds:
        for name, score in record.scores.items():
            yield from ((name, metric) for metric in metrics or USUAL if metric in score.metrics)


def format_scores(found: list[MetricValue]) -> str:
    """Format the score of one seed with its interval over sentences, those of several as mean and deviation."""
    if len(found) == 1 and found[0].low is not None:
        return f"{found[0].value:.2f} ({found[0].low:.2f}–{found[0].high:.2f})"
    return mean_and_deviation([score.value for score in found], 2)


def mean_and_deviation(values: list[float], digits: int) -> str:
    """Return the mean of at least one of `values` to some `digits`, with the deviation of several finite ones."""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 and all(map(isfinite, values)) else ""
    return f"{fmean(values):.{digits}f}{deviation}"


def shown_metrics(table: Path, records: Iterable[RunRecord]) -> list[str]:
    """Choose the metrics of a table that is rewritten.

    Args:
        table: CSV of the table, which may exist.
        records: All records.

    Returns:
        The metrics that the table has, and the default ones of records that have none of these.
    """
    header: list[str] = []
    if table.exists():
        with open(table, encoding="utf-8", newline="") as lines:
            header = next(csv.reader(lines), [])
    shown = metrics_of(header)
    found = [{metric for score in record.scores.values() for metric in score.metrics} for record in records]
    there = [metric for metric in shown if any(metric in metrics for metrics in found)]
    further = [metric for metrics in found if not metrics & set(there) for metric in USUAL if metric in metrics]
    return list(dict.fromkeys([*there, *further]))


def metrics_of(columns: Iterable[str]) -> list[str]:
    """Return the metrics of a table with these columns."""
    return [name.partition(" ")[0] for name in columns if "/" in name]


def describe_signatures(records: list[RunRecord], metrics: Container[str]) -> list[str]:
    """Describe how each of `metrics` was computed, one line each."""
    found = (score.metrics.items() for record in records for score in record.scores.values())
    return sorted({f"{name}: `{value.signature}`" for scores in found for name, value in scores if name in metrics})


def describe_test_sets(records: list[RunRecord]) -> list[str]:
    """Describe the scored test sets of each dataset, one line each."""
    scores = ((record.run.dataset, name, score) for record in records for name, score in record.scores.items())
    return sorted(
        {f"{dataset}, {name}: {score.test_set}, {count_of(score.lines, 'line')}" for dataset, name, score in scores}
    )


NOTES = """\
Dev loss in nats per symbol. Scores of one seed have their 95 % interval over sentences; means of several have the
run-to-run standard deviation (±). Fewer than three seeds decide nothing. A system whose losses fell by 0.5 % or more on
average over the last fifth of its steps is not at its plateau."""


def record(
    runs: Annotated[tuple[str, ...], Argument(metavar="RUN")] = (),
    *,
    into: Annotated[Path, Argument(metavar="FOLDER")],
    metric: Annotated[tuple[str, ...], Argument(repeated=True)] = (),
    settings: Settings = (),
) -> None:
    """Keep the results of finished runs in a folder, with a table over seeds.

        reprise record weighted/C/multi30k-en-de attention/C1/multi30k-en-de --set scale=small --into measured/small
        reprise record --into measured/small --metric bleu_tok_lc         # rewrite the table only

    writes  <FOLDER>/<paper>-<system>-<dataset>-<scale>-seed<n>.json: settings, digests, commit, cost, losses and
                scores; no weights, no text, no name or folder of a machine. Seeds may be added one by one, from several
                machines
            <FOLDER>/table.csv and .md: one row per system, means over seeds and their standard deviations

    Commit the folder to keep it. A run that was trained elsewhere may come without its weights.

    Args:
        runs: Runs to record: paper/system/dataset/seed, or a run's folder.
        into: Folder of the records and the table.
        metric: Metric of the table. May be given several times; by default those of the existing table, else the
            usual ones.
        settings: Override a key of config.yaml. May be given several times.
    """
    for name in metric:
        metric_named(name)
    require_writable(into, "`--into`")
    for name in runs:
        found = find_run(name, parse_settings(settings), needs_weights=False)
        recorded = RunRecord.of(found.folder, found.spec)
        with filling(into):
            log.info("%s", recorded.store(into))
    records = read_records(into)
    rows = table_rows(records, [*metric] or shown_metrics(into / "table.csv", records))
    facts = [*describe_signatures(records, metrics_of(rows[0])), *describe_test_sets(records)]
    listed = "\n".join(f"- {fact}" for fact in facts)
    table = grid(list(rows[0]), [list(row.values()) for row in rows])
    with filling(into):
        write_report(into / "table.csv", rows, f"{table}\n\n{NOTES}\n\n{listed}\n")
    log.info("%s: %s of %s", into / "table.md", count_of(len(records), "run"), count_of(len(rows), "system"))
