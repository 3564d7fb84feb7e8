# Four papers from raw data to their printed tables. This file is the table of contents: each stage has its file.
import atexit
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

from pipeline.core.errors import ENTER_ENVIRONMENT

try:
    from pipeline.core.errors import UserError
    from pipeline.core.schema import load_yaml
    from pipeline.papers.project import Project
    from pipeline.workflow.rules import Rules
    from pipeline.workflow.start import SITE, PlannedJob, after_failure, before_first_job, print_dry_run
    from pipeline.workflow.targets import refuse_names_of_rules, refuse_odd_folders, set_options
    from pipeline.workflow.times import restore_times
    from pipeline.workflow.failures import ExecutorErrorHandler
except ModuleNotFoundError as error:
    if str(error.name).startswith("pipeline"):
        raise
    raise WorkflowError(f"Python package {error.name!r} is missing; {ENTER_ENVIRONMENT}") from None

min_version("9.0")


# Read strictly first: Snakemake takes the last of two equal keys.
try:
    load_yaml(Path(workflow.basedir) / "config.yaml")
except UserError as error:
    raise WorkflowError(str(error)) from None


configfile: "config.yaml"


try:
    project = Project(workflow.basedir, config)
    refuse_names_of_rules(project)
    refuse_odd_folders(project)
    rules_of, layout = Rules(project), project.layout
    project.dataset_records
except UserError as error:
    raise WorkflowError(str(error)) from None

os.environ |= {
    "REPRISE_SETTINGS": set_options(project),  # of commands that stages advise (pipeline/core/files.py)
    # A mirror's address may hold a password: Snakemake prints and keeps the variable, which commands expand.
    "REPRISE_MIRROR": project.config.mirror or "",
}

# `python` in a rule is the interpreter Snakemake runs under, activated or not, here and in cluster jobs.
shell.prefix(f"set -euo pipefail; export PATH={os.path.dirname(sys.executable)!r}:$PATH; ")


include: "workflow/rules/common.smk"


if workflow.is_main_process:
    restore_times(project)
    for fault in project.dataset_records.faults.values():
        logger.warning(f"{fault}; what needs this dataset can't be made")


report: "workflow/report/workflow.rst"


# What fetches needs the network, what is launched waits at home, and the others take seconds or speak to the user.
localrules:
    all,
    fetch,
    download,
    train,
    decode,
    score,
    layer_times,
    model_sizes,
    table,
    layer_table,
    figure,
    claims,
    site,
    view,
    calibrate,
    check_data,
    plan,
    cost,


words = ExecutorErrorHandler()
logger.addHandler(words)


if workflow.is_main_process:
    atexit.register(lambda: print_dry_run(SCALE, planned_jobs()) if workflow.dag and workflow.dryrun else None)


onstart:
    from pipeline.planning.check_data import check  # brings an HTTP client, which nothing else here needs

    try:
        before_first_job(rules_of, planned_jobs(), check)
    except UserError as error:
        raise WorkflowError(str(error)) from None


onerror:
    atexit.register(after_failure, words.failed_logs, SETTINGS)


for target, papers in {"all": project.reproduced, **{paper: [paper] for paper in project.papers}}.items():

    rule:
        """Every table, claim and figure of a paper, or of every paper that is reproduced and the site of them."""
        name:
            target
        default_target: target == "all"
        input:
            rules_of.reports(papers),
            SITE if target == "all" else [],


rule unknown:
    """Say why nothing makes a target in results/ or of a plain name, with those that exist and the nearest."""
    input:
        shown(rules_of.refuse_target),
    output:
        "{target}",
    wildcard_constraints:
        target=rules_of.unknown_targets(),


include: "workflow/rules/corpora.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/reports.smk"
include: "workflow/rules/planning.smk"


# Every other job has what it needs in minutes, and must not wait until the last training has begun.
for one in workflow.rules:
    if one.name != "train":
        one.priority = 1
