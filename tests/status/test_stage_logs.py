"""Status looks for failures in the logs that the rules write."""

import re

from copied_project import ROOT
from placeholders import Placeholders

from pipeline.core import artifacts as products
from pipeline.workflow.failures import stages_of
from pipeline.workflow.rules import product_of

ELSEWHERE = {"train", "calibrate", "check-data", "plan", "cost", "site", "view-{view}"}
"""A training records how it ended, and these make no result that a report reads."""
KINDS = ("Raw", "Spoken", "Prepared", "Vocabulary", "Encoded", "Outputs", "Scores", "LayerTimes", "ModelSizes")
REPORTS = ("Table", "Figure", "Claims")


def logs_in_rules() -> set[str]:
    """Return the names of all logs, with wildcards."""
    text = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    names = re.findall(r'logs/(\S+)\.log"', text)
    return {name.replace("{{", "{").replace("}}", "}") for name in names}


def test_the_log_of_every_rule_is_looked_at():
    made = [product_of(getattr(products, kind), Placeholders()) for kind in KINDS + REPORTS]
    looked_at = {stage for product in made for stage in stages_of(product)}
    assert logs_in_rules() - ELSEWHERE <= looked_at
    assert looked_at <= logs_in_rules()
