# One run: its specification, then its training. The run folder itself is not an output: it survives every failure.


rule describe_run:
    """Write the run's resolved specification, all that its training reads."""
    output:
        f"{RUN}/run.yaml",
    log:
        f"{RUN}/logs/describe.log",
    conda:
        "../envs/pipeline.yaml"
    params:
        specification=run_specification,
    message:
        "Writing {output}"
    shell:
        """
        python -m pipeline describe --spec {params.specification:q} --out {output:q} >{log:q} 2>&1
        """


rule train:
    """Train one run, or continue it, or adopt the job that still trains it."""
    input:
        specification=f"{RUN}/run.yaml",
        corpus=f"{CORPUS}/encoded/corpus.json",
        others=runs_taken,
    output:
        f"{RUN}/trained.json",
    log:
        f"{RUN}/logs/train.log",
    benchmark:
        f"{RUN}/logs/train.tsv"
    conda:
        "../envs/pipeline.yaml"
    threads: resource("train", "threads")
    resources:
        launcher="local",
        sbatch="",
        mem_mb=resource("train", "mem_mb"),
        runtime=resource("train", "runtime"),
        gpus=training_gpus,
        nodes=resource("train", "nodes"),
    params:
        folder=run_folder,
    message:
        "Training {wildcards.paper}/{wildcards.system} on {wildcards.dataset}, seed {wildcards.seed} -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --run {params.folder:q} --out {output:q} --nodes {resources.nodes} 2>&1 | tee -i {log:q}
        """
