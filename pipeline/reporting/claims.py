"""What one paper says, next to what was measured, with a verdict.

    python -m pipeline claims --paper weighted --set scale=demo --out results/demo/weighted/claims.csv

writes the CSV and a Markdown twin: statement, printed evidence, ours, interval, p-value and verdict. The verdicts are
`upheld`, `not distinguishable`, `contradicted`, `not run`; a statement that needs no training is `tested` by the
named tests.
"""

import argparse
import logging
from collections import Counter

from pipeline.experiment.arguments import add_report_arguments, project_of
from pipeline.experiment.project import Project
from pipeline.kinds.claims.shared.claim import Claim
from pipeline.kinds.claims.shared.measurements import Measurements, NotRun
from pipeline.kinds.evidence import Verdict
from pipeline.kinds.view import PaperView
from pipeline.reporting.markdown import grid, write_twins
from pipeline.reporting.markup import literal

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_report_arguments(parser, out="CSV to write; the Markdown twin lies beside it")


def run(args: argparse.Namespace) -> None:
    project = project_of(args, [args.paper])
    rows = claim_rows(project, args.paper)
    write_twins(args.out, rows, render(project, args.paper, rows))
    log.info("%s: %s", args.out, tally(rows))


def claim_rows(project: Project, paper: str) -> list[dict[str, str]]:
    """The rows of the CSV, in the order of claims.yaml."""
    claims = project.claims[paper]
    measured = Measurements(PaperView(project, paper), claims.scores)
    return [
        {"claim": name, "statement": claim.statement, "printed": claim.printed, **judged(claim, measured)}
        for name, claim in claims.claims.items()
    ]


def judged(claim: Claim, measured: Measurements) -> dict[str, str]:
    """What was found for one claim, and what follows from it."""
    columns = dict.fromkeys(("verdict", "ours", "evidence", "p_value", "test"), "")
    try:
        found = claim.findings(measured)
    except NotRun as missing:
        return columns | {"verdict": Verdict.NOT_RUN, "evidence": str(missing)}
    return {
        "verdict": found.verdict,
        "ours": found.ours,
        "evidence": "; ".join(map(str, found.evidence)),
        "p_value": "" if found.p_value is None else f"{found.p_value:.3g}",
        "test": found.test,
    }


def tally(rows: list[dict[str, str]]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(row["verdict"] for row in rows).items())


def render(project: Project, paper: str, rows: list[dict[str, str]]) -> str:
    """For a terminal: the verdicts as a table, then every claim with all its evidence."""
    record, scale = project.papers[paper], project.config.scale
    wanted = {project.stand_in(dataset): dataset for dataset in project.claims[paper].datasets}
    stand_ins = [f"`{ours}` for {theirs}" for ours, theirs in wanted.items() if ours != theirs]
    data = f" on {', '.join(stand_ins)}" if stand_ins else ""
    seeds = ", ".join(map(str, project.config.seed_list))
    parts = [
        f"# {record.title}: claims at scale {scale}",
        f"{tally(rows)}. Trained{data}; seed {seeds}.",
        grid(["claim", "verdict", "p", "ours"], [[shortened(row[key]) for key in COLUMNS] for row in rows]),
        EXPLANATION,
        *(described(row) for row in rows),
    ]
    return "\n\n".join(parts) + "\n"


COLUMNS = ("claim", "verdict", "p_value", "ours")
EXPLANATION = (
    "A claim is upheld when the 95 % interval of every quantity that it says is positive lies above zero, "
    "contradicted when one lies below, else not distinguishable. p: one-sided, the largest of the claim's quantities. "
    "Sentences are resampled in pairs; with several seeds the noise between trainings is added, with one it is unknown "
    "and not counted; losses of single trainings then have to differ by 0.01 nats per subword."
)
LONGEST = 70


def shortened(text: str) -> str:
    """For the overview; the whole stands below it."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def described(row: dict[str, str]) -> str:
    lines = [
        ("Printed", row["printed"]),
        ("Ours", row["ours"]),
        ("Evidence", row["evidence"]),
        ("Test", row["test"]),
        ("Verdict", row["verdict"]),
    ]
    return "\n".join([f"## {row['claim']}", "", row["statement"], "", *(f"- {k}: {literal(v)}" for k, v in lines if v)])
