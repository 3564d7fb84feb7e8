"""A run's page: settings, curves, samples, decodings and scores, cost, where it came from, how to check a number."""

import os

from pipeline.analysis.training_curves import read_events
from pipeline.config import RunSpec
from pipeline.core.artifacts import Alignments, AttentionMaps, RunId, Score
from pipeline.core.errors import printable_lines
from pipeline.core.layout import COST_FILE, PROGRESS_FILE, RUN_FILE, SAMPLES_FILE
from pipeline.core.records.outputs import Decoded, ScoreFile
from pipeline.core.records.record import read_lines_as, read_note
from pipeline.core.records.training import ProgressLine, SampleLine, ValidationLine
from pipeline.papers.comparability import AsPrinted
from pipeline.report.site.charts import Chart, Row, curves, heat, thinned
from pipeline.report.site.pages import Pages
from pipeline.report.site.present import Present, Written, run_page, system_name, written
from pipeline.workflow.targets import options

SECTIONS = ("model", "fusion", "training")
FOLLOWED = {
    "lr": "learning rate",
    "gradient_norm": "gradient norm",
    "tokens_per_s": "target tokens a second",
}
"""Of every progress line, what has a chart of its own."""
SAMPLES = 3
"""Sentences of the development set that are shown over the training."""
MAPS = 2
"""Heads, and checkpoints, that are drawn."""


def write_run(pages: Pages, run: RunId, tables: dict[str, str]) -> None:
    """tables: pages of tables it stands in, by their names."""
    present = pages.present
    folder, folders = present.project.layout.run(run), present.folders(run.paper)
    events = (folder / PROGRESS_FILE).exists()
    pages.page(
        run_page(run),
        "run.html",
        run=run,
        title=f"{system_name(run)}, seed {run.seed}",
        description=present.project.system_entry(run.paper, run.system).description,
        state=present.status(run),
        failure=present.failure(run),
        settings=settings(present, run),
        charts=[*(training_charts(run_curves(present, run)) if events else []), *maps(present, run)],
        samples=samples(present, run),
        decodings=decodings(present, run),
        scores=scores(present, run),
        trained=folders.trained(run),
        cost=folders.cost(run),
        files=[str(path) for name in FILES if (path := folder / name).exists()],
        folder=os.path.normpath(folder),
        options=printable_lines(options(present.project)),  # a mirror's password may be among them
        tables=tables,
        shown=present.is_shown(run.dataset),
        dataset=present.project.dataset_records[run.dataset],
    )


FILES = (RUN_FILE, "done.json", COST_FILE, PROGRESS_FILE, SAMPLES_FILE, "model.safetensors", "logs")


def settings(present: Present, run: RunId) -> list[dict[str, str]]:
    """Each setting here, of the paper, and of the system that this one's lineage begins with."""
    project = present.project
    outermost = next(iter(project.lineage(run.paper, run.system)))
    owner, _, system = outermost.partition("/")
    base = RunId(owner, system, run.dataset, run.seed)
    printed = AsPrinted(project)
    columns = [flat(project.run_spec(run)), flat(printed.run_spec(run)), flat(project.run_spec(base))]
    keys = dict.fromkeys(key for column in columns for key in column)
    rows = [(key, *(column.get(key, "") for column in columns)) for key in keys]
    return [{"key": key, "here": here, "paper": theirs, "base": base} for key, here, theirs, base in rows]


def flat(spec: RunSpec) -> dict[str, str]:
    """Settings by section and key, those that are not set left out."""
    dumped = spec.model_dump(mode="json")
    sections = {section: dumped[section] or {} for section in SECTIONS}
    return {
        f"{section}.{key}": str(value)
        for section, keys in sections.items()
        for key, value in keys.items()
        if value is not None
    }


def run_curves(present: Present, run: RunId) -> dict[str, list[Row]]:
    """Points of what was followed over a training, by name."""
    folder = present.project.layout.run(run)
    progress, validations = read_events(folder, ProgressLine), read_events(folder, ValidationLine)
    losses = [{"x": one.step, "y": one.nll_per_token, "series": "training, with dropout"} for one in progress]
    losses = thinned(losses)
    losses += [{"x": one.step, "y": one.fit.nll_per_token, "series": "training data"} for one in validations if one.fit]
    losses += [{"x": one.step, "y": one.dev.nll_per_token, "series": "development"} for one in validations]
    found = {"loss": losses}
    for key, name in FOLLOWED.items():
        found[name] = thinned([{"x": one.step, "y": getattr(one, key), "series": name} for one in progress])
    return {name: rows for name, rows in found.items() if rows}


def training_charts(followed: dict[str, list[Row]]) -> list[Chart]:
    units = {"loss": "nats a symbol"}
    return [curves(rows, units.get(name, name), name.capitalize()) for name, rows in followed.items()]


def maps(present: Present, run: RunId) -> list[Chart]:
    """Attention of single heads, and of a recogniser at its first and last kept checkpoint."""
    drawn = []
    if not present.is_shown(run.dataset):
        return []
    for product in present.made(AttentionMaps, run):
        record = present.folders(run.paper).attention_map(product)
        words = [f"{number + 1} {token}" for number, token in enumerate(record.tokens)]
        for head, weights in list(zip(record.heads, record.weights, strict=True))[:MAPS]:
            title = f"Attention, layer {record.layer} of {record.layers}, head {head + 1}: {product.choice}"
            drawn.append(heat(cells(words, words, weights), "looked at", "from", title, (len(words), len(words))))
    for alignments in present.made(Alignments, run):
        found = present.folders(run.paper).alignment_maps(alignments)
        for place in dict.fromkeys((0, len(found.steps) - 1)):
            weights = found.maps[place]
            letters = [f"{number + 1} {letter}" for number, letter in enumerate(found.text.ljust(len(weights)))]
            positions = [str(number + 1) for number in range(len(weights[0]))]
            title = f"Alignment after {found.steps[place]} updates"
            drawn.append(
                heat(
                    cells(positions, letters, weights),
                    "encoder position",
                    "character",
                    title,
                    (len(positions), len(weights)),
                )
            )
    return drawn


def cells(columns: list[str], rows: list[str], weights: list[list[float]]) -> list[Row]:
    return [
        {"x": column, "y": row, "weight": round(weight, 4)}
        for row, line in zip(rows, weights, strict=False)
        for column, weight in zip(columns, line, strict=True)
    ]


def samples(present: Present, run: RunId) -> list[tuple[SampleLine, list[SampleLine]]]:
    """The first sentences that are followed, each with what was written of it as the training went on."""
    path = present.project.layout.run(run) / SAMPLES_FILE
    if not path.exists() or not present.is_shown(run.dataset):
        return []
    by_source: dict[str, list[SampleLine]] = {}
    for line in read_lines_as(SampleLine, path):
        by_source.setdefault(line.source + line.reference, []).append(line)
    return [(lines[0], lines) for lines in list(by_source.values())[:SAMPLES]]


def decodings(present: Present, run: RunId) -> list[tuple[Written, Decoded]]:
    made = written(present, run)
    found = ((product, read_note(Decoded, present.path(product).with_suffix(".json"))) for product in made)
    return [(product, record) for product, record in found if record]


def scores(present: Present, run: RunId) -> list[tuple[Score, ScoreFile, str]]:
    """Return each score that reports ask for, with the file that Snakemake is asked for to make it again."""
    target = present.project.layout.target
    return [(one, ScoreFile.read(present.path(one)), str(target(one))) for one in present.made(Score, run)]
