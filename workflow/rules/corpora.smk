# From a dataset file to encoded sentences. Every stage works in the corpus' own folder.


rule generate:
    """Write a corpus with the embedded grammar; needs no network."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
    output:
        touch(f"{CORPUS}/raw.done"),
    log:
        f"{CORPUS}/logs/generate.log",
    wildcard_constraints:
        dataset=either(GRAMMAR),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        grammar=grammar_options,
        folder=corpus_folder,
    message:
        "Writing {wildcards.dataset} with the grammar -> {params.folder}"
    shell:
        """
        python -m pipeline grammar {params.grammar} --out {params.folder:q} >{log:q} 2>&1
        """


rule download:
    """Fetch a corpus, verify every file, and extract its splits."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
    output:
        touch(f"{CORPUS}/raw.done"),
    log:
        f"{CORPUS}/logs/download.log",
    wildcard_constraints:
        dataset=either(TOKENISED - GRAMMAR - TREEBANKS),
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
        "Fetching {wildcards.dataset} -> {params.downloads}"
    shell:
        """
        python -m pipeline download --dataset {input.dataset:q} --downloads {params.downloads:q} \
            --corpus {params.corpus:q} {params.mirror} {params.packages} 2>&1 | tee {log:q}
        """


rule prepare:
    """Clean, with every rejection counted, and tokenise."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        raw=f"{CORPUS}/raw.done",
    output:
        f"{CORPUS}/prepared/report.json",
    log:
        f"{CORPUS}/logs/prepare.log",
    wildcard_constraints:
        dataset=either(TOKENISED - TREEBANKS),
    conda:
        "../envs/pipeline.yaml"
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=corpus_folder,
    message:
        "Cleaning and tokenising {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline prepare --dataset {input.dataset:q} --corpus {params.corpus:q} \
            --processes {threads} >{log:q} 2>&1
        """


rule subwords:
    """Learn the joint subword vocabulary from a seeded sample."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        prepared=f"{CORPUS}/prepared/report.json",
    output:
        model=f"{CORPUS}/subwords.model",
        record=f"{CORPUS}/subwords.json",
    log:
        f"{CORPUS}/logs/subwords.log",
    wildcard_constraints:
        dataset=either(TOKENISED),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=corpus_folder,
    message:
        "Learning the subwords of {wildcards.dataset} -> {output.model}"
    shell:
        """
        python -m pipeline subwords --dataset {input.dataset:q} --corpus {params.corpus:q} >{log:q} 2>&1
        """


rule encode:
    """Encode every split into the memory-mapped token store."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        prepared=f"{CORPUS}/prepared/report.json",
        subwords=f"{CORPUS}/subwords.model",
    output:
        f"{CORPUS}/encoded/corpus.json",
    log:
        f"{CORPUS}/logs/encode.log",
    wildcard_constraints:
        dataset=either(TOKENISED),
    conda:
        "../envs/pipeline.yaml"
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=corpus_folder,
    message:
        "Encoding {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline encode --dataset {input.dataset:q} --corpus {params.corpus:q} \
            --processes {threads} >{log:q} 2>&1
        """
