"""The explanation of the architecture lists the files to read for each flow."""

import re

import pytest

from pipeline.core.provenance import ROOT

PAGE = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8").partition("## Files to read")[2]
FLOWS = dict(re.findall(r"^### (.+)\n((?:(?!###).*\n)+)", PAGE, re.MULTILINE))
MOST = {"training": 30, "claim": 12, "cell": 14, "hypothesis": 9, "status": 10}
"""Files to open to follow a thing."""


def test_every_flow_is_listed():
    assert len(FLOWS) == len(MOST)


@pytest.mark.parametrize("flow", FLOWS)
def test_files_of_a_flow_exist_and_are_few(flow):
    files = re.findall(r"^\| `(.+?)` \|", FLOWS[flow], re.MULTILINE)
    (most,) = (most for word, most in MOST.items() if word in flow.split(",")[0])
    assert 0 < len(files) == len(set(files)) <= most
    assert [file for file in files if not (ROOT / file).is_file()] == []
