# How rules ask the project: what they read (pipeline/workflow/graph.py), where it lies (pipeline/core/layout.py), and how a
# stage is called. What the files hold is the pipeline's business.
import json
import os
import shlex
import subprocess
import sys
import time
from itertools import takewhile
from pathlib import Path

from pipeline.planning.devices import require_bfloat16
from pipeline.cluster.orders import place
from pipeline.core.disk import require_writable
from pipeline.core.errors import UserError
from pipeline.workflow.graph import Graph, datasets_in
from pipeline.papers.project import Project
from pipeline.core.layout import Layout
from pipeline.core.artifacts import (
    Alignments,
    AttentionMaps,
    Averaged,
    Calibration,
    Claims,
    Encoded,
    ExampleTable,
    Figure,
    Gates,
    LayerTable,
    LayerTimes,
    ModelSizes,
    Parse,
    Prepared,
    Raw,
    Score,
    Specification,
    Spoken,
    Table,
    Trained,
    TranscriptTable,
    Transcript,
    Translation,
    Tuned,
    Vocabulary,
)
from pipeline.stages import parse as parsed
from pipeline.planning.order import operations
from pipeline.workflow.drivers import drive, forget_driver
from pipeline.workflow.failures import was_taken_over
from pipeline.workflow.other_settings import said_of_other
from pipeline.workflow.words_of_executor import WordsOfExecutor
from pipeline.workflow.targets import refuse_names_of_rules, refuse_odd_folders, set_options, unknown_target
from pipeline.workflow.wildcards import Placeholders, product_of

try:
    project = Project(workflow.basedir, config)
    refuse_names_of_rules(project)
    refuse_odd_folders(project)
    graph, layout = Graph(project), project.layout
    patterns = Layout(layout.work, layout.scale, lambda run: "{content}", lambda dataset: "{content}")
    datasets = project.dataset_records
except UserError as error:
    raise WorkflowError(str(error)) from None

os.environ |= {"REPRISE_SETTINGS": set_options(project)}  # of commands that stages advise (pipeline/core/files.py)
SCALE, BEGUN = project.config.scale, time.time()
DATASET = ancient("workflow/datasets/{dataset}.yaml")  # what matters of it is in the name of the corpus
REPORTS = ("table", "example_table", "transcript_table", "layer_table", "figure", "claims")
SITE = "results/site/index.html"
PRINTED = "workflow/papers/{paper}/{table}.csv"
OPTIONS = {
    "downloads": [str(layout.downloads)],
    "settings": [word for key, value in config.items() for word in ("--set", f"{key}={json.dumps(value)}")],
    "mirror": ["--mirror", project.config.mirror] if project.config.mirror else [],
    "packages": [word for name, at in project.licensed.items() for word in ("--package", f"{name}={at}")],
}


LAUNCH = (
    "python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads}"
    " --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus}"
)
# One of the stages that read the weights of a run: on Slurm all of them are done in one job (cluster/orders.py).
TOGETHER = f"{LAUNCH} --together --folder {{params.job:q}} --reads {{input:q}} --makes {{output:q}}"


def either(names):
    """A wildcard's pattern: one of these names; of none, what nothing matches."""
    return "|".join(sorted(names)) or "(?!)"


def collected_by(stage):
    """Datasets whose raw data a stage brings together."""
    return either(name for name, record in datasets.items() if record.collector == stage)


def of_form(*forms):
    """Datasets of which training reads sentences, trees, speech or characters."""
    return either(name for name, record in datasets.items() if record.form in forms)


def written(form):
    """Datasets of a form that the grammar writes: of these it is known what is right."""
    return either(name for name, record in datasets.items() if record.form == form and record.collector == "grammar")


def shown_on_top(paper):
    """What of the configured paper can be asked for at the top of results/: every table, and the claims."""
    return {*paper.tables, *paper.examples, *paper.transcripts, *paper.layer_costs, "phenomena", "claims"}


def shown(section):
    """Names under a section of a paper.yaml, each in its own paper's folder only."""
    return either(
        f"(?<=/{paper}/){name}" for paper in project.papers for name in getattr(project.papers[paper], section)
    )


wildcard_constraints:
    paper=either(project.papers),
    figure=r"figure\d+",
    view=either(shown_on_top(project.papers[project.config.paper])),
    choice="distant|pronoun|contrast",
    system=r"[\w-]+",
    dataset=r"[\w-]+",
    scored_on=r"[\w-]+",
    seed=r"\d+",
    content="[0-9a-f]{8}",
    decoding=r"[\w-]+",
    split=r"dev|test\d?",


def pattern(kind, **fixed):
    """Where products of a kind lie, with wildcards."""
    return str(patterns.path(product_of(kind, Placeholders(fixed))))


