# One run: its training, then a job for each decoding that reports need, and one for the scores of each.
# The run folder is not an output, so that it survives every failure.


# The terminal shows start, validations and end of a training, and its progress if it is a terminal. The log has the
# rest. The filter ignores SIGINT, as `tee -i` does, so that a stopped training can still log its last step.
EVENTS = """(
    trap '' INT
    [ -t 1 ] && unseen='   ' || unseen='(   |.*(  step [0-9]*/|is running on|is fit))'
    grep --line-buffered -vE "^[0-9:]{8}$unseen" || true
)"""


rule train:
    """Train one run, resume it, or adopt its running job; then make the outputs that need nothing else."""
    input:
        needs(artifacts.Trained),
    output:
        update(f"{RUN}/done.json"),
    log:
        f"{RUN}/logs/train.log",
    priority: priority
    threads: resource("train", "threads")
    resources:
        launcher="local",
        sbatch="",
        mem_mb=resource("train", "mem_mb"),
        runtime=resource("train", "runtime"),
        gpus=lambda wildcards: min(from_wildcards(functions.training_gpus)(wildcards), SHARING.gpus),
        jobs_per_gpu=SHARING.trainings_per_gpu,
        nodes=resource("train", "nodes"),
    params:
        folder=folder_to_train,
        specification=from_wildcards(functions.specification),
        # A function that takes `resources`, so that a changed decoding trains no run again.
        decodings=lambda wildcards, resources: from_wildcards(functions.decodings)(wildcards),
        events=lambda wildcards: EVENTS,  # a function, so that its braces are no wildcards
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset}, seed {wildcards.seed} -> {output}"
    shell:
        LAUNCH
        + " --run {params.folder:q} --spec {params.specification:q} --decodings {params.decodings:q}"
        + " --nodes {resources.nodes}"
        + " 2>&1 | tee -i {log:q} | {params.events}"


rule decode:
    """Make every output that reports need of one run under one decoding; the model is loaded once."""
    input:
        needs(artifacts.Outputs),
        measured_by(artifacts.Outputs),
    output:
        update(f"{RUN}/{{decoding}}/outputs.json"),
    log:
        f"{RUN}/logs/decode-{{decoding}}.log",
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
        jobs_per_gpu=SHARING.trainings_per_gpu,
    params:
        folder=from_wildcards(functions.run_folder),
        plan=from_wildcards(functions.decoding_plan),
        job=lambda wildcards: f"{from_wildcards(functions.run_folder)(wildcards)}/jobs/decode-{wildcards.decoding}",
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset} -> {output}"
    shell:
        LAUNCH
        + " --folder {params.job:q} --beside {params.folder:q} --makes {output:q}"
        + " -- decode --run {params.folder:q} --plan {params.plan:q} --threads {threads} >{log:q} 2>&1"


rule score:
    """Score every output of one run under one decoding, with the statistics of each sentence."""
    input:
        needs(artifacts.Scores),
        measured_by(artifacts.Scores),
    output:
        update(f"{RUN}/{{decoding}}/scores.json"),
    log:
        f"{RUN}/logs/score-{{decoding}}.log",
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        folder=from_wildcards(functions.run_folder),
        plan=from_wildcards(functions.scoring_plan),
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline score --run {params.folder:q} --plan {params.plan:q} >{log:q} 2>&1
        """


rule layer_times:
    """Time layer types over sequence lengths and widths."""
    output:
        f"{WORK}/layer_times.json",
    log:
        f"{WORK}/logs/layer-times.log",
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus") * SHARING.trainings_per_gpu,  # a whole GPU, because it measures time
        jobs_per_gpu=SHARING.trainings_per_gpu,
    params:
        job=f"{WORK}/jobs/layer-times",
    message:
        "{rule} -> {output}"
    shell:
        LAUNCH
        + " --alone --folder {params.job:q} --makes {output:q}"
        + " -- layer-times --out {output:q} >{log:q} 2>&1"


rule model_sizes:
    """Count the parameters of a paper's systems at the paper's own size."""
    output:
        f"{WORK}/model_sizes/{{paper}}.json",
    log:
        f"{WORK}/logs/model-sizes-{{paper}}.log",
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        systems=from_wildcards(functions.printed_systems),
        settings=SETTINGS,
    message:
        "{rule} -> {output}"
    shell:
        """
        python -m pipeline model-sizes --paper {wildcards.paper} {params.settings:q} --out {output:q} >{log:q} 2>&1
        """
