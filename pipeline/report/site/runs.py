"""The page of a run: scores, curves, samples, decodings, settings, cost, provenance, and how to check a number."""

import math
import os
from collections.abc import Iterator
from typing import Any

from pipeline.analysis.training_curves import read_progress_lines
from pipeline.config import RunSpec
from pipeline.config.training import DecodingConfig
from pipeline.core.artifacts import Alignments, AttentionMaps, RunId, Score, Trained
from pipeline.core.errors import count_of
from pipeline.core.layout import COST_FILE, PROGRESS_FILE, RUN_FILE, SAMPLES_FILE
from pipeline.core.records.outputs import Decoded, ScoreFile
from pipeline.core.records.record import Record, read_lines_as
from pipeline.core.records.training import ProgressLine, SampleLine, ValidationLine
from pipeline.report.labels import run_title
from pipeline.report.site.charts import HeatChart, LineChart, curves, heat, thinned
from pipeline.report.site.pages import Pages
from pipeline.report.site.site_data import DecodedArtifact, SiteData, decoded_outputs, run_page
from pipeline.workflow.targets import config_options

SECTIONS = ("model", "fusion", "training")
FOLLOWED = {
    "lr": "learning rate",
    "gradient_norm": "gradient norm",
    "tokens_per_s": "target tokens per second",
}
"""Fields of progress lines that have a chart of their own."""
USUAL = ("beam_size", "length_penalty")
"""Settings of a decoding that are shown even if they are defaults."""
SAMPLES = 3
"""Sentences of the development set that are shown over the training."""
MAPS = 2
"""Heads, and checkpoints, that are drawn."""


def write_run(pages: Pages, run: RunId, tables: dict[str, str]) -> None:
    """Write the page of a run."""
    site = pages.site
    folder = site.project.layout.run(run)
    events, scored = (folder / PROGRESS_FILE).exists(), scores(site, run)
    pages.page(
        run_page(run),
        "run.html",
        run=run,
        title=f"{run_title(site.project, run)}, seed {run.seed}",
        state=site.status(run),
        failure=site.failure(run),
        missing=missing(site, run),
        settings=settings(site, run),
        charts=[*(training_charts(site, run) if events else []), *maps(site, run)],
        samples=samples(site, run),
        decodings=decodings(site, run),
        scores=scored,
        several_sets=len({(record.test_set, score.decoding) for score, record, _ in scored}) > 1,
        trained=site.trained(run),
        cost=site.cost(run),
        files=[name for name in FILES if (folder / name).exists()],
        folder=os.path.normpath(folder),
        options=config_options(site.project),
        tables=tables,
        shown=site.is_shown(run.dataset),
        dataset=site.project.dataset_records[run.dataset],
    )


FILES = (RUN_FILE, "done.json", COST_FILE, PROGRESS_FILE, SAMPLES_FILE, "model.safetensors", "logs")


def missing(site: SiteData, run: RunId) -> list[str]:
    """Return the targets that make what a run lacks: its training or, once it is trained, its scores."""
    scores = (artifact for artifact in site.artifacts if isinstance(artifact, Score) and artifact.run == run)
    wanted = scores if site.trained(run) else [Trained(run)]
    target = site.project.layout.target
    return list(dict.fromkeys(str(target(artifact)) for artifact in wanted if not site.is_there(artifact)))


def settings(site: SiteData, run: RunId) -> list[dict[str, str]]:
    """Return each setting here, in the paper, and of the system that this one's lineage begins with."""
    outermost = next(iter(site.project.lineage(run.paper, run.system)))
    owner, _, system = outermost.partition("/")
    base = RunId(owner, system, run.dataset, run.seed)
    columns = [flat(site.spec(run)), flat(site.spec(run, printed=True)), flat(site.spec(base))]
    keys = dict.fromkeys(key for column in columns for key in column)
    rows = [(key, *(column.get(key, "") for column in columns)) for key in keys]
    return [{"key": key, "here": here, "paper": theirs, "base": base} for key, here, theirs, base in rows]