def asked(kind, wildcards, **fixed):
    """The product that a rule's wildcards name, as today's settings make it."""
    product = product_of(kind, dict(wildcards.items()) | fixed)
    path = str(layout.path(product))
    if (content := wildcards.get("content")) and f"-{content}/" not in path:
        raise WorkflowError(f"-{content}/: the settings or data of this changed; it is now {path}")
    return product


def needs(kind, **fixed):
    """The input function of the rule that makes products of a kind."""

    def paths(wildcards):
        product = asked(kind, wildcards, **fixed)
        if not graph.has(product):  # one of several rules that could make a file of this name
            return {}
        try:
            return {
                name: [str(layout.path(one)) for one in found] if isinstance(found, list) else str(layout.path(found))
                for name, found in graph.inputs(product).items()
            }
        except UserError as error:  # of a faulty dataset
            raise WorkflowError(str(error)) from None

    return paths


def log_of(kind, stage, *distinct):
    """The log of the stage that makes products of a kind, with wildcards."""
    return str(patterns.log(product_of(kind, Placeholders(scored_on=None)), stage, *distinct))


def job_of(kind, stage, *distinct):
    """The folder of the cluster job that makes products of a kind, with wildcards."""
    return str(patterns.job(product_of(kind, Placeholders(scored_on=None)), stage, *distinct))


def stage(template, **functions):
    """A stage with its arguments: a `params` function that gives a list of words, to be quoted where it is used.

    template: words, with {input.…}, {output…}, {wildcards.…} as in a shell command. A word that is the name of one of
    `functions` of the wildcards and the input, or of OPTIONS, in braces, stands for what that gives: any number of words.
    """

    def given(word, wildcards, input, output):
        name = word.strip("{}")
        if word != f"{{{name}}}" or name not in {**functions, **OPTIONS}:
            return [word.format(wildcards=wildcards, input=input, output=output)]
        found = functions[name](wildcards, input) if name in functions else OPTIONS[name]
        return found if isinstance(found, list) else [found]

    return lambda wildcards, input, output: [
        one for word in template.split() for one in given(word, wildcards, input, output)
    ]


def folder(wildcards, input=None):
    """Of the run."""
    return str(layout.run(asked(Trained, wildcards).run))


def folder_to_train(wildcards, resources):
    """Of a run that the GPUs which are asked for can train; what is trained of it with other settings is named. A dry
    run tells of both, too."""
    run = asked(Trained, wildcards).run
    if layout.path(Trained(run)).exists():
        return str(layout.run(run))
    if resources.launcher == "slurm" and resources.gpus:
        try:
            require_bfloat16(f"{run.paper}/{run.system}", project.run_spec(run).training.precision, resources.sbatch)
        except UserError as error:
            raise WorkflowError(str(error)) from None
    if said := said_of_other(project, run):
        logger.info(said)
    return str(layout.run(run))


def corpus_folder(wildcards, input=None):
    return str(layout.corpus(wildcards.dataset))


def folder_of(name):
    """The folder that one of the inputs lies in."""
    return lambda wildcards, input: os.path.dirname(getattr(input, name))


def weights_file(wildcards, input):
    """What a decoding reads. Final weights lie beside their record: they survive a failure as no rule declares them."""
    given = str(input.get("weights", input.get("trained")))
    return given if given.endswith(".safetensors") else str(layout.weights(asked(Trained, wildcards).run))


def language_model(wildcards, input):
    """The option that names the run of a decoding's language model."""
    return ["--language-model", os.path.dirname(input.language_model)] if "language_model" in input.keys() else []


def tuned(wildcards, input):
    """The option that names the weights which were chosen for a decoding."""
    return ["--tuned", input.tuned] if "tuned" in input.keys() else []


def averaged_checkpoints(wildcards, input=None):
    """The option that names which of a run's checkpoints are averaged, and their number."""
    decoding = project.decoding(wildcards.paper, wildcards.system, wildcards.decoding)
    return [f"--{decoding.averaged}", str(decoding.average_last)]


def decoding_settings(wildcards, input=None):
    """One named decoding as JSON; a change here redoes decoding, not training."""
    return json.dumps(project.decoding(wildcards.paper, wildcards.system, wildcards.decoding).model_dump())


def run_specification(wildcards, input=None):
    """All {settings} of one run as JSON; a change here, and nothing else, trains it anew."""
    return json.dumps(project.run_yaml(asked(Trained, wildcards).run))


def systems_as_printed(wildcards):
    """What a paper's model sizes are counted from, as JSON: its tables, and systems, which may be based on any paper's."""
    systems = [record.model_dump(include={"systems"}) for record in project.papers.values()]
    tables = project.papers[wildcards.paper].model_dump(include={"tables"})
    return json.dumps([systems, tables, project.printed[wildcards.paper]])


