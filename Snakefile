# Four papers from raw data to their printed tables. This file is the table of contents: each stage has its file.
import atexit
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

from pipeline.core.errors import UserError
from pipeline.core.schema import load_yaml
from pipeline.workflow.times import restore_times

min_version("9.0")


# Read strictly first: Snakemake takes the last of two equal keys.
try:
    load_yaml(Path(workflow.basedir) / "config.yaml")
except UserError as error:
    raise WorkflowError(str(error)) from None


configfile: "config.yaml"


# `python` in a rule is the interpreter Snakemake runs under, activated or not, here and in cluster jobs.
shell.prefix(f"set -euo pipefail; export PATH={os.path.dirname(sys.executable)!r}:$PATH; ")


include: "workflow/rules/common.smk"


if workflow.is_main_process:
    restore_times(project)
    for fault in datasets.faults.values():
        logger.warning(f"{fault}; what needs this dataset can't be made")


report: "workflow/report/workflow.rst"


# What fetches needs the network, what is launched waits at home, and the others take seconds or speak to the user.
localrules:
    all,
    fetch,
    download,
    collect_trees,
    collect_text,
    collect_recordings,
    describe_run,
    train,
    average,
    translate,
    perplexity,
    parse,
    perplexity_elsewhere,
    tune,
    transcribe,
    gate_values,
    attention_maps,
    alignments,
    layer_times,
    model_sizes,
    score,
    score_trees,
    score_speech,
    phenomena,
    table,
    example_table,
    transcript_table,
    layer_table,
    figure,
    claims,
    site,
    view,
    calibrate,
    check_data,
    plan,
    cost,


logger.addHandler(WordsOfExecutor())


onstart:
    note_driver(workflow.dag.needrun_jobs())
    check_files(workflow.dag.needrun_jobs())
    place_orders(workflow.dag.needrun_jobs())


onerror:
    atexit.register(say_failures, workflow.scheduler.failed, list(workflow.dag.jobs))


rule all:
    """Every table, claim and figure of every paper that is reproduced, at the configured scale, and the site of them."""
    default_target: True
    input:
        reports(*project.reproduced),
        SITE,


for paper in project.papers:

    rule:
        name:
            paper
        input:
            reports(paper),


include: "workflow/rules/corpora.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/decoding.smk"
include: "workflow/rules/probes.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/reports.smk"
include: "workflow/rules/planning.smk"


begin_before_trainings(workflow.rules)
check_targets(rule.name for rule in workflow.rules)
