"""A dry run ends in a short sum of its jobs."""

import random
from collections import Counter

from pipeline.workflow.start import PlannedJob, dry_run_lines

RULES = ["train", "decode", "score", "table", "figure", "claims", "site", "download", "encode", "prepare"]


def test_dry_run_sums_up_jobs_in_ten_lines_at_most():
    draw = random.Random(7)
    for _ in range(50):
        rules = draw.choices(RULES, k=draw.randrange(1, 200))
        papers = [draw.choice(["attention", "weighted"]) for _ in rules]
        jobs = [
            PlannedJob(rule, "", [f"work/demo/runs/{paper}/base/data/seed1-0/done.json"])
            for rule, paper in zip(rules, papers, strict=True)
        ]
        lines = dry_run_lines("demo", [*jobs, PlannedJob("all", "", [])])
        text = "\n".join(lines)
        assert len(lines) <= 10 and lines[0] == f"In short, at scale demo: {len(jobs)} job{'s' * (len(jobs) > 1)}"
        for rule, count in Counter(rules).items():
            assert f"{count} {rule}" in text or f"  {rule:8} {count}" in text
        trained = Counter(paper for rule, paper in zip(rules, papers, strict=True) if rule == "train")
        assert all(f"{paper} {count}" in text for paper, count in trained.items())


def test_dry_run_with_nothing_to_make_has_no_summary():
    assert dry_run_lines("demo", [PlannedJob("all", "", [])]) == []
