# Treebanks: from bracketed trees to sequences, and from the sequences a model wrote back to trees and their score.


rule collect_trees:
    """Fetch a treebank, or take it from the folder of a licensed package, every file checked."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
    output:
        touch(f"{CORPUS}/raw.done"),
    log:
        f"{CORPUS}/logs/collect.log",
    wildcard_constraints:
        dataset=either(TREEBANKS - GRAMMAR),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        downloads=f"{WORK}/downloads",
        corpus=corpus_folder,
        mirror=MIRROR,
        packages=PACKAGES,
    message:
        "Collecting the trees of {wildcards.dataset} -> {params.corpus}"
    shell:
        """
        python -m pipeline collect-trees --dataset {input.dataset:q} --downloads {params.downloads:q} \
            --corpus {params.corpus:q} {params.mirror} {params.packages} 2>&1 | tee {log:q}
        """


rule prepare_trees:
    """Clean trees and write each as a sentence and a sequence of symbols."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        raw=f"{CORPUS}/raw.done",
    output:
        f"{CORPUS}/prepared/report.json",
    log:
        f"{CORPUS}/logs/prepare.log",
    wildcard_constraints:
        dataset=either(TREEBANKS),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=corpus_folder,
    message:
        "Cleaning and linearising the trees of {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline prepare-trees --dataset {input.dataset:q} --corpus {params.corpus:q} >{log:q} 2>&1
        """


rule parse:
    """Write the linearised tree of each sentence of one split by beam search."""
    input:
        weights=weights,
        corpus=f"{CORPUS}/encoded/corpus.json",
    output:
        f"{RUN}/translations/{{decoding}}/{{split}}.tok",
    log:
        f"{RUN}/logs/parse-{{decoding}}-{{split}}.log",
    wildcard_constraints:
        dataset=either(TREEBANKS),
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
        job=f"{RUN}/jobs/parse-{{decoding}}-{{split}}",
    message:
        "Parsing {wildcards.dataset} ({wildcards.split}) with {wildcards.paper}/{wildcards.system} -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output:q} \
            -- translate --weights {params.weights:q} --split {wildcards.split} \
            --decoding {params.decoding:q} --threads {threads} --out {output:q} >{log:q} 2>&1
        """


rule score_trees:
    """Score one split's parses: labelled bracketing F1, and how many outputs were well-formed trees."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        prepared=f"{CORPUS}/prepared/report.json",
        sequences=f"{RUN}/translations/{{decoding}}/{{split}}.tok",
    output:
        score=f"{RUN}/scores/{{decoding}}/{{split}}.json",
        trees=f"{RUN}/parses/{{decoding}}/{{split}}.trees",
    log:
        f"{RUN}/logs/score-trees-{{decoding}}-{{split}}.log",
    wildcard_constraints:
        dataset=either(TREEBANKS),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        prepared=lambda wildcards, input: os.path.dirname(input.prepared),
    message:
        "Scoring the parses of {wildcards.paper}/{wildcards.system} on {wildcards.dataset} ({wildcards.split}) -> {output.score}"
    shell:
        """
        python -m pipeline score-trees --dataset {input.dataset:q} --prepared {params.prepared:q} \
            --split {wildcards.split} --sequences {input.sequences:q} --trees {output.trees:q} --out {output.score:q} \
            >{log:q} 2>&1
        """
