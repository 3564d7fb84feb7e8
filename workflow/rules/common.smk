# The only functions of the workflow: they say which files a table needs. What the files hold is pipeline's business.
import json
import shlex

from pipeline.errors import UserError
from pipeline.experiment.project import Project, RunId

try:
    project = Project(workflow.basedir, config)
    datasets = project.dataset_records
except UserError as error:
    raise WorkflowError(str(error)) from None

WORK = project.config.work
SCALE = project.config.scale
RUN = f"{WORK}/{SCALE}/runs/{{paper}}/{{system}}/{{dataset}}/seed{{seed}}"
CORPUS = f"{WORK}/corpora/{{dataset}}"
GRAMMAR = {name for name, dataset in datasets.items() if "grammar" in dataset.kind}
TREEBANKS = {name for name, dataset in datasets.items() if "treebank" in dataset.kind}
READ_ALOUD = {name for name, dataset in datasets.items() if dataset.kind == "read-aloud"}
RECORDED = {name for name, dataset in datasets.items() if dataset.kind == "recordings"}
SPOKEN = READ_ALOUD | RECORDED | {name for name, dataset in datasets.items() if dataset.kind == "manifest"}
CHARACTERS = {name for name, dataset in datasets.items() if dataset.kind in ("characters", "own-text")}
TOKENISED = set(datasets) - SPOKEN - CHARACTERS
SETTINGS = " ".join(f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in config.items())

MIRROR = f"--mirror {shlex.quote(project.config.mirror)}" if project.config.mirror else ""
PACKAGES = " ".join(f"--package {shlex.quote(f'{name}={folder}')}" for name, folder in project.config.licensed.items())


def either(names):
    """A wildcard's pattern: one of these names; of none, what nothing matches."""
    return "|".join(sorted(names)) or "(?!)"


wildcard_constraints:
    paper=either(project.papers),
    table=either(
        {name for paper in project.papers.values() for name in (*paper.tables, *paper.examples, *paper.transcripts)}
    ),
    costs=either({name for paper in project.papers.values() for name in paper.layer_costs}),
    figure=r"figure\d+",
    shown=r"table\d+|ablations|phenomena|claims",
    choice="distant|pronoun|contrast",
    system=r"[\w-]+",
    dataset=r"[\w-]+",
    heard=r"[\w-]+",
    seed=r"\d+",
    decoding=r"[\w-]+",
    split=r"dev|test\d?",


def tables(paper=None):
    """Every table of one paper, or of all, that can be made at this scale."""
    names = [paper] if paper else list(project.papers)
    return [
        f"results/{SCALE}/{name}/{table}.csv"
        for name in names
        for table in (*project.tables_here(name), *project.papers[name].examples, *project.papers[name].transcripts)
    ]


def statements(paper=None):
    """The claims of one paper, or of all."""
    names = [paper] if paper else list(project.papers)
    return [f"results/{SCALE}/{name}/claims.csv" for name in names if project.claims[name].claims]


def pictures(paper=None):
    """Every figure of one paper, or of all, and every table of complexities with its plot."""
    names = [paper] if paper else list(project.papers)
    return [
        f"results/{SCALE}/{name}/{picture}.svg"
        for name in names
        for picture in (
            *project.papers[name].figures,
            *project.papers[name].layer_costs,
        )
    ]


def everything(paper=None):
    """All that is reported of one paper, or of all."""
    return tables(paper) + statements(paper) + pictures(paper)


def corpus_folder(wildcards):
    return CORPUS.format(dataset=wildcards.dataset)


def run_folder(wildcards):
    return f"{WORK}/{SCALE}/runs/{run_of(wildcards).folder}"


def weights(wildcards):
    """What a decoding reads: averaged checkpoints where it averages, else the training's own final weights."""
    averaged = project.decoding(wildcards.paper, wildcards.system, wildcards.decoding).average_last > 1
    return f"{RUN}/averaged/{wildcards.decoding}.safetensors" if averaged else f"{RUN}/trained.json"


def weights_file(wildcards, input):
    """The final weights lie beside `trained.json`: they survive a failure because no rule declares them."""
    return input.weights.replace("trained.json", "model.safetensors")


def run_of(wildcards):
    return RunId(wildcards.paper, wildcards.system, wildcards.dataset, int(wildcards.seed))


def run_specification(wildcards):
    """All settings of one run as JSON; a change here, and nothing else, trains it anew."""
    return json.dumps(project.run_spec(run_of(wildcards)).model_dump())


def decoding_settings(wildcards):
    """One named decoding as JSON; a change here redoes decoding, not training."""
    return json.dumps(project.decoding(wildcards.paper, wildcards.system, wildcards.decoding).model_dump())


def runs_taken(wildcards):
    """The trainings whose weights a run takes: its language model's, and those that it starts from."""
    return [f"{WORK}/{SCALE}/runs/{run.folder}/trained.json" for run in project.runs_taken(run_of(wildcards))]


def language_model_of_decoding(wildcards):
    """The training of the language model that a decoding uses, if it uses one."""
    run = project.decoding_language_model(run_of(wildcards), wildcards.decoding)
    return f"{WORK}/{SCALE}/runs/{run.folder}/trained.json" if run else []


def language_model_option(wildcards, input):
    folder = os.path.dirname(input.language_model) if input.language_model else None
    return f"--language-model {shlex.quote(folder)}" if folder else ""


def tuned_weights(wildcards):
    """What chose the weights of a decoding, where they are chosen."""
    chosen = project.decoding(wildcards.paper, wildcards.system, wildcards.decoding).tuned
    return f"{RUN}/tuned/{{decoding}}.json" if chosen else []


