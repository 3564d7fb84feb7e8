"""The README of a packed model."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.use.portable import PortableModel

USES = {
    "sentences": "translate {folder} TEXT_FILE",
    "trees": "parse {folder} TEXT_FILE",
    "speech": "transcribe {folder} AUDIO_FILE",
}


def card(record: "PortableModel", folder: str) -> str:
    """What the model is, how good, of which data, and how it is used, in Markdown."""
    model, data, made = record.preparation, record.data, record.provenance
    use = USES.get(model.form)
    rows = [
        f"| {test_set} | {name} | {score.value:.2f} | {interval(score.low, score.high)} | `{score.signature}` |"
        for test_set, metrics in record.scores.items()
        for name, score in metrics.items()
    ]
    table = ["| test set | metric | value | 95 % | signature |", "|---|---|---|---|---|", *rows] if rows else ["None."]
    sections = [
        [f"# {record.run}", "", f"A {record.spec.model.architecture} model, {model.src} to {model.tgt}, trained at"],
        [f"scale `{record.spec.scale}` for the paper `{record.spec.paper}`, seed {record.spec.seed}."],
        *([["", f"    reprise {use.format(folder=folder)}"]] if use else []),
        ["", "## Scores", "", *table],
        ["", "## Data", "", f"{data.title}. Licence: {data.licence}. Cite: {data.citation}.", ""],
        [f"Anyone may {'' if data.redistributable else 'not '}pass the data on; this folder holds none of it."],
        ["", "## Limits", "", "Trained for the comparison of systems in a paper, on the data above and no other; "],
        ["nothing is known of its use for anything else."],
        ["", f"Packed at commit {made.get('commit', 'unknown')}; the files are checked by `sha256sum -c SHA256SUMS`."],
    ]
    return "\n".join(line for lines in sections for line in lines) + "\n"


def interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.2f} to {high:.2f}"
