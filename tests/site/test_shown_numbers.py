"""Numbers on pages are those of the right test set, are readable, and are called by their state."""

import re

import pytest
from real_project import real_project

from pipeline.analysis.cells.cell import shown_interval
from pipeline.analysis.view import PaperView, Term
from pipeline.papers.printed_scores import printed_score
from pipeline.papers.project import Project
from pipeline.report.filled_table import fill
from pipeline.report.labels import Labels, with_minus
from pipeline.report.site.charts import Axis, heat
from pipeline.report.site.pages import Pages, breaking
from pipeline.report.site.papers import NOT_TESTED
from pipeline.report.site.site_data import SiteData
from pipeline.report.site.tables import shown_table


@pytest.fixture(scope="module")
def shipped() -> Project:
    """Return the project as it is shipped."""
    return real_project()


@pytest.mark.parametrize(
    ("claim", "systems"),
    [
        ("domain-gap", ["attention-source", "attention-target"]),
        ("target-order", ["CF4", "DF0", "attention-source"]),
        ("source-order", ["CF3", "DF3", "attention-source"]),
    ],
)
def test_printed_number_is_of_the_domain_that_is_scored(shipped, claim, systems):
    claims = shipped.claims["coldfusion"]
    found = claims.claims[claim]
    score = claims.scores[found.score_names[0]]
    numbers = [printed_score(shipped, "coldfusion", Term(system=system), score) for system in systems]
    assert numbers == [float(number) for number in re.findall(r"\d+\.\d\d", found.printed)]


@pytest.mark.parametrize(("weights", "shades"), [([0.04, 0.01], [0.2, 1.0]), ([0.0, 0.0], [])])
def test_small_weights_are_seen_in_a_heat_map(weights, shades):
    chart = heat(["column", "a", "b"], ["row", "c"], [weights], "weights")
    assert [opacity for opacity, _ in chart.shades] == shades and chart.largest == max(weights)


def test_negative_number_has_a_minus_sign():
    assert with_minus("-11.85 BLEU, -3 GLEU") == "−11.85 BLEU, −3 GLEU"
    for text in ("1e-07", "wmt14-en-de, BPE-40K, 2-4"):
        assert with_minus(text) == text


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        (("1.20", "3.40"), "1.20–3.40"),
        (("-1.20", "3.40"), "-1.20 to 3.40"),
        (("+1.20", "+3.40"), "+1.20 to +3.40"),
        (("", ""), ""),
    ],
)
def test_dash_of_an_interval_is_never_beside_a_sign(ends, shown):
    assert shown_interval(*ends) == shown


def test_long_name_breaks_but_a_number_does_not():
    assert breaking("model.d_model") == "model.<wbr>d_<wbr>model"
    assert breaking("0.70710678") == "0.70710678"


def test_setting_that_a_model_lacks_stands_as_printed(project):
    """A recurrent model has no heads."""
    paper, rows = project.papers["multichannel"], project.printed["multichannel"]["table1"]
    entry = paper.tables["table1"].model_copy(update={"settings": ["h"]})
    project.papers["multichannel"] = paper.model_copy(update={"tables": {"table1": entry}})
    project.printed["multichannel"]["table1"] = [row | {"h": "8"} for row in rows]
    filled = fill(project, "multichannel", "table1")
    shown = shown_table(SiteData(project, False), "multichannel", "table1", filled)
    assert {row["system"]: found.settings for row, found in zip(rows, shown.rows, strict=True)} == {
        row["system"]: ["4 (8 printed)" if row["system"] == "T2T" else "8"] for row in rows
    }


def test_gain_on_a_page_has_the_sign_and_digits_of_its_interval(site):
    project, _ = site
    filled = fill(project, "weighted", "readings")
    filled.cells["gain"][0] |= {"printed": "-0.60", "ours": "+1.00", "low": "-0.50", "high": "+2.50"}
    cell = shown_table(SiteData(project, False), "weighted", "readings", filled).rows[0].cells["gain"]
    assert (cell.printed, cell.ours, cell.interval) == ("−0.60", "+1.00", "−0.50 to +2.50")


def test_claim_of_another_scale_is_not_called_not_run(site):
    project, folder = site
    groups = []
    for paper, claims in project.claims.items():
        page = (folder / f"paper-{paper}.html").read_text(encoding="utf-8")
        for name, claim in claims.claims.items():
            if f'id="claim-{name}"' in page and not claim.is_tested(project.config.scale):
                groups.append(page.split(f'id="claim-{name}"')[0].rpartition("<summary>")[2])
    claims = [claim for of_paper in project.claims.values() for claim in of_paper.claims.values()]
    assert len(groups) == sum(not claim.is_tested(project.config.scale) for claim in claims) > 0
    assert all(NOT_TESTED in group.partition("</summary>")[0] for group in groups)


def test_mean_of_many_test_sets_names_its_ends(shipped):
    labels = Labels(PaperView(shipped, "multichannel"))
    several = [score for score in shipped.claims["multichannel"].scores.values() if len(score.splits) > 2]
    assert several and all(labels.test_sets(score).count(" to ") == 1 for score in several)


@pytest.mark.parametrize(("label", "crowded"), [("10–99", False), ("100–999", True)])
def test_labels_with_a_long_one_stand_on_two_lines(project, tmp_path, label, crowded):
    axis = Axis("words", [(25.0, "1"), (75.0, label)])
    macros = Pages(tmp_path / "site", SiteData(project, False)).templates.get_template("charts.html").module
    assert ("crowded" in macros.ticks(axis, axis)) == crowded
