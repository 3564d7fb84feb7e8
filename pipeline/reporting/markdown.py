"""The Markdown twin of a table: what fits a terminal, with everything a reader must know below it."""

from collections.abc import Sequence
from typing import Any

from pipeline.experiment.project import Project
from pipeline.experiment.scale import Rule
from pipeline.products import RunId

FACTS = {
    "domain_gap": "(WER - WER if trained on target) / (WER if trained on source - WER if trained on target), %",
    "parameters": "trainable parameters",
    "fit": "perplexity a subword at the end of the training, of the data of its first updates, without dropout",
    "flops": "operations of the training, counted from the model's matrix products, 2 a multiply-add",
    "flops_by_time": "operations of the training by the paper's formula, time x devices x sustained single-precision "
    "rate; that of devices which the paper does not name is measured, a product of two 1024 x 1024 matrices",
}


def render(project: Project, paper: str, table: str, rows: list[dict[str, Any]]) -> str:
    """The table with its caption above and its data, metrics, scale and deviations below."""
    entry, record = project.table(paper, table), project.papers[paper]
    header = [*entry.label, *entry.settings]
    for name, cell in entry.cells.items():
        interval = [f"{name} 95 %"] if cell.kind in ("score", "gain") else []
        header += [f"{name} printed", f"{name} ours", *interval]
    header += ["steps", "hours", "status", "notes"]
    parts = [
        f"# {record.title}: {table}, scale {project.config.scale}",
        entry.caption.strip(),
        grid(header, [compact(entry, row) for row in rows]),
        below(project, paper, table, rows),
    ]
    return "\n\n".join(parts) + "\n"


def compact(entry: Any, row: dict[str, Any]) -> list[str]:
    """One row's cells in the order of the header."""
    cells = [row[key] for key in (*entry.label, *entry.settings)]
    for name, cell in entry.cells.items():
        if cell.kind in ("score", "gain"):
            spread = f" ± {row[f'{name}_spread']}" if row.get(f"{name}_spread") else ""
            interval = f"{row[f'{name}_low']}–{row[f'{name}_high']}" if row[f"{name}_low"] else ""
            cells += [row[f"{name}_printed"], row[f"{name}_ours"] + spread, interval]
        else:
            cells += [short(row[f"{name}_printed"]), short(row[f"{name}_ours"])]
    return [*cells, row["steps"], row["device_hours"], row["status"], row["deviations"]]


def short(number: str) -> str:
    """A large number in a few characters: 65.1M, 3.30e+18."""
    if not number:
        return ""
    value = float(number)
    if value >= 1e9:
        return f"{value:.2e}"
    return f"{value / 1e6:.3g}M" if value >= 1e6 else f"{value / 1e3:.3g}K" if value >= 1e4 else f"{value:.4g}"


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns; columns that are empty everywhere are left out."""
    kept = [index for index in range(len(header)) if any(row[index] for row in rows)]
    table = [[header[index] for index in kept], *([row[index] for index in kept] for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(kept))]
    numeric = [
        all(cell[:1] in "0123456789.-–" for line in table[1:] if (cell := line[column])) for column in range(len(kept))
    ]
    lines = [
        "| "
        + " | ".join(cell.rjust(w) if n else cell.ljust(w) for cell, w, n in zip(line, widths, numeric, strict=True))
        + " |"
        for line in table
    ]
    rule = "|" + "|".join("-" * (w + 1) + (":" if n else "-") for w, n in zip(widths, numeric, strict=True)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def below(project: Project, paper: str, table: str, rows: list[dict[str, Any]]) -> str:
    """Stand-ins, test sets and metrics, scale rules and deviations, as lists."""
    cells = project.table(paper, table).cells
    lines = ["Data and metrics:", ""]
    for name, cell in cells.items():
        if cell.kind == "gain":
            lines.append(f"- {name}: {cell.cell} less that of {cell.over}, paired by sentence.")
            continue
        if cell.kind == "size":
            others = "".join(f", {vocab} for {system}" for system, vocab in cell.vocab_of.items())
            rows_used = f"{cell.vocab} rows of embeddings{others}"
            lines.append(f"- {name}: trainable parameters at the paper's size, with {rows_used}. {cell.why}")
            continue
        used = dict.fromkeys(run.run.dataset for run in project.cell_runs(paper, table) if run.cell == name)
        stand_ins = " and ".join(f"`{dataset}`" for dataset in used if project.is_stand_in(dataset))
        stand_in = f"; not comparable with the printed number, {stand_ins} standing in" if stand_ins else ""
        if cell.kind == "score":
            seen = {(row[f"{name}_test_set"], row[f"{name}_signature"]) for row in rows if row[f"{name}_ours"]}
            made = "; ".join(f"{test_set}, {signature}" for test_set, signature in sorted(seen)) or "not run"
            lines.append(
                f"- {name}: {cell.metric} of {cell.dataset} ({', '.join(cell.splits)}){stand_in}. Ours: {made}."
            )
        else:
            lines.append(f"- {name}: {FACTS[cell.kind]}, of the runs on {cell.dataset}{stand_in}.")
    lines += [
        "- 95 %: bootstrap over the sentences of the test set; ±: standard deviation over seeds and, where a row has "
        "several, decodings."
    ]
    lines += ["- hours: device hours of training, restarts included, summed over the seeds of a row.", ""]
    lines += [f"Scale `{project.config.scale}`: {project.scale.description}", ""]
    rules = scale_rules(project, {run.run for run in project.cell_runs(paper, table)})
    lines += [f"- {line}" for line in rules] + ["", "Deviations:", ""]
    for number, deviation in enumerate(project.papers[paper].deviations, start=1):
        lines.append(f"{number}. Paper: {deviation.paper} Here: {deviation.here} Why: {deviation.why}")
    return "\n".join(lines)


def scale_rules(project: Project, runs: set[RunId]) -> list[str]:
    """The rules of the scale that change a setting of `runs`, or of a run that one of them starts from, in words."""
    runs = runs | {taken for run in runs for taken in project.runs_taken(run)}
    names = {name for run in runs for name in project.lineage(run.paper, run.system)}
    has = {
        section: {key for run in runs for key, value in project.section(run, section) if value is not None}
        for section in ("model", "training")
    }
    described = []
    for system, rules in {"": project.scale, **project.scale.systems}.items():
        if system and system not in names:
            continue
        for section in ("model", "fusion", "training", "decoding"):
            for key, rule in getattr(rules, section).items():
                if key in has.get(section, {key}):
                    described.append(f"{system}{': ' if system else ''}{section}.{key} {rule_in_words(rule)}")
    return described


def rule_in_words(rule: Rule) -> str:
    operation, value = next(
        (name, value) for name in ("divide", "multiply", "set") if (value := getattr(rule, name)) is not None
    )
    words = {"divide": "divided by", "multiply": "multiplied by", "set": "set to"}[operation]
    shown = f"{value:g}" if isinstance(value, float) else value
    limits = "".join(
        f", {word} {limit:g}"
        for word, limit in (("at least", rule.minimum), ("at most", rule.maximum))
        if limit is not None
    )
    return f"{words} {shown}{limits}" + (f" ({rule.why})" if rule.why else "")
