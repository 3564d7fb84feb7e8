"""Parameter counts of a paper's systems at the paper's own size, whatever the scale."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.analysis.cells.facts import SizeCell
from pipeline.core.records.probes import ModelSize, ModelSizes
from pipeline.models.architectures import build_model
from pipeline.models.seq2seq import size_of
from pipeline.papers.project import Project, ProjectOptions

log = logging.getLogger(__name__)


def write_model_sizes(*, paper: str, out: Path, project: ProjectOptions) -> None:
    """Count the parameters of a paper's systems at the paper's own size.

        python -m pipeline model-sizes --paper weighted --set scale=demo --out work/demo/model_sizes/weighted.json

    Write {sizes: [{system, vocab, parameters}]}, one for each size that a table of the paper shows: the system as the
    paper names it, the rows of its embeddings, its trainable parameters. The models take no memory.

    Args:
        paper: Name of a paper in workflow/papers.
        out: JSON file to write.
        project: The project and its settings.
    """
    sizes = model_sizes(project.load([paper]), paper)
    listed = [ModelSize(system=system, vocab=vocab, parameters=size) for (system, vocab), size in sizes.items()]
    ModelSizes(sizes=listed).write(out)
    log.info("%s: %d sizes", out, len(sizes))


def model_sizes(project: Project, paper: str) -> dict[tuple[str, int], int]:
    """Count the trainable parameters of each size that a table of a paper shows.

    Args:
        project: The project with the paper.
        paper: Name of the paper.

    Returns:
        Parameters by system and rows of its embeddings.
    """
    found: dict[tuple[str, int], int] = {}
    for table, entry in project.papers[paper].tables.items():
        cells = [cell for cell in entry.cells.values() if isinstance(cell, SizeCell)]
        wanted = (cell.size_of(row) for cell in cells for row in project.printed[paper][table])
        for system, vocab in dict.fromkeys(one for one in wanted if one):
            config: Any = project.full_section(*project.locate(system, paper), "model")
            found[system, vocab] = size_of(partial(build_model, config, (vocab, vocab)))
    return found
