"""The executor's error becomes the last line of a stage's log that has no error of its own."""

import logging
import os
from types import SimpleNamespace

import pytest

from pipeline.workflow.failures import ExecutorErrorHandler, logged_error

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


@pytest.mark.parametrize("record", [{"event": "job_info"}, {"message": None}, {"message": ""}])
def test_executor_messages_without_failure_are_dropped(tmp_path, record):
    ExecutorErrorHandler().emit(failed(tmp_path / "encode.log", **record))
    assert not list(tmp_path.iterdir())


def test_a_log_that_can_not_be_written_does_not_end_the_workflow():
    ExecutorErrorHandler().emit(failed("/proc/none/encode.log"))


def test_slurms_own_logs_are_left_alone(tmp_path):
    ExecutorErrorHandler().emit(failed(tmp_path / ".snakemake/slurm_logs/rule_encode/1.log"))
    assert not list(tmp_path.iterdir())
