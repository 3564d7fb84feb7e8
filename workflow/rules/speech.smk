# Speech and the text of its language models: written or fetched, read aloud, turned into features and characters.


rule collect_text:
    """Write or fetch the text that is read aloud, or that a language model learns from."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
    output:
        touch(f"{CORPUS}/raw.done"),
    log:
        f"{CORPUS}/logs/collect-text.log",
    wildcard_constraints:
        dataset=either(READ_ALOUD | CHARACTERS),
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
        "Collecting the text of {wildcards.dataset} -> {params.corpus}"
    shell:
        """
        python -m pipeline collect-text --dataset {input.dataset:q} --downloads {params.downloads:q} \
            --corpus {params.corpus:q} {params.mirror} {params.packages} 2>&1 | tee {log:q}
        """


rule speak:
    """Read text aloud with a synthesiser, the same readers for every domain."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        raw=f"{CORPUS}/raw.done",
    output:
        f"{CORPUS}/spoken.json",
    log:
        f"{CORPUS}/logs/speak.log",
    wildcard_constraints:
        dataset=either(READ_ALOUD),
    conda:
        "../envs/pipeline.yaml"
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=corpus_folder,
    message:
        "Reading {wildcards.dataset} aloud -> {output}"
    shell:
        """
        python -m pipeline speak --dataset {input.dataset:q} --corpus {params.corpus:q} \
            --processes {threads} >{log:q} 2>&1
        """


rule collect_recordings:
    """Fetch recordings, every file verified, and list their utterances."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
    output:
        touch(f"{CORPUS}/raw.done"),
    log:
        f"{CORPUS}/logs/collect-recordings.log",
    wildcard_constraints:
        dataset=either(RECORDED),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        downloads=f"{WORK}/downloads",
        corpus=corpus_folder,
        mirror=MIRROR,
    message:
        "Collecting the recordings of {wildcards.dataset} -> {params.corpus}"
    shell:
        """
        python -m pipeline collect-recordings --dataset {input.dataset:q} --downloads {params.downloads:q} \
            --corpus {params.corpus:q} {params.mirror} 2>&1 | tee {log:q}
        """


rule features:
    """Turn utterances into log-mel features and characters, with every rejection counted."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        manifests=manifests_mark,
    output:
        report=f"{CORPUS}/prepared/report.json",
        corpus=f"{CORPUS}/encoded/corpus.json",
    log:
        f"{CORPUS}/logs/features.log",
    wildcard_constraints:
        dataset=either(SPOKEN),
    conda:
        "../envs/pipeline.yaml"
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=corpus_folder,
        packages=PACKAGES,
    message:
        "Computing the features of {wildcards.dataset} -> {output.corpus}"
    shell:
        """
        python -m pipeline features --dataset {input.dataset:q} --corpus {params.corpus:q} \
            --processes {threads} {params.packages} >{log:q} 2>&1
        """


rule encode_text:
    """Turn the text of a language model into characters, with every rejection counted."""
    input:
        dataset="workflow/datasets/{dataset}.yaml",
        raw=f"{CORPUS}/raw.done",
    output:
        report=f"{CORPUS}/prepared/report.json",
        corpus=f"{CORPUS}/encoded/corpus.json",
    log:
        f"{CORPUS}/logs/encode-text.log",
    wildcard_constraints:
        dataset=either(CHARACTERS),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=corpus_folder,
    message:
        "Encoding the text of {wildcards.dataset} -> {output.corpus}"
    shell:
        """
        python -m pipeline encode-text --dataset {input.dataset:q} --corpus {params.corpus:q} >{log:q} 2>&1
        """
