"""Figures of a paper: the picture, the numbers in it, and a caption with the facts of its runs."""

import logging
from pathlib import Path

from pipeline.analysis.figures.figure import Drawing, save
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.view import PaperView
from pipeline.core.errors import UserError
from pipeline.papers.project import Project, ProjectOptions
from pipeline.papers.reports import figure_artifacts
from pipeline.report.labels import seeds_in_words
from pipeline.report.markup import prose, write_report

log = logging.getLogger(__name__)
TEXTS = ("query_token", "key_token")


def write_figure(*, paper: str, figure: str, out: Path, project: ProjectOptions) -> None:
    r"""Draw one figure of a paper, with its numbers and a caption.

        python -m pipeline figure --paper weighted --figure figure2 --set scale=demo \
            --out results/demo/weighted/figure2.svg

    Write figure2.svg, figure2.png, figure2.csv (the numbers that are drawn) and figure2.md (the caption).

    Args:
        paper: Name of a paper in workflow/papers.
        figure: Name of a figure of the paper.
        out: SVG to write, with PNG, CSV and caption beside it.
        project: The project and its settings.
    """
    loaded = project.load([paper])
    drawing = draw(loaded, paper, figure)
    write_report(out.with_suffix(".csv"), drawing.rows, caption(loaded, paper, figure, drawing.facts), TEXTS)
    save(drawing.picture, out)
    log.info("%s: %d numbers drawn", out, len(drawing.rows))


def draw(project: Project, paper: str, figure: str) -> Drawing:
    """Return the picture of a figure and its numbers.

    Raises:
        UserError: A file that it is drawn from is missing, or lacks what is drawn.
    """
    for artifact in figure_artifacts(project, paper, figure):
        path = project.layout.path(artifact)
        if not path.exists():
            raise UserError(f"{path}: no such file; figure {figure} of {paper} needs it")
    try:
        return project.figure(paper, figure).draw(PaperView(project, paper))
    except NotRun as error:
        raise UserError(str(error)) from error


def caption(project: Project, paper: str, figure: str, facts: str) -> str:
    """Return the figure's caption in Markdown: its data, the facts of its runs, and a link to the picture."""
    entry, record = project.figure(paper, figure), project.papers[paper]
    used = project.stand_in(entry.dataset)
    data = f"Data: {used}" + ("" if used == entry.dataset else f", which stands in for {entry.dataset}")
    seeds = seeds_in_words(figure_artifacts(project, paper, figure))
    title = f"{record.title}, {figure}, at scale {project.config.scale}. {entry.caption.strip()}"
    return f"{prose(title)}\n\n{prose(f'{facts} {data}. Seeds: {seeds}.')}\n\n![{figure}]({figure}.svg)\n"
