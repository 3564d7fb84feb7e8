# From trained recognisers and language models to scores, on the domain they were trained on and on others.
# A file named {split}@{heard} is about the corpus `heard`, whatever the run was trained on.


rule tune:
    """Choose the weights of shallow fusion on the development set of the run's own corpus."""
    input:
        weights=weights,
        corpus=f"{CORPUS}/encoded/corpus.json",
        language_model=language_model_of_decoding,
    output:
        f"{RUN}/tuned/{{decoding}}.json",
    log:
        f"{RUN}/logs/tune-{{decoding}}.log",
    conda:
        "../envs/pipeline.yaml"
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        weights=weights_file,
        decoding=decoding_settings,
        language_model=language_model_option,
        job=f"{RUN}/jobs/tune-{{decoding}}",
    message:
        "Choosing the weights of {wildcards.decoding} for {wildcards.paper}/{wildcards.system} -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output:q} \
            -- tune --weights {params.weights:q} --decoding {params.decoding:q} {params.language_model} \
            --threads {threads} --out {output:q} >{log:q} 2>&1
        """


rule transcribe:
    """Write down what is said in one split of a corpus."""
    input:
        weights=weights,
        heard=f"{WORK}/corpora/{{heard}}/encoded/corpus.json",
        language_model=language_model_of_decoding,
        tuned=tuned_weights,
    output:
        f"{RUN}/transcripts/{{decoding}}/{{split}}@{{heard}}.txt",
    log:
        f"{RUN}/logs/transcribe-{{decoding}}-{{split}}@{{heard}}.log",
    conda:
        "../envs/pipeline.yaml"
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        weights=weights_file,
        decoding=decoding_settings,
        corpus=lambda wildcards, input: os.path.dirname(input.heard),
        language_model=language_model_option,
        tuned=lambda wildcards, input: f"--tuned {shlex.quote(input.tuned)}" if input.tuned else "",
        job=f"{RUN}/jobs/transcribe-{{decoding}}-{{split}}@{{heard}}",
    message:
        "Writing down {wildcards.heard} ({wildcards.split}) with {wildcards.paper}/{wildcards.system} -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output:q} \
            -- transcribe --weights {params.weights:q} --corpus {params.corpus:q} --split {wildcards.split} \
            --decoding {params.decoding:q} {params.language_model} {params.tuned} --threads {threads} \
            --out {output:q} >{log:q} 2>&1
        """


rule score_speech:
    """Character and word error rate of one split's transcripts."""
    input:
        dataset="workflow/datasets/{heard}.yaml",
        heard=f"{WORK}/corpora/{{heard}}/encoded/corpus.json",
        transcripts=f"{RUN}/transcripts/{{decoding}}/{{split}}@{{heard}}.txt",
    output:
        f"{RUN}/scores/{{decoding}}/{{split}}@{{heard}}.json",
    log:
        f"{RUN}/logs/score-{{decoding}}-{{split}}@{{heard}}.log",
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        corpus=lambda wildcards, input: os.path.dirname(input.heard),
    message:
        "Scoring {wildcards.paper}/{wildcards.system} on {wildcards.heard} ({wildcards.split}) -> {output}"
    shell:
        """
        python -m pipeline score-speech --dataset {input.dataset:q} --corpus {params.corpus:q} \
            --split {wildcards.split} --transcripts {input.transcripts:q} --out {output:q} >{log:q} 2>&1
        """


rule perplexity_elsewhere:
    """Perplexity of one split of another corpus of the same symbols."""
    input:
        weights=weights,
        dataset="workflow/datasets/{heard}.yaml",
        heard=f"{WORK}/corpora/{{heard}}/encoded/corpus.json",
        corpus=f"{CORPUS}/encoded/corpus.json",
    output:
        f"{RUN}/perplexities/{{decoding}}/{{split}}@{{heard}}.json",
    log:
        f"{RUN}/logs/perplexity-{{decoding}}-{{split}}@{{heard}}.log",
    conda:
        "../envs/pipeline.yaml"
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        weights=weights_file,
        corpus=lambda wildcards, input: os.path.dirname(input.heard),
        job=f"{RUN}/jobs/perplexity-{{decoding}}-{{split}}@{{heard}}",
    message:
        "Perplexity of {wildcards.paper}/{wildcards.system} on {wildcards.heard} ({wildcards.split}) -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output:q} \
            -- perplexity --weights {params.weights:q} --corpus {params.corpus:q} --split {wildcards.split} \
            --dataset {input.dataset:q} --threads {threads} --out {output:q} >{log:q} 2>&1
        """


rule alignments:
    """Attention over speech at every kept checkpoint of one training."""
    input:
        trained=f"{RUN}/trained.json",
        corpus=f"{CORPUS}/encoded/corpus.json",
    output:
        f"{RUN}/alignments/{{split}}.json",
    log:
        f"{RUN}/logs/alignments-{{split}}.log",
    conda:
        "../envs/pipeline.yaml"
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        folder=run_folder,
    message:
        "Aligning {wildcards.dataset} ({wildcards.split}) over the training of {wildcards.system} -> {output}"
    shell:
        """
        python -m pipeline alignments --run {params.folder:q} --split {wildcards.split} --threads {threads} \
            --out {output:q} >{log:q} 2>&1
        """
