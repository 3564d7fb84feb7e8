"""Texts of logs and corpora are shown without control characters of a terminal."""

from pipeline.workflow.failures import first_line, logged_error
from reprise.cli.report import line_at

EVIL, HARMLESS = "\x1b]0;title\x07 \x1b[2J", "\\x1b]0;title\\x07 \\x1b[2J"


def test_the_cause_of_a_failure_moves_no_cursor(tmp_path):
    (tmp_path / "train.log").write_text(f"error: {EVIL}\n")
    assert first_line(logged_error(tmp_path / "train.log")[0]) == HARMLESS


def test_an_example_of_a_corpus_moves_no_cursor(tmp_path):
    (tmp_path / "train.en").write_text(f"a\n{EVIL}\n")
    assert line_at(tmp_path / "train.en", 2) == HARMLESS
