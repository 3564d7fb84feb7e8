"""A toy of each kind of file that can be dropped into the project, as its text."""

from textwrap import dedent

METRIC = dedent('''
    """Share of lines that are those of the reference."""

    import numpy as np

    from pipeline.metrics.statistics.metric import Metric
    from pipeline.metrics.statistics.rates import rate
    from pipeline.metrics.statistics.texts import Translations


    def statistics(texts):
        pairs = zip(texts.raw.hypotheses, texts.raw.references[0], strict=True)
        return np.array([(ours == theirs, 1) for ours, theirs in pairs])


    METRIC = Metric("toy", Translations, statistics, rate, lambda texts: "whole-lines")
''').lstrip()
CELL = dedent('''
    """Letters of the name of a row's system."""

    from collections.abc import Iterator
    from typing import Literal

    from pipeline.analysis.cells.cell import Place, Row, RunCell
    from pipeline.analysis.view import PaperView
    from pipeline.core.artifacts import Product, Trained


    class LettersCell(RunCell):
        kind: Literal["letters"]
        times: int

        def needs(self, view: PaperView, row: Row) -> Iterator[Product]:
            yield from map(Trained, self.runs(view, row))

        def fill(self, place: Place) -> dict[str, str]:
            return {"printed": "", "ours": str(self.times * sum(map(len, self.systems(place.row))))}

        def note(self, values, remark: str) -> str:
            return f"letters, {self.times} times{remark}."
''').lstrip()
CLAIM = dedent('''
    """A training has at least so many updates."""

    from typing import Literal

    from pipeline.analysis.claims.claim import Findings
    from pipeline.analysis.claims.trainings import AboutTraining
    from pipeline.analysis.evidence import over_seeds


    class LongTraining(AboutTraining):
        kind: Literal["long_training"]
        updates: int

        def judge(self, measured):
            steps = [measured.curve(run).steps[-1] for run in measured.view.runs(self.system, self.dataset)]
            evidence = over_seeds("updates beyond those", [one - self.updates for one in steps])
            return Findings(f"{steps[0]} updates", [evidence], "t over trainings")
''').lstrip()
FIGURE = dedent('''
    """A straight line."""

    from collections.abc import Iterator
    from typing import Literal

    from pipeline.analysis.figures.figure import Drawing, Figure
    from pipeline.analysis.picture import new_figure
    from pipeline.analysis.view import PaperView
    from pipeline.core.artifacts import Product


    class Line(Figure):
        kind: Literal["line"]
        system: str

        def needs(self, view: PaperView) -> Iterator[Product]:
            yield from view.trained([self.system], self.dataset)

        def draw(self, view: PaperView) -> Drawing:
            picture = new_figure(2, 2)
            picture.subplots().plot([0, 1], [0, 1])
            return Drawing(picture, [{"x": 0, "y": 0}, {"x": 1, "y": 1}], "It is straight.")
''').lstrip()
