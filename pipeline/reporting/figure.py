"""One figure of one paper: the picture, the numbers in it, and a caption with the facts of the runs it shows.

    python -m pipeline figure --paper weighted --figure figure2 --set scale=demo --out results/demo/weighted/figure2.svg

writes figure2.svg, figure2.png, figure2.csv (what is drawn) and figure2.md (the caption). Settings come from
config.yaml; `--set scale=small` replaces one of them.
"""

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from pipeline.errors import UserError
from pipeline.experiment.figure import Alignments, AttentionHeads, BleuByLength, BranchWeights, DevCurves, LossCurves
from pipeline.experiment.project import Project, load_project, parse_settings
from pipeline.files import atomic_write, write_csv
from pipeline.kinds.measured import RunFolders
from pipeline.kinds.picture import save
from pipeline.reporting import alignment_figure, attention_figure, branch_figure, dev_figure, length_figure, loss_figure

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Drawn:
    """A figure before it is written."""

    picture: Figure
    rows: list[dict[str, Any]]
    facts: str
    """What the runs add to the caption."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=Path(), help="project root (default: the working directory)")
    parser.add_argument("--paper", required=True)
    parser.add_argument("--figure", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="replace a key of config.yaml")
    parser.add_argument("--out", type=Path, required=True, help="SVG to write; PNG, CSV and caption lie beside it")


def run(args: argparse.Namespace) -> None:
    project = load_project(args.root, parse_settings(args.set))
    drawn = draw(project, args.paper, args.figure)
    write_csv(args.out.with_suffix(".csv"), drawn.rows)
    with atomic_write(args.out.with_suffix(".md")) as handle:
        handle.write(caption(project, args.paper, args.figure, drawn.facts))
    save(drawn.picture, args.out)
    log.info("%s: %d numbers drawn", args.out, len(drawn.rows))


def draw(project: Project, paper: str, figure: str) -> Drawn:
    """Raises UserError when a run that the figure shows was not made."""
    entry = project.figure(paper, figure)
    folders = RunFolders(project)
    files = [folders.folder(file.run) / file.path for file in project.figure_files(paper, figure)]
    for path in files:
        if not path.exists():
            raise UserError(f"{path}: no such file; figure {figure} of {paper} is drawn from it, so make it first")
    match entry:
        case LossCurves():
            return Drawn(*loss_figure.draw(project, paper, entry))
        case BranchWeights():
            return Drawn(*branch_figure.draw(project, paper, entry))
        case BleuByLength():
            return Drawn(*length_figure.draw(project, paper, entry))
        case AttentionHeads():
            return Drawn(*attention_figure.draw(entry, files[0]))
        case DevCurves():
            return Drawn(*dev_figure.draw(project, paper, entry))
        case Alignments():
            return Drawn(*alignment_figure.draw(project, paper, entry, files))
    raise ValueError(f"no way to draw a figure of kind {entry.kind!r}")


def caption(project: Project, paper: str, figure: str, facts: str) -> str:
    """The figure's caption, which data stood in, and what the runs add."""
    entry, record = project.figure(paper, figure), project.papers[paper]
    used = project.stand_in(entry.dataset)
    data = f"Data: {used}" + ("" if used == entry.dataset else f", which stands in for {entry.dataset}")
    seeds = ", ".join(map(str, project.config.seed_list))
    return (
        f"{record.title}, {figure}, at scale {project.config.scale}. {entry.caption.strip()}\n\n"
        f"{facts} {data}. Seeds: {seeds}.\n\n![{figure}]({figure}.svg)\n"
    )
