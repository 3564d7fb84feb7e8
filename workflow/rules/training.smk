# One run: its specification, then its training. The run folder itself is not an output: it survives every failure.


# What is seen of a training: its start, validations and end; details and samples are in its log, and how far it is, too,
# unless somebody watches. It outlives an interrupt, as `tee -i` does, so that the training can say where it stops.
EVENTS = """(
    trap '' INT
    [ -t 1 ] && unseen='   ' || unseen='(   |.*(  step [0-9]*/|is running on|is fit))'
    grep --line-buffered -vE "^[0-9:]{8}$unseen" || true
)"""


rule describe_run:
    """Write the run's resolved specification, all that its training reads."""
    output:
        pattern(Specification),
    log:
        log_of(Specification, "describe"),
    params:
        specification=run_specification,
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset}, seed {wildcards.seed}"
    shell:
        """
        python -m pipeline describe --spec {params.specification:q} --out {output:q} >{log:q} 2>&1
        """


rule train:
    """Train one run, or continue it, or adopt the job that still trains it."""
    input:
        unpack(needs(Trained)),
    output:
        pattern(Trained),
    log:
        log_of(Trained, "train"),
    benchmark:
        log_of(Trained, "train").replace(".log", ".tsv")
    priority: length
    threads: resource("train", "threads")
    resources:
        launcher="local",
        sbatch="",
        mem_mb=resource("train", "mem_mb"),
        runtime=resource("train", "runtime"),
        gpus=lambda wildcards: project.training_gpus(asked(Trained, wildcards).run),
        nodes=resource("train", "nodes"),
    params:
        folder=folder_to_train,
        events=lambda wildcards: EVENTS,  # braces in it are no wildcards
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset}, seed {wildcards.seed} -> {output}"
    shell:
        LAUNCH
        + " --run {params.folder:q} --out {output:q} --nodes {resources.nodes} 2>&1 | tee -i {log:q} | {params.events}"
