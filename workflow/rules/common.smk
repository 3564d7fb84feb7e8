# The only functions of the workflow: they say which files a table needs. What the files hold is pipeline's business.
import json
import shlex

from pipeline.errors import UserError
from pipeline.experiment.project import Project, RunId

try:
    project = Project(workflow.basedir, config)
except UserError as error:
    raise WorkflowError(str(error)) from None

WORK = project.config.work
SCALE = project.config.scale
RUN = f"{WORK}/{SCALE}/runs/{{paper}}/{{system}}/{{dataset}}/seed{{seed}}"
CORPUS = f"{WORK}/corpora/{{dataset}}"
SETTINGS = " ".join(f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in config.items())


wildcard_constraints:
    paper="|".join(project.papers),
    table=r"table\d+",
    system=r"[\w-]+",
    dataset=r"[\w-]+",
    seed=r"\d+",
    decoding=r"[\w-]+",
    split="dev|test",


def tables(paper=None):
    """Every table of one paper, or of all."""
    names = [paper] if paper else list(project.papers)
    return [f"results/{SCALE}/{name}/{table}.csv" for name in names for table in project.papers[name].tables]


def run_of(wildcards):
    return RunId(wildcards.paper, wildcards.system, wildcards.dataset, int(wildcards.seed))


def run_specification(wildcards):
    """All settings of one run as JSON; a change here, and nothing else, trains it anew."""
    return json.dumps(project.run_spec(run_of(wildcards)).model_dump())


def decoding_settings(wildcards):
    """One named decoding as JSON; a change here redoes decoding, not training."""
    return json.dumps(project.decoding(wildcards.paper, wildcards.system, wildcards.decoding).model_dump())


def table_inputs(wildcards):
    """The trainings and scores that one table stands on."""
    needed = []
    for cell in project.cell_runs(wildcards.paper, wildcards.table):
        folder = f"{WORK}/{SCALE}/runs/{cell.run.folder}"
        split = getattr(project.table(wildcards.paper, wildcards.table).cells[cell.cell], "split", None)
        needed.append(f"{folder}/trained.json")
        needed += [f"{folder}/scores/{decoding}/{split}.json" for decoding in cell.decodings]
    return sorted(set(needed))


def table_settings(wildcards):
    """What the table shows, as JSON, so that a change of caption, columns or scale rewrites it."""
    shown = project.table(wildcards.paper, wildcards.table).model_dump()
    notes = [note.model_dump() for note in project.papers[wildcards.paper].deviations]
    return json.dumps([shown, notes, project.scale.model_dump(), project.config.seed_list])


def resource(kind, name):
    """A resource of one kind of job, from the scale's file."""
    return getattr(project.scale.resources[kind], name)
