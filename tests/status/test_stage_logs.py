"""Status looks for failures in the logs that the rules write."""

import ast
import re
from itertools import product

from copied_project import ROOT

from pipeline.core import artifacts as products
from pipeline.workflow.stage_logs import stages_of
from pipeline.workflow.wildcards import Placeholders, product_of

ELSEWHERE = {"Calibration", "Trained"}
"""What is measured for a plan is part of no result; a training says how it ended."""


def logs_in_rules() -> dict[str, set[str]]:
    """By the kind of product that they tell of, with wildcards."""
    text = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    found: dict[str, set[str]] = {}
    for kind, words in re.findall(r'log_of\((\w+), (".+?")\)', text):
        found.setdefault(kind, set()).add("-".join(ast.literal_eval(f"[{words}]")))
    return found


def logs_looked_at(kind: str) -> set[str]:
    """With wildcards; of every measure that there is, on a run's own corpus and on another."""
    cases = product(("scores", "phenomena", "perplexities"), (None, "{scored_on}"))
    made = [product_of(getattr(products, kind), Placeholders(measure=name, scored_on=on)) for name, on in cases]
    return {stage for one in made for stage in stages_of(one)}


def test_every_stage_of_a_result_is_looked_at_by_the_name_of_its_log():
    named = logs_in_rules()
    assert set(named) > ELSEWHERE
    unknown = {kind: logs - logs_looked_at(kind) for kind, logs in named.items() if kind not in ELSEWHERE}
    assert not any(unknown.values()), unknown
