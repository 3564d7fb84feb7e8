"""A metric, a cell, a claim, a figure and an architecture of one's own: files dropped in, no line changed."""

import csv
import json
import shutil
import sys
from textwrap import dedent

import pytest
from copied_project import ROOT, call, copy_project, require

METRIC = '''
    """Share of lines that begin as the reference does, in percent."""

    import numpy as np

    from pipeline.metrics.statistics.metric import Metric
    from pipeline.metrics.statistics.rates import rate
    from pipeline.metrics.statistics.texts import Translations


    def statistics(texts):
        pairs = zip(texts.raw.hypotheses, texts.raw.references[0], strict=True)
        return np.array([(ours[:1] == theirs[:1], 1) for ours, theirs in pairs])


    METRIC = Metric("beginnings", Translations, statistics, rate, lambda texts: "first letters")
'''
CELL = '''
    """Letters of the name of a row's system, once it is trained."""

    from typing import Literal

    from pipeline.kinds.cells.shared.cell import RunCell
    from pipeline.products import Trained


    class LettersCell(RunCell):
        kind: Literal["letters"]

        def needs(self, view, row):
            yield from map(Trained, self.runs(view, row))

        def fill(self, place):
            return {"printed": "", "ours": str(sum(map(len, self.systems(place.row))))}

        def note(self, values, remark):
            return f"letters{remark}."
'''
CLAIM = '''
    """A training has at least so many updates."""

    from typing import Literal

    from pipeline.kinds.claims.shared.claim import Findings
    from pipeline.kinds.claims.shared.trainings import AboutTraining
    from pipeline.kinds.evidence import over_seeds


    class Updates(AboutTraining):
        kind: Literal["updates"]
        at_least: int

        def judge(self, measured):
            steps = [measured.curve(run).steps[-1] for run in measured.view.runs(self.system, self.dataset)]
            evidence = over_seeds("updates beyond those", [one - self.at_least for one in steps])
            return Findings(f"{steps[0]} updates", [evidence], "t over trainings")
'''
FIGURE = '''
    """A straight line."""

    from typing import Literal

    from pipeline.kinds.figures.shared.figure import Drawing, Figure
    from pipeline.kinds.picture import new_figure


    class Line(Figure):
        kind: Literal["line"]
        system: str

        def needs(self, view):
            yield from view.trained([self.system], self.dataset)

        def draw(self, view):
            picture = new_figure(2, 2)
            picture.subplots().plot([0, 1], [0, 1])
            return Drawing(picture, [{"x": 0, "y": 0}, {"x": 1, "y": 1}], "It is straight.")
'''
TOYS = {
    "pipeline/metrics/beginnings.py": METRIC,
    "pipeline/kinds/cells/letters.py": CELL,
    "pipeline/kinds/claims/updates.py": CLAIM,
    "pipeline/kinds/figures/line.py": FIGURE,
    "workflow/papers/toy/paper.yaml": """
        title: Toys
        authors: Nobody
        year: 2026
        systems:
          bag:
            description: a bag of words
            model: {architecture: bag_of_words, width: 8}
            training: {max_steps: 100000, warmup_steps: 4000, tokens_per_update: 25000, validate_every: 1000,
                       checkpoint_every: 1000}
        decodings:
          final: {beam_size: 4, average_last: 1}
        tables:
          table1:
            caption: A toy of each kind.
            printed: table1.csv
            label: [model]
            cells:
              beginnings: {metric: beginnings, dataset: wmt14-en-de, split: test, decoding: final, printed: beginnings}
              letters: {kind: letters, dataset: wmt14-en-de}
        figures:
          figure1: {kind: line, caption: A line., dataset: wmt14-en-de, system: bag}
    """,
    "workflow/papers/toy/table1.csv": """
        model,beginnings,system,source
        Bag of words,,bag,ours-to-run
    """,
    "workflow/papers/toy/claims.yaml": """
        claims:
          trained: {kind: updates, statement: It is., printed: Table 1, dataset: wmt14-en-de, system: bag, at_least: 5}
    """,
}


@pytest.fixture
def root(tmp_path):
    """A copy of the project, code and all, with a toy of each kind and a paper that has one of each."""
    copy_project(tmp_path)
    (tmp_path / "pipeline").unlink()
    shutil.copytree(ROOT / "pipeline", tmp_path / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests/helpers/architectures/bag_of_words", tmp_path / "pipeline/models/bag_of_words")
    (tmp_path / "workflow/papers/toy").mkdir()
    for name, content in TOYS.items():
        (tmp_path / name).write_text(dedent(content).lstrip(), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_toy_of_each_kind_works_end_to_end_without_another_line_changed(root):
    require(call(root, "snakemake", "-j2", "--quiet", "rules", "--config", "scale=smoke", "--", "toy"))
    results = root / "results/smoke/toy"
    (row,) = csv.DictReader((results / "table1.csv").open(encoding="utf-8"))
    assert 0 <= float(row["beginnings_ours"]) <= 100 and row["letters_ours"] == str(len("bag"))
    (score,) = (root / "work/smoke/runs/toy").glob("bag/*/*/scores/final/test.json")
    assert json.loads(score.read_text())["metrics"]["beginnings"]["signature"] == "first letters"
    (claim,) = csv.DictReader((results / "claims.csv").open(encoding="utf-8"))
    assert claim["claim"] == "trained" and claim["ours"].endswith("updates")
    assert "It is straight." in (results / "figure1.md").read_text(encoding="utf-8")
    schemas = require(call(root, sys.executable, "-m", "pipeline", "schemas", "--out", "schemas"))
    assert "error" not in schemas
    known = "".join(path.read_text() for path in (root / "schemas").glob("*.json"))
    assert all(name in known for name in ("LettersCell", "Line", "Updates", "bag_of_words"))
