"""Claims of a paper next to the measured scores, each with a verdict."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.analysis.claims.verdicts import ENOUGH_SEEDS, LEVEL, ClaimResult, Faults, Verdict
from pipeline.analysis.run_folders import NotRun, RunFolders
from pipeline.analysis.training_curves import PLATEAU
from pipeline.analysis.view import PaperView
from pipeline.papers.project import Project, ProjectOptions
from pipeline.papers.reports import claim_artifacts
from pipeline.report.labels import Labels, seeds_in_words
from pipeline.report.markup import grid, literal, paragraphs, prose, shortened, write_report

log = logging.getLogger(__name__)


def write_claims(*, paper: str, out: Path, project: ProjectOptions) -> None:
    """Compare the claims of a paper with the measured scores, and give verdicts.

        python -m pipeline claims --paper weighted --set scale=demo --out results/demo/weighted/claims.csv

    Write CSV and Markdown: statement, printed evidence, ours, interval, the smallest effect that would have
    shown, p-values and verdict. pipeline/analysis/claims/verdicts.py lists the verdicts.

    Args:
        paper: Name of a paper in workflow/papers.
        out: CSV to write, with a Markdown file beside it.
        project: The project and its settings.
    """
    loaded = project.load([paper])
    results = results_in_words(loaded, paper)
    write_report(out, [row_of(result) for result in results], render(loaded, paper, results))
    log.info("%s: %s", out, tally(results))


def results_in_words(project: Project, paper: str, faults: Faults = (NotRun,)) -> list[ClaimResult]:
    """Return the evaluated claims of a paper; their texts name systems and metrics as readers know them."""
    view = PaperView(project, paper)
    labels = Labels(view)
    return [labels.result(result) for result in project.claims[paper].evaluate(RunFolders(view), faults)]


def row_of(result: ClaimResult) -> dict[str, str]:
    """Return a claim's row of the CSV: the findings, their uncertainty, and the verdict."""
    found, columns = result.found, dict.fromkeys(("ours", "evidence", *NUMBERS, "p_value", "p_adjusted", "test"), "")
    if found:
        columns |= {"ours": found.ours, "test": found.test_description}
        columns["evidence"] = "; ".join(filter(None, (result.why, *map(str, found.evidence))))
        columns["p_value"] = "" if found.p_value is None else f"{found.p_value:.3g}"
        columns["p_adjusted"] = "" if result.p_value is None else f"{result.p_value:.3g}"
    else:
        columns["evidence"] = result.why
    if found and len(found.evidence) == 1 and found.evidence[0].error is not None:
        columns |= {name: f"{getattr(found.evidence[0], name):.4g}" for name in NUMBERS}
    stated = {"statement": result.claim.full_statement, "printed": result.claim.printed}
    return {"claim": result.name, "group": result.group, **stated, "verdict": result.verdict, **columns}


def tally(claims: Iterable[ClaimResult]) -> str:
    """Count the verdicts of each group in words."""
    groups: dict[str, list[Verdict]] = {}
    for result in claims:
        groups.setdefault(result.group, []).append(result.verdict)
    names = GROUPS if "primary" in groups else GROUPS | {"other": "Claims"}
    return ". ".join(f"{names[group]}: {count_verdicts(groups[group])}" for group in names if group in groups)


def count_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Count decisions and verdicts in words."""
    counts = Counter(verdicts)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    results = sum(verdict is not Verdict.TESTED for verdict in verdicts)
    return f"{sum(verdict.is_decided for verdict in verdicts)} of {results} decided ({parts})" if results else parts


def render(project: Project, paper: str, claims: Sequence[ClaimResult]) -> str:
    """Return the verdicts as a Markdown table, then every claim with all its evidence, for a terminal."""
    record, scale = project.papers[paper], project.config.scale
    wanted = {project.stand_in(dataset): dataset for dataset in project.claims[paper].datasets}
    stand_ins = [f"`{ours}` for {theirs}" for ours, theirs in wanted.items() if ours != theirs]
    data = f" on {', '.join(stand_ins)}" if stand_ins else ""
    seeds = seeds_in_words(claim_artifacts(project, paper))
    rows = [row_of(result) for result in claims]
    return paragraphs(
        f"# {literal(record.title)}: claims at scale {scale}",
        f"{tally(claims)}.",
        *([f"Trained{data}; seed {seeds}."] if seeds else []),
        grid(
            ["claim", "group", "verdict", "p", "ours"],
            [[shortened(row[key], LONGEST) for key in COLUMNS] for row in rows],
        ),
        EXPLANATION,
        *(claim_section(row) for row in rows),
        *not_judged(project, paper),
    )


def not_judged(project: Project, paper: str) -> list[str]:
    """Return the paper's statements that can't be decided here, with the reasons, in Markdown; empty if none."""
    found = project.claims[paper].not_judged
    rows = [[name, claim.statement, claim.printed, claim.why] for name, claim in found.items()]
    return ["## Statements that are not judged", grid(["name", "statement", "printed", "why"], rows)] if rows else []


GROUPS = {"primary": "Primary claims", "other": "Others", "timing": "Times of layers", "identity": "Identities"}
NUMBERS = ("value", "low", "high", "detectable")
COLUMNS = ("claim", "group", "verdict", "p_adjusted", "ours")
EXPLANATION = f"""\
A claim is turned into quantities that are positive if it is true, each with a 95 % interval. Their variance has two
sources: runs with other seeds, pooled over systems of a family, and sentences, resampled in pairs. p is two-sided. It
is adjusted by Holm over the paper's primary claims, and by Benjamini and Hochberg over the others; {LEVEL:.0%}
decides. With fewer than {ENOUGH_SEEDS} trainings of a system a decision is provisional and counts as undecided; if the
claim is not primary, it is adjusted apart. Detectable: the smallest quantity that is significant at 5 % with a power
of 80 %, before the adjustment. Not trained: a system is below a floor (workflow/floors.yaml). Not trained far enough: a
dev loss still fell by {PLATEAU:.1%} or more over the last fifth of the steps. This concerns the system that the claim
calls worse, or one that would be contradicted. If the run-to-run variance is unknown, p comes from sentences alone.
Identities are proved by tests."""
LONGEST = 70


def claim_section(row: dict[str, str]) -> str:
    """Write a claim with all its evidence."""
    keys = ("printed", "ours", "evidence", "detectable", "test", "verdict")
    lines = [f"- {key.capitalize()}: {literal(row[key])}" for key in keys if row[key]]
    return "\n".join([f"## {literal(row['claim'])}", "", prose(row["statement"]), "", *lines])