def flat(spec: RunSpec) -> dict[str, str]:
    """Return the settings that are set, by section and key."""
    dumped = spec.model_dump(mode="json")
    sections = {section: dumped[section] or {} for section in SECTIONS}
    return {
        f"{section}.{key}": str(value).lower() if isinstance(value, bool) else str(value)
        for section, keys in sections.items()
        for key, value in keys.items()
        if value is not None
    }


def training_charts(site: SiteData, run: RunId) -> Iterator[LineChart]:
    """Draw losses and other quantities over a training."""
    folder = site.project.layout.run(run)
    lines = read_progress_lines(folder, Record)
    progress = [line for line in lines if isinstance(line, ProgressLine)]
    validations = [line for line in lines if isinstance(line, ValidationLine)]
    losses = thinned(
        [{"x": line.step, "y": number(line.nll_per_token), "series": "training, with dropout"} for line in progress]
    )
    losses += [
        {"x": validation.step, "y": validation.fit.nll_per_token, "series": "training data"}
        for validation in validations
        if validation.fit
    ]
    losses += [
        {"x": validation.step, "y": validation.dev.nll_per_token, "series": "development"} for validation in validations
    ]
    if losses:
        yield curves(losses, "nats per symbol", "Loss")
    for key, name in FOLLOWED.items() if progress else ():
        rows = thinned([{"x": line.step, "y": number(getattr(line, key)), "series": name} for line in progress])
        yield curves(rows, "", name.capitalize())


def number(value: float | None) -> float:
    """Return a `value` to draw; NaN, which interrupts a line, if all steps were skipped."""
    return math.nan if value is None else value


def maps(site: SiteData, run: RunId) -> Iterator[HeatChart]:
    """Draw attention of single heads, and that of a recogniser at its first and last kept checkpoint, if shown."""
    if not site.is_shown(run.dataset):
        return
    for artifact in site.existing(AttentionMaps, run):
        record = site.folders(run.paper).attention_map(artifact)
        for head, weights in list(zip(record.heads, record.weights, strict=True))[:MAPS]:
            title = f"Attention, layer {record.layer} of {record.layers}, head {head + 1}: {artifact.choice}"
            yield heat(["attended word", *record.tokens], ["attending word", *record.tokens], weights, title)
    for alignments in site.existing(Alignments, run):
        found = site.folders(run.paper).alignment_maps(alignments)
        for place in dict.fromkeys((0, len(found.steps) - 1)):
            weights = found.maps[place]
            positions = map(str, range(1, len(weights[0]) + 1))
            title = f"Alignment after {count_of(found.steps[place], 'step')}"
            characters = ["character", *found.text.ljust(len(weights))]
            yield heat(["encoder position", *positions], characters, weights, title)


def samples(site: SiteData, run: RunId) -> list[tuple[SampleLine, list[SampleLine]]]:
    """Return the first sentences that were followed, each with its hypotheses over the training."""
    path = site.project.layout.run(run) / SAMPLES_FILE
    if not path.exists() or not site.is_shown(run.dataset):
        return []
    by_source: dict[str, list[SampleLine]] = {}
    for line in read_lines_as(SampleLine, path):
        by_source.setdefault(line.source + line.reference, []).append(line)
    return [(lines[0], lines) for lines in list(by_source.values())[:SAMPLES]]


def decodings(site: SiteData, run: RunId) -> list[tuple[DecodedArtifact, Decoded, str]]:
    """Return the decoded outputs with their records and settings."""
    made = decoded_outputs(site, run)
    found = ((artifact, Decoded.read_if_valid(site.path(artifact).with_suffix(".json"))) for artifact in made)
    return [(artifact, record, decoding_in_words(record.decoding)) for artifact, record in found if record]


def decoding_in_words(decoding: dict[str, Any]) -> str:
    """Return beam, length penalty, and the settings of a decoding that are not defaults, in words."""
    usual = DecodingConfig().model_dump(mode="json")
    shown = {key: value for key, value in decoding.items() if key in USUAL or value != usual.get(key)}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in sorted(shown.items()))


def scores(site: SiteData, run: RunId) -> list[tuple[Score, ScoreFile, str]]:
    """Return each score that reports need, with the target that rebuilds it."""
    target = site.project.layout.target
    return [(score, ScoreFile.read(site.path(score)), str(target(score))) for score in site.existing(Score, run)]