def as_json(section):
    """What a paper says under a section of one of its reports; a change of it, of seeds or of the scale rewrites it."""

    def content(wildcards):
        record = project.papers[wildcards.paper]
        name = wildcards.get("table", wildcards.get("figure"))
        notes = [note.model_dump() for note in [*record.readings.values(), *record.deviations]]
        entry = getattr(record, section)[name].model_dump()
        return json.dumps([entry, notes, project.scale.model_dump(), project.config.seed_list])

    return content


def reports(*papers):
    """Every table, claim and figure of some papers."""
    return [str(layout.path(report)) for report in graph.reports(papers)]


def fetched(wildcards):
    """What the corpora of every paper that is reproduced are made from, where no grammar writes it."""
    named = datasets_in(graph.closure(graph.reports(project.reproduced)))
    return [str(layout.path(Raw(name))) for name in named if datasets[name].collector not in (None, "grammar")]


def length(wildcards):
    """Of a training, below 1: which computes most begins first."""
    return operations(project.run_spec(asked(Trained, wildcards).run)) / 1e24


def begin_before_trainings(rules):
    """All else has what it needs in minutes, and must not wait until the last training has begun."""
    for one in rules:
        if one.name != "train":
            one.priority = 1


def resource(kind, name):
    """A resource of one kind of job, from the scale's file."""
    return getattr(project.scale.resources[kind], name)


def note_driver(jobs):
    """Stop where a living snakemake makes one of the files that are to be made. What only prints drives nothing.

    The site is of all scales: drivers of several make it, the last one of all that there is.
    """
    try:
        if makes := {str(path) for job in jobs for path in job.output} - {SITE}:
            drive(makes)
    except UserError as error:
        raise WorkflowError(str(error)) from None


def check_files(jobs):
    """Stop before any job starts when a file that one of them reads can't be had, or none can be written."""
    from pipeline.planning.check_data import check  # brings an HTTP client, which nothing else here needs

    fetching = {"download", "collect_trees", "collect_text", "collect_recordings", "features"}
    try:
        require_writable(layout.work)
        check(project, sorted({job.wildcards.dataset for job in jobs if job.rule.name in fetching}))
    except UserError as error:
        raise WorkflowError(str(error)) from None


def place_orders(jobs):
    """Order all that is to be done together before anything runs, so that the first job of a run finds all of it."""
    for job in jobs:
        if "--together" in (job.shellcmd or "") and job.resources.launcher == "slurm":
            _, _, _, *words = takewhile(lambda word: not word.startswith(">"), shlex.split(job.shellcmd))
            args = parsed(words)
            place(args.folder, args.command, args.makes, args.reads)


def say_failures(failed, jobs):
    """Make what was asked for of what is there, and say of each failed job what it said last, and where.

    Called once Snakemake has said all that it says, which `--quiet` cuts short. jobs: all that were to be done.
    """
    logs = sorted({str(log) for job in failed for log in job.log})
    reports = sorted({str(job.output[0]) for job in jobs if job.rule.name in REPORTS})
    if failed and reports:
        forget_driver()  # nobody sees to what is left
        command = [sys.executable, "-m", "reprise", "results", *reports, *OPTIONS["settings"]]
        subprocess.run(command, stdout=sys.stderr, check=False)
    for path in logs:
        print(f"{last_words(path)} (log: {path})", file=sys.stderr, flush=True)


def last_words(path):
    """The line in which a stage said why it failed, or what it said last.

    Of a training that another driver has taken over it says that: what its log says then is the other's.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as log:
            said = [line.strip() for line in log if line.strip()]
    except OSError:
        said = []
    errors = [line for line in said if line.startswith("error: ")]
    if not errors and Path(path).name == "train.log" and was_taken_over(run := Path(path).parents[1], BEGUN):
        return f"error: {run}: another job or process, of another driver perhaps, has taken this run over; it goes on there"
    return (errors or [f"error: failed, saying last: {line}" for line in said] or ["error: failed without a word"])[-1]


def check_targets(rules):
    """Stop with the names that exist, and the nearest, when nothing makes one of the targets.

    Snakemake knows its targets after it has read this file only, so they are looked for among its words: results
    anywhere, and whatever stands behind `--`.
    """
    words = sys.argv[1:]
    last = words[words.index("--") + 1 :] if "--" in words else []
    # A word behind a long option may be its value, as that of --report is.
    paths = [word for before, word in zip(["", *words], words) if word.startswith("results/") and before[:2] != "--"]
    named = dict.fromkeys(paths + last)
    if faults := [fault for target in named if (fault := unknown_target(project, target, frozenset(rules)))]:
        raise WorkflowError("\n".join(faults))
