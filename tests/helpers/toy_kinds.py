"""A toy of each kind of thing that can be added to the project, as text, and how it is registered.

The text of a toy goes into a new module; `register` adds it to the list of its package.
"""

from pathlib import Path
from textwrap import dedent

METRIC = dedent('''
    """Share of lines that are those of the reference."""

    import numpy as np

    from pipeline.metrics.metric import Metric, Translations, success_rate


    def statistics(texts):
        pairs = zip(texts.raw.hypotheses, texts.raw.references[0], strict=True)
        return np.array([(ours == theirs, 1) for ours, theirs in pairs])


    TOY = Metric("toy", Translations, statistics, success_rate, lambda texts: "whole-lines")
    METRICS = (TOY,)
''').lstrip()
CELL = dedent('''
    """Letters of the name of a row's system."""

    from collections.abc import Iterator
    from typing import Literal

    from pipeline.analysis.cells.cell import CellContext, Row, RunCell
    from pipeline.analysis.view import PaperView
    from pipeline.core.artifacts import Artifact, Trained


    class LettersCell(RunCell):
        kind: Literal["letters"]
        times: int

        def needs(self, view: PaperView, row: Row) -> Iterator[Artifact]:
            yield from map(Trained, self.runs(view, row))

        def fill(self, context: CellContext) -> dict[str, str]:
            return {"printed": "", "ours": str(self.times * sum(map(len, self.systems(context.row))))}

        def note(self, values, remark: str) -> str:
            return f"letters, {self.times} times{remark}."
''').lstrip()
CLAIM = dedent('''
    """A training has at least so many updates."""

    from typing import Literal

    from pipeline.analysis.claims.claim import Claim, Findings
    from pipeline.analysis.evidence import over_seeds


    class LongTraining(Claim):
        kind: Literal["long_training"]
        dataset: str
        system: str
        updates: int

        @property
        def trainings(self):
            return [(self.system, self.dataset)]

        def evaluate(self, measured):
            runs = measured.view.runs(self.system, self.dataset)
            steps = [measured.folders.loss_curve(run).steps[-1] for run in runs]
            evidence = over_seeds("updates beyond those", [one - self.updates for one in steps])
            return Findings(f"{steps[0]} updates", [evidence], "t over trainings")
''').lstrip()
FIGURE = dedent('''
    """A straight line."""

    from collections.abc import Iterator
    from typing import Literal

    from pipeline.analysis.figures.figure import Drawing, Figure, new_figure
    from pipeline.analysis.view import PaperView
    from pipeline.core.artifacts import Artifact


    class Line(Figure):
        kind: Literal["line"]
        system: str

        def needs(self, view: PaperView) -> Iterator[Artifact]:
            yield from view.trained([self.system], self.dataset)

        def draw(self, view: PaperView) -> Drawing:
            picture = new_figure(2, 2)
            picture.subplots().plot([0, 1], [0, 1])
            return Drawing(picture, [{"x": 0, "y": 0}, {"x": 1, "y": 1}], "It is straight.")
''').lstrip()
TOYS = {
    "pipeline/metrics/toy.py": METRIC,
    "pipeline/analysis/cells/letters.py": CELL,
    "pipeline/analysis/claims/long_training.py": CLAIM,
    "pipeline/analysis/figures/line.py": FIGURE,
}
ENTRIES = {
    "pipeline/metrics": ("from pipeline.metrics import toy", "MODULES = (", "MODULES = (toy, "),
    "pipeline/analysis/cells": (
        "from pipeline.analysis.cells.letters import LettersCell",
        "    DomainGapCell |",
        "    LettersCell | DomainGapCell |",
    ),
    "pipeline/analysis/claims": (
        "from pipeline.analysis.claims.long_training import LongTraining",
        "    AgreementClaim\n",
        "    LongTraining\n    | AgreementClaim\n",
    ),
    "pipeline/analysis/figures": (
        "from pipeline.analysis.figures.line import Line",
        "    Alignments |",
        "    Line | Alignments |",
    ),
}
"""For each package: the import of its toy, and a text in its list with what takes its place."""


def register(root: Path) -> None:
    """Write all toys into a copy of the project, and add each to the list of its package."""
    for name, text in TOYS.items():
        (root / name).write_text(text, encoding="utf-8")
    for package, (line, old, new) in ENTRIES.items():
        path = root / package / "__init__.py"
        source = path.read_text(encoding="utf-8")
        assert old in source, f"{path} lists its kinds in another way"
        docstring, end, code = source.partition('"""\n\n')
        path.write_text(f"{docstring}{end}{line}\n{code}".replace(old, new), encoding="utf-8")
