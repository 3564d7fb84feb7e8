# Input functions and wildcard constraints, which call pipeline/workflow/rules.py.
import json
import os

from pipeline.core import artifacts
from pipeline.core.errors import UserError
from pipeline.planning.devices import require_bfloat16
from pipeline.workflow.rules import training_flops
from pipeline.workflow.runs import describe_other_training

SCALE = project.config.scale
WORK = f"{layout.work}/{SCALE}"
CORPUS = f"{layout.work}/corpora/{{dataset}}-{{content}}"
RUN = f"{WORK}/runs/{{paper}}/{{system}}/{{dataset}}/seed{{seed}}-{{content}}"
DATASET = ancient("workflow/datasets/{dataset}.yaml")  # the settings that matter are in the name of the corpus
MIRROR = ["--mirror", "$REPRISE_MIRROR"] if project.config.mirror else []
SHOWN_CONFIG = config | ({"mirror": "$REPRISE_MIRROR"} if project.config.mirror else {})
SETTINGS = [word for key, value in SHOWN_CONFIG.items() for word in ("--set", f"{key}={json.dumps(value)}")]
PACKAGES = [word for name, at in project.licensed.items() for word in ("--package", f"{name}={at}")]
# GPU work is launched here, or as a Slurm job, which the next launcher adopts if this process is killed.
LAUNCH = (
    "python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads}"
    " --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --trainings-per-gpu {resources.jobs_per_gpu}"
    " --gpus {resources.gpus}"
)


def planned_jobs():
    """List the jobs that will run. Before it starts, Snakemake has no public list of them with their files."""
    return [
        PlannedJob(job.rule.name, job.wildcards.get("dataset", ""), [str(path) for path in job.output])
        for job in workflow.dag.needrun_jobs(exclude_finished=False)
    ]


def wanted_gpus():
    """Return the GPUs of the planned job that wants the most."""
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    return max((job.resources.get("gpus", 0) for job in jobs), default=0)


def alternatives(names):
    """Return a wildcard's pattern that matches any of some names; without names it matches nothing."""
    return "|".join(sorted(names)) or "(?!)"


def datasets_where(condition):
    """Return a wildcard's pattern that matches the datasets that fulfil a condition."""
    return alternatives(name for name, record in project.dataset_records.items() if condition(record))


def described(*sections):
    """Return the pattern of the names in some sections of each paper.yaml, in the folder of that paper."""
    return alternatives(
        f"(?<=/{paper}/){name}"
        for paper, record in project.papers.items()
        for section in sections
        for name in getattr(record, section)
    )


def shown_on_top(paper):
    """Return the reports of a paper that have a view at the top of results/: every table, and the claims."""
    return {*paper.tables, *paper.examples, *paper.transcripts, *paper.layer_costs, "claims"}


wildcard_constraints:
    paper=alternatives(project.papers),
    figure=described("figures"),
    view=alternatives(shown_on_top(project.papers[project.config.paper])),
    system=r"[\w-]+",
    dataset=r"[\w-]+",
    seed=r"\d+",
    content="[0-9a-f]{8}",
    decoding=r"[\w-]+",


def from_wildcards(function, *arguments):
    """Return an input or params function that calls `function`; Snakemake prints its UserErrors unchanged."""

    def of(wildcards):
        try:
            return function(*arguments, dict(wildcards.items()))
        except UserError as error:
            raise WorkflowError(str(error)) from None

    return of


def needs(*kinds):
    """Return the input function of the rule that makes the artifacts of some kinds."""
    return from_wildcards(lambda wildcards: [path for kind in kinds for path in functions.inputs(kind, wildcards)])


def measured_by(kind):
    """Return the input function of the dataset files that outputs or scores read."""
    return lambda wildcards: ancient(from_wildcards(functions.datasets, kind)(wildcards))


def resource(kind, name):
    """Return a resource of one kind of job, from the scale's file."""
    return getattr(project.scale.resources[kind], name)


def priority(wildcards):
    """Return the priority of a training, below 1: the largest one starts first."""
    return training_flops(project.run_spec(functions.run(dict(wildcards.items())))) / 1e24


def folder_to_train(wildcards, resources):
    """Return the folder of a run; check that the GPUs can train it, and log a training with other settings."""
    run = from_wildcards(functions.run)(wildcards)
    if not layout.path(artifacts.Trained(run)).exists():
        if resources.launcher == "slurm" and resources.gpus:
            precision = project.run_spec(run).training.precision
            system = f"{run.paper}/{run.system}"
            from_wildcards(lambda _: require_bfloat16(system, precision, resources.sbatch))(wildcards)
        if other := describe_other_training(project, run):
            logger.info(other)
    return str(layout.run(run))