def grammar_options(wildcards):
    """What the grammar is to write for one dataset."""
    dataset = datasets[wildcards.dataset]
    wanted = dataset.generator
    sizes = " ".join(f"{split}={pairs}" for split, pairs in wanted.sizes.items())
    trees_alone = wildcards.dataset in TREEBANKS
    languages = dataset.src if trees_alone else f"{dataset.src} {dataset.tgt}"
    chained = " ".join(f"{split}={words}" for split, words in wanted.chained.items())
    options = f"--languages {languages} --domain {wanted.domain} --sizes {sizes} --seed {wanted.seed}"
    return options + (f" --chained {chained}" if chained else "")


def manifests_mark(wildcards):
    """What says that a corpus' manifests are there; nothing where they are the user's own."""
    if wildcards.dataset in READ_ALOUD:
        return f"{CORPUS}/spoken.json"
    return f"{CORPUS}/raw.done" if wildcards.dataset in RECORDED else []


def table_inputs(wildcards):
    """The trainings and scores that one table stands on; none where its numbers are those of layers."""
    if wildcards.table not in project.papers[wildcards.paper].tables:
        return []
    needed = set()
    for cell in project.cell_runs(wildcards.paper, wildcards.table):
        folder = f"{WORK}/{SCALE}/runs/{cell.run.folder}"
        column = project.table(wildcards.paper, wildcards.table).cells[cell.cell]
        needed.add(f"{folder}/trained.json")
        scores = project.files_of(column, cell.decodings) if cell.decodings else ()
        needed |= {f"{folder}/{path}" for path in scores}
    return sorted(needed)


def transcript_inputs(wildcards):
    """The transcripts that a table shows, and the corpus that they are of."""
    heard = project.stand_in(project.transcript_table(wildcards.paper, wildcards.table).scored_on)
    return [f"{WORK}/corpora/{heard}/encoded/corpus.json"] + [
        f"{WORK}/{SCALE}/runs/{file.run.folder}/{file.path}"
        for file in project.transcript_files(wildcards.paper, wildcards.table).values()
    ]


def transcript_settings(wildcards):
    """What a table of transcripts shows, as JSON."""
    return json.dumps(project.transcript_table(wildcards.paper, wildcards.table).model_dump())


def cost_inputs(wildcards):
    """The measured rate of this machine, for a table that counts operations by time."""
    if wildcards.table not in project.papers[wildcards.paper].tables:
        return []
    cells = project.table(wildcards.paper, wildcards.table).cells.values()
    by_time = any(cell.kind == "flops_by_time" for cell in cells)
    return f"{WORK}/{SCALE}/layer_times.json" if by_time else []


def claim_inputs(wildcards):
    """The trainings, scores and layer times that a paper's claims stand on."""
    files = [f"{WORK}/{SCALE}/runs/{file.run.folder}/{file.path}" for file in project.claim_files(wildcards.paper)]
    timed = project.papers[wildcards.paper].layer_costs
    return files + ([f"{WORK}/{SCALE}/layer_times.json"] if timed else [])


def claim_settings(wildcards):
    """What the claims are, as JSON, so that a change of one rewrites them."""
    return json.dumps([project.claims[wildcards.paper].model_dump(), project.config.seed_list])


def example_inputs(wildcards):
    """Scores of the systems that translate an example; their translations lie beside them."""
    return [
        f"{WORK}/{SCALE}/runs/{file.run.folder}/{file.path}"
        for file in project.example_files(wildcards.paper, wildcards.table)
    ]


def example_settings(wildcards):
    """What a table of examples shows, as JSON."""
    return json.dumps(project.examples(wildcards.paper, wildcards.table).model_dump())


def figure_inputs(wildcards):
    """The trainings and attention maps that a figure is drawn from."""
    return [
        f"{WORK}/{SCALE}/runs/{file.run.folder}/{file.path}"
        for file in project.figure_files(wildcards.paper, wildcards.figure)
    ]


def figure_settings(wildcards):
    """What a figure shows, as JSON."""
    shown = project.figure(wildcards.paper, wildcards.figure).model_dump()
    return json.dumps([shown, project.config.seed_list])


def figure_caption(wildcards):
    return project.figure(wildcards.paper, wildcards.figure).caption


def costs_caption(wildcards):
    return project.papers[wildcards.paper].layer_costs[wildcards.costs].caption


def table_settings(wildcards):
    """What the table shows, as JSON, so that a change of caption, columns or scale rewrites it."""
    shown = project.table(wildcards.paper, wildcards.table).model_dump()
    notes = [note.model_dump() for note in project.papers[wildcards.paper].deviations]
    return json.dumps([shown, notes, project.scale.model_dump(), project.config.seed_list])


def resource(kind, name):
    """A resource of one kind of job, from the scale's file."""
    return getattr(project.scale.resources[kind], name)


def training_gpus(wildcards):
    """GPUs of one training."""
    return project.scale.training_gpus(project.lineage(wildcards.paper, wildcards.system))


CALIBRATION = f"{WORK}/{SCALE}/calibration.json"


def calibration_input(wildcards):
    """Measured before a plan where trainings run on this machine's processor; of GPUs only if somebody did."""
    measured_here = project.scale.resources["train"].gpus == 0
    return CALIBRATION if measured_here else []


def check_files(jobs):
    """Stop before any job starts when a file that one of them reads can't be had."""
    from pipeline.planning.check_data import (
        check,
    )  # brings an HTTP client, which nothing else here needs

    reading = {"download", "collect_trees", "collect_text", "collect_recordings", "features"}
    needed = {job.wildcards.dataset for job in jobs if job.rule.name in reading}
    try:
        check(project, sorted(needed))
    except UserError as error:
        raise WorkflowError(str(error)) from None
