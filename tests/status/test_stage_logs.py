"""Causes of failed jobs, read from logs of stages and from the messages of executors."""

import logging
import os
import re
import traceback
from types import SimpleNamespace

import pytest
from fabricated import touch
from made_records import parallel_corpus, parallel_split
from real_project import real_project
from rule_files import TEXT, Placeholders

from pipeline.core import artifacts
from pipeline.core.disk import format_bytes
from pipeline.core.records.corpus import PairsReport, PreparedPairs
from pipeline.data.processes import map_in_order
from pipeline.workflow.failures import ExecutorErrorHandler, first_line, logged_error, stages_of
from pipeline.workflow.rules import artifact_of
from reprise.cli.report import line_at, report

ELSEWHERE = {"train", "calibrate", "check-data", "plan", "cost", "site", "view-{view}"}
"""A training records how it ended, and these make no result that a report reads."""
KINDS = ("Raw", "Spoken", "Prepared", "Vocabulary", "Encoded", "Outputs", "Scores", "LayerTimes", "ModelSizes")
REPORTS = ("Table", "Figure", "Claims")


def logs_in_rules() -> set[str]:
    """Return the names of all logs, with wildcards."""
    return {name.replace("{{", "{").replace("}}", "}") for name in re.findall(r'logs/(\S+)\.log"', TEXT)}


def test_the_log_of_every_rule_is_looked_at():
    made = [artifact_of(getattr(artifacts, kind), Placeholders()) for kind in KINDS + REPORTS]
    looked_at = {stage for artifact in made for stage in stages_of(artifact)}
    assert logs_in_rules() - ELSEWHERE <= looked_at
    assert looked_at <= logs_in_rules()


EVIL, HARMLESS = "\x1b]0;title\x07 \x1b[2J", "\\x1b]0;title\\x07 \\x1b[2J"


def test_texts_of_logs_and_corpora_move_no_cursor(tmp_path):
    (tmp_path / "train.log").write_text(f"error: {EVIL}\n")
    assert first_line(logged_error(tmp_path / "train.log")[0]) == HARMLESS
    (tmp_path / "train.en").write_text(f"a\n{EVIL}\n")
    assert line_at(tmp_path / "train.en", 2) == HARMLESS


def test_crash_in_a_worker_process_is_located_there(tmp_path):
    with pytest.raises(TypeError) as crash:
        list(map_in_order(format_bytes, ["no number"], 2))
    log = touch(tmp_path / "prepare.log", "".join(traceback.format_exception(crash.value)))
    assert logged_error(log)[1].startswith("pipeline/core/disk.py, line ")


@pytest.mark.parametrize("freed", [False, True])
def test_report_on_a_dataset_does_not_need_freed_text(tmp_path, freed):
    """`free --remove text` removes the raw lines, too, whose numbers the report has."""
    project = real_project({"work": str(tmp_path), "scale": "demo"})
    dataset = project.dataset_records["grammar-en-de"]
    counts = {"read": 2, "kept": 1, "repaired": {}, "src_words": 1, "tgt_words": 1}
    rejected = {"rejected": {"empty": 1}, "rejected_lines": {"empty": [2]}}
    split = PairsReport.model_validate(counts | rejected)
    PreparedPairs(dataset="toy", tokeniser="moses", splits=dict.fromkeys(dataset.split_names, split)).write(
        project.layout.path(artifacts.Prepared(dataset.name))
    )
    encoded = project.layout.path(artifacts.Encoded(dataset.name))
    splits = dict.fromkeys(dataset.split_names, parallel_split())
    parallel_corpus(60, splits=splits).write(encoded)
    for name in dataset.split_names:
        for language in () if freed and name == "train" else ("en", "de"):
            touch(encoded.parents[1] / f"raw/{name}.{language}", f"a\nb {language}\n")
    lines = [line.strip() for line in report(project, dataset) if line.startswith("    line")]
    train = "line 2, whose text was removed to free disk space" if freed else "line 2: b en | b de"
    assert lines == [train, *["line 2: b en | b de"] * (len(dataset.split_names) - 1)]


ENDED = "SLURM-job '12' failed, SLURM status is: 'OUT_OF_MEMORY'. For further error details see the cluster/cloud log"


def failed(log, message=ENDED, event="job_error"):
    said = {"event": SimpleNamespace(value=event), "rule_msg": message, "log": [str(log)]}
    return logging.makeLogRecord(said)


def test_stage_that_ended_silently_gets_the_message_of_slurm(tmp_path):
    log = tmp_path / "logs/encode.log"
    ExecutorErrorHandler().emit(failed(log))
    assert logged_error(log) == ("SLURM-job '12' failed, SLURM status is: 'OUT_OF_MEMORY'.", "")


def test_error_of_the_stage_is_kept_unless_it_is_from_an_old_try(tmp_path):
    log = tmp_path / "encode.log"
    log.write_text("error: its own reason\n")
    words = ExecutorErrorHandler()
    words.since -= 60
    words.emit(failed(log))
    assert logged_error(log) == ("its own reason", "")
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
