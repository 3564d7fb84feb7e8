"""Causes of failed jobs, read from logs of stages and from the messages of executors."""

import logging
import os
import re
from types import SimpleNamespace

import pytest
from placeholders import Placeholders
from rule_files import TEXT

from pipeline.core import artifacts as products
from pipeline.workflow.failures import ExecutorErrorHandler, first_line, logged_error, stages_of
from pipeline.workflow.rules import product_of
from reprise.cli.report import line_at

ELSEWHERE = {"train", "calibrate", "check-data", "plan", "cost", "site", "view-{view}"}
"""A training records how it ended, and these make no result that a report reads."""
KINDS = ("Raw", "Spoken", "Prepared", "Vocabulary", "Encoded", "Outputs", "Scores", "LayerTimes", "ModelSizes")
REPORTS = ("Table", "Figure", "Claims")


def logs_in_rules() -> set[str]:
    """Return the names of all logs, with wildcards."""
    return {name.replace("{{", "{").replace("}}", "}") for name in re.findall(r'logs/(\S+)\.log"', TEXT)}


def test_the_log_of_every_rule_is_looked_at():
    made = [product_of(getattr(products, kind), Placeholders()) for kind in KINDS + REPORTS]
    looked_at = {stage for product in made for stage in stages_of(product)}
    assert logs_in_rules() - ELSEWHERE <= looked_at
    assert looked_at <= logs_in_rules()


EVIL, HARMLESS = "\x1b]0;title\x07 \x1b[2J", "\\x1b]0;title\\x07 \\x1b[2J"


def test_the_cause_of_a_failure_moves_no_cursor(tmp_path):
    (tmp_path / "train.log").write_text(f"error: {EVIL}\n")
    assert first_line(logged_error(tmp_path / "train.log")[0]) == HARMLESS


def test_an_example_of_a_corpus_moves_no_cursor(tmp_path):
    (tmp_path / "train.en").write_text(f"a\n{EVIL}\n")
    assert line_at(tmp_path / "train.en", 2) == HARMLESS


ENDED = "SLURM-job '12' failed, SLURM status is: 'OUT_OF_MEMORY'. For further error details see the cluster/cloud log"


def failed(log, message=ENDED, event="job_error"):
    said = {"event": SimpleNamespace(value=event), "rule_msg": message, "log": [str(log)]}
    return logging.makeLogRecord(said)


def test_stage_that_ended_silently_gets_the_message_of_slurm(tmp_path):
    log = tmp_path / "logs/encode.log"
    ExecutorErrorHandler().emit(failed(log))
    assert logged_error(log) == ("SLURM-job '12' failed, SLURM status is: 'OUT_OF_MEMORY'.", False)


def test_error_of_the_stage_is_kept_unless_it_is_from_an_old_try(tmp_path):
    log = tmp_path / "encode.log"
    log.write_text("error: its own reason\n")
    words = ExecutorErrorHandler()
    words.since -= 60
    words.emit(failed(log))
    assert logged_error(log) == ("its own reason", False)
    os.utime(log, (1e9, 1e9))
    words.emit(failed(log))
    assert "OUT_OF_MEMORY" in logged_error(log)[0]


@pytest.mark.parametrize(
    ("log", "record"),
    [
        *(("encode.log", record) for record in ({"event": "job_info"}, {"message": None}, {"message": ""})),
        (".snakemake/slurm_logs/rule_encode/1.log", {}),
    ],
)
def test_messages_without_failure_and_slurms_logs_are_dropped(tmp_path, log, record):
    ExecutorErrorHandler().emit(failed(tmp_path / log, **record))
    assert not list(tmp_path.iterdir())


def test_a_log_that_can_not_be_written_does_not_end_the_workflow():
    ExecutorErrorHandler().emit(failed("/proc/none/encode.log"))
