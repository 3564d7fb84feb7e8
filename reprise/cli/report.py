"""Contents of a prepared dataset."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pipeline.core.artifacts import Encoded, Prepared
from pipeline.core.errors import UserError, one_line
from pipeline.core.json_csv import read_json
from pipeline.core.records.corpus import SpeechCorpus, read_corpus
from pipeline.core.schema import require_known
from pipeline.data.dataset import AnyDataset, is_redistributable
from pipeline.data.text.checks import comparison_key
from pipeline.data.text.text_files import lines_of
from pipeline.papers.config_file import parse_settings
from pipeline.papers.project import Project, Settings
from pipeline.workflow.targets import snakemake_command
from reprise.find_runs import find_project

SHOWN = 80
"""Characters of an example."""
UNITS = {"speech": ("frames", "characters"), "characters": ("", "characters")}
"""Units of the source and target side by form of the data; other forms have symbols."""


def print_report(dataset: str, *, settings: Settings = ()) -> None:
    """Print the contents of a prepared dataset.

        reprise report multi30k-en-de

    Prints sizes, lengths, rejected lines with reasons and examples, overlaps between splits, and the licence.

    Args:
        dataset: File of workflow/datasets, without .yaml.
        settings: Override a key of config.yaml. May be given several times.
    """
    project = find_project(parse_settings(settings))
    require_known(dataset, project.datasets, "DATASET")
    for line in report(project, project.dataset_records[dataset]):
        print(line)


def report(project: Project, dataset: AnyDataset) -> Iterator[str]:
    """Yield the report on a prepared dataset, line by line.

    Yields:
        The report, line by line.

    Raises:
        UserError: The dataset is not encoded yet.
    """
    layout = project.layout
    prepared, encoded = layout.path(Prepared(dataset.name)), layout.path(Encoded(dataset.name))
    if not encoded.exists():
        raise UserError(f"{dataset.name}: not prepared yet; run `{snakemake_command(project, encoded)}`")
    terms = "anyone may redistribute it" if is_redistributable(dataset) else "not to be redistributed"
    yield f"{dataset.name}: {dataset.title}\nlicence: {dataset.licence} ({terms})\nto cite: {dataset.citation}\n"
    record, reports = read_corpus(encoded.parent), read_json(prepared)["splits"]
    copies = record.speeds if isinstance(record, SpeechCorpus) else 1
    for split in dataset.split_names:
        found, size = reports[split], record.splits[split].model_dump()
        speeds = f", each recording at {copies} speeds" if split == "train" and copies > 1 else ""
        yield f"{split}: {found['read']:,} read, {found['kept']:,} kept{speeds}"
        for side, unit in zip(("src", "tgt"), UNITS.get(dataset.form, ("symbols", "symbols")), strict=True):
            if tokens := size.get(f"{side}_tokens"):
                unknown = size.get(f"{side}_unknown")
                share = "" if unknown is None else f", {100 * unknown / tokens:.2f} % of them unknown"
                yield f"  {side}: {tokens:,} {unit}, {tokens / size['pairs']:.1f} a sentence{share}"
        if (ceiling := found.get("ceiling")) is not None:
            yield f"  a perfect translation has a sacreBLEU of {ceiling:.1f}; {found['changed']:,} references change"
        for reason, count in found["rejected"].items():
            yield f"  {count:,} left out: {reason}"
            numbers = found.get("rejected_lines", {}).get(reason, [])
            raw = [prepared.parent.parent / "raw" / f"{split}.{language}" for language in dataset.languages]
            if not all(path.exists() for path in raw):
                yield from (f"    line {number}, whose text was removed to free disk space" for number in numbers)
                continue
            yield from (f"    line {number}: {' | '.join(line_at(path, number) for path in raw)}" for number in numbers)
        yield from (f"    {one_line(example)}" for example in found.get("examples", []))
    yield from overlaps(dataset, prepared.parent)


def line_at(path: Path, number: int) -> str:
    """Return the beginning of line `number`, from 1, of a text file `path` as one printable line."""
    with open(path, encoding="utf-8", errors="replace", newline="\n") as lines:
        return one_line(next(islice(lines, number - 1, None), "").strip()[:SHOWN])


def overlaps(dataset: AnyDataset, prepared: Path) -> Iterator[str]:
    """Count the sentences that each split shares with an earlier one, ignoring case and spacing.

    Text is compared by its source side, speech by its transcript.

    Args:
        dataset: The dataset.
        prepared: Folder of its prepared text.

    Yields:
        A line for each pair of splits that overlap.
    """
    names = {"speech": "{}.en", "trees": f"{{}}.tok.{dataset.languages[0]}"}
    name = names.get(dataset.form, f"{{}}.{dataset.languages[0]}")
    paths = {split: prepared / name.format(split) for split in dataset.split_names}
    held_out = {split: [*keys_in(path)] for split, path in paths.items() if split != "train" and path.exists()}
    before: dict[str, set[str]] = {}
    for split, path in paths.items():
        if not path.exists():
            yield f"{split}: overlap with other splits unknown, as its text was removed to free disk space"
        elif split == "train":  # first, and too large to keep as a whole
            before[split] = set[str]().union(*held_out.values()).intersection(keys_in(path))
        else:
            keys = held_out[split]
            for other, there in before.items():
                if shared := sum(key in there for key in keys):
                    verb = "is" if shared == 1 else "are"
                    yield f"{split}: {shared:,} of {len(keys):,} sentences {verb} in {other} too"
            before[split] = set(keys)


def keys_in(path: Path) -> Iterator[str]:
    """Return the keys of the sentences in a file of prepared text, one by one."""
    return map(comparison_key, lines_of(path, "prepare it again"))
