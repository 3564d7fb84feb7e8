# From a dataset file to encoded sentences.


rule raw_corpus:
    """Generate a corpus from the grammar, or download and extract it; every file is checked."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
    output:
        f"{CORPUS}/raw/corpus.json",
    log:
        f"{CORPUS}/logs/raw.log",
    params:
        downloads=f"{WORK}/downloads",
        mirror=lambda wildcards: f"--mirror {shlex.quote(project.config.mirror)}" if project.config.mirror else "",
        folder=lambda wildcards, output: os.path.dirname(output[0]),
    message:
        "Fetching {wildcards.dataset} -> {output}"
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    shell:
        """
        python -m pipeline raw --dataset {input.dataset:q} --downloads {params.downloads:q} \
            --out {params.folder:q} {params.mirror} >{log:q} 2>&1
        """


rule prepare:
    """Clean, with every rejection counted, and tokenise."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        raw=f"{CORPUS}/raw/corpus.json",
    output:
        f"{CORPUS}/prepared/report.json",
    log:
        f"{CORPUS}/logs/prepare.log",
    params:
        raw=lambda wildcards, input: os.path.dirname(input.raw),
        folder=lambda wildcards, output: os.path.dirname(output[0]),
    message:
        "Cleaning and tokenising {wildcards.dataset} -> {output}"
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    shell:
        """
        python -m pipeline prepare --dataset {input.dataset:q} --raw {params.raw:q} \
            --out {params.folder:q} --threads {threads} >{log:q} 2>&1
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
    params:
        prepared=lambda wildcards, input: os.path.dirname(input.prepared),
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    shell:
        """
        python -m pipeline subwords --dataset {input.dataset:q} --prepared {params.prepared:q} \
            --out {output.model:q} --threads {threads} >{log:q} 2>&1
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
    params:
        prepared=lambda wildcards, input: os.path.dirname(input.prepared),
        folder=lambda wildcards, output: os.path.dirname(output[0]),
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    shell:
        """
        python -m pipeline encode --dataset {input.dataset:q} --prepared {params.prepared:q} \
            --subwords {input.subwords:q} --out {params.folder:q} --threads {threads} >{log:q} 2>&1
        """
