# From trained weights to scores.


rule average:
    """Average the last checkpoints of one run."""
    input:
        f"{RUN}/trained.json",
    output:
        f"{RUN}/averaged/{{decoding}}.safetensors",
    log:
        f"{RUN}/logs/average-{{decoding}}.log",
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        folder=run_folder,
        last=lambda wildcards: project.decoding(wildcards.paper, wildcards.system, wildcards.decoding).average_last,
    message:
        "Averaging the last {params.last} checkpoints of {wildcards.paper}/{wildcards.system} -> {output}"
    shell:
        """
        python -m pipeline average --run {params.folder:q} --last {params.last} --out {output:q} >{log:q} 2>&1
        """


rule translate:
    """Translate one split by beam search."""
    input:
        weights=weights,
        corpus=f"{CORPUS}/encoded/corpus.json",
        language_model=language_model_of_decoding,
    output:
        tokenised=f"{RUN}/translations/{{decoding}}/{{split}}.tok",
        text=f"{RUN}/translations/{{decoding}}/{{split}}.txt",
    log:
        f"{RUN}/logs/translate-{{decoding}}-{{split}}.log",
    wildcard_constraints:
        dataset=either(set(datasets) - TREEBANKS),
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
        job=f"{RUN}/jobs/translate-{{decoding}}-{{split}}",
    message:
        "Translating {wildcards.dataset} ({wildcards.split}) with {wildcards.paper}/{wildcards.system} -> {output.text}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output.tokenised:q} --makes {output.text:q} \
            -- translate --weights {params.weights:q} --split {wildcards.split} \
            --decoding {params.decoding:q} {params.language_model} --threads {threads} \
            --out {output.tokenised:q} --text {output.text:q} \
            >{log:q} 2>&1
        """


rule perplexity:
    """Perplexity per subword of one split, unsmoothed."""
    input:
        weights=weights,
        dataset="workflow/datasets/{dataset}.yaml",
        corpus=f"{CORPUS}/encoded/corpus.json",
    output:
        f"{RUN}/perplexities/{{decoding}}/{{split}}.json",
    log:
        f"{RUN}/logs/perplexity-{{decoding}}-{{split}}.log",
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
        job=f"{RUN}/jobs/perplexity-{{decoding}}-{{split}}",
    message:
        "Perplexity of {wildcards.paper}/{wildcards.system} on {wildcards.dataset} ({wildcards.split}) -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output:q} \
            -- perplexity --weights {params.weights:q} --split {wildcards.split} \
            --dataset {input.dataset:q} --threads {threads} --out {output:q} >{log:q} 2>&1
        """


rule score:
    """Score one translation: every BLEU with its recipe and interval."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        prepared=f"{CORPUS}/prepared/report.json",
        tokenised=f"{RUN}/translations/{{decoding}}/{{split}}.tok",
        text=f"{RUN}/translations/{{decoding}}/{{split}}.txt",
    output:
        f"{RUN}/scores/{{decoding}}/{{split}}.json",
    log:
        f"{RUN}/logs/score-{{decoding}}-{{split}}.log",
    wildcard_constraints:
        dataset=either(set(datasets) - TREEBANKS),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        prepared=lambda wildcards, input: os.path.dirname(input.prepared),
    message:
        "Scoring {wildcards.paper}/{wildcards.system} on {wildcards.dataset} ({wildcards.split}) -> {output}"
    shell:
        """
        python -m pipeline score --dataset {input.dataset:q} --prepared {params.prepared:q} --split {wildcards.split} \
            --tokenised {input.tokenised:q} --text {input.text:q} --out {output:q} >{log:q} 2>&1
        """


rule phenomena:
    """Count names, idioms and word order that came out right; of the grammar's sentences it is known what is right."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        corpus=f"{CORPUS}/encoded/corpus.json",
        tokenised=f"{RUN}/translations/{{decoding}}/{{split}}.tok",
    output:
        f"{RUN}/phenomena/{{decoding}}/{{split}}.json",
    log:
        f"{RUN}/logs/phenomena-{{decoding}}-{{split}}.log",
    wildcard_constraints:
        dataset=either(GRAMMAR - TREEBANKS),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        folder=corpus_folder,
    message:
        "Counting phenomena of {wildcards.paper}/{wildcards.system} on {wildcards.dataset} ({wildcards.split}) -> {output}"
    shell:
        """
        python -m pipeline phenomena --dataset {input.dataset:q} --corpus {params.folder:q} --split {wildcards.split} \
            --tokenised {input.tokenised:q} --out {output:q} >{log:q} 2>&1
        """


rule gate_values:
    """Mean of the gate between two channels over kinds of source words; of the grammar's sentences these are known."""
    input:
        weights=f"{RUN}/trained.json",
        dataset="workflow/datasets/{dataset}.yaml",
        corpus=f"{CORPUS}/encoded/corpus.json",
    output:
        f"{RUN}/gates.json",
    log:
        f"{RUN}/logs/gates.log",
    wildcard_constraints:
        dataset=either(GRAMMAR - TREEBANKS),
    conda:
        "../envs/pipeline.yaml"
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        weights=weights_file,
    message:
        "Gates of {wildcards.paper}/{wildcards.system} on {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline gate-values --weights {params.weights:q} --dataset {input.dataset:q} \
            --threads {threads} --out {output:q} >{log:q} 2>&1
        """
