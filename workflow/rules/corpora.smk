# From a dataset file to encoded splits. Every stage works in the folder of the corpus.


rule grammar:
    """Write a corpus with the embedded grammar; needs no network."""
    input:
        dataset=DATASET,
    output:
        f"{CORPUS}/raw.done",
    log:
        f"{CORPUS}/logs/generate.log",
    wildcard_constraints:
        dataset=datasets_where(lambda record: record.collector == "grammar"),
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=from_wildcards(functions.corpus_folder),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline generate --dataset {input.dataset:q} --corpus {params.corpus:q} >{log:q} 2>&1
        """


rule download:
    """Fetch a corpus, a treebank, recordings or text, verify every file, and extract its splits."""
    input:
        dataset=DATASET,
    output:
        f"{CORPUS}/raw.done",
    log:
        f"{CORPUS}/logs/download.log",
    wildcard_constraints:
        dataset=datasets_where(lambda record: record.collector not in (None, "grammar")),
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        stage=lambda wildcards: project.dataset_records[wildcards.dataset].collector,
        downloads=str(layout.downloads),
        corpus=from_wildcards(functions.corpus_folder),
        sources=lambda wildcards: (
            MIRROR if functions.record(wildcards).collector == "collect-recordings" else [*MIRROR, *PACKAGES]
        ),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline {params.stage} --dataset {input.dataset:q} --downloads {params.downloads:q} \\
        --corpus {params.corpus:q} {params.sources:q} 2>&1 | tee {log:q}
        """


rule fetch:
    """Fetch everything that comes from the network, so that all later jobs work offline."""
    input:
        from_wildcards(lambda _: functions.fetched()),


rule prepare:
    """Clean and tokenise text, or linearise trees; every rejection is counted."""
    input:
        needs(artifacts.Prepared),
        dataset=DATASET,
    output:
        f"{CORPUS}/prepared/report.json",
    log:
        f"{CORPUS}/logs/prepare.log",
    wildcard_constraints:
        dataset=datasets_where(lambda record: record.form in ("sentences", "trees")),
    threads: functions.corpus_threads
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        stage=lambda wildcards: "prepare" if functions.record(wildcards).form == "sentences" else "prepare-trees",
        corpus=from_wildcards(functions.corpus_folder),
        options=lambda wildcards, threads: (
            ["--processes", threads] if functions.record(wildcards).form == "sentences" else []
        ),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline {params.stage} --dataset {input.dataset:q} --corpus {params.corpus:q} {params.options:q} \\
        >{log:q} 2>&1
        """


rule subwords:
    """Learn the subword vocabulary from a seeded sample."""
    input:
        needs(artifacts.Vocabulary),
        dataset=DATASET,
    output:
        model=f"{CORPUS}/subwords.model",
        record=f"{CORPUS}/subwords.json",
    log:
        f"{CORPUS}/logs/subwords.log",
    wildcard_constraints:
        dataset=datasets_where(lambda record: record.form in ("sentences", "trees")),
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=from_wildcards(functions.corpus_folder),
    message:
        "{rule}: {wildcards.dataset} -> {output.model}"
    shell:
        """
        python -m pipeline subwords --dataset {input.dataset:q} --corpus {params.corpus:q} >{log:q} 2>&1
        """


rule encode:
    """Encode every split into the memory-mapped token store."""
    input:
        needs(artifacts.Encoded),
        dataset=DATASET,
    output:
        f"{CORPUS}/encoded/corpus.json",
    log:
        f"{CORPUS}/logs/encode.log",
    wildcard_constraints:
        dataset=datasets_where(lambda record: record.form in ("sentences", "trees")),
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=from_wildcards(functions.corpus_folder),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline encode --dataset {input.dataset:q} --corpus {params.corpus:q} --processes {threads} >{log:q} 2>&1
        """


rule speak:
    """Read text aloud with a synthesiser, the same readers for every domain."""
    input:
        needs(artifacts.Spoken),
        dataset=DATASET,
    output:
        f"{CORPUS}/spoken.json",
    log:
        f"{CORPUS}/logs/speak.log",
    wildcard_constraints:
        dataset=datasets_where(lambda record: record.is_read_aloud),
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        corpus=from_wildcards(functions.corpus_folder),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline speak --dataset {input.dataset:q} --corpus {params.corpus:q} --processes {threads} >{log:q} 2>&1
        """


rule features:
    """Turn utterances into log-mel features and characters, or text into characters; every rejection is counted."""
    input:
        needs(artifacts.Encoded),
        dataset=DATASET,
    output:
        report=f"{CORPUS}/prepared/report.json",
        corpus=f"{CORPUS}/encoded/corpus.json",
    log:
        f"{CORPUS}/logs/features.log",
    wildcard_constraints:
        dataset=datasets_where(lambda record: record.form in ("speech", "characters")),
    threads: functions.corpus_threads
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        stage=lambda wildcards: "features" if functions.record(wildcards).form == "speech" else "encode-text",
        corpus=from_wildcards(functions.corpus_folder),
        options=lambda wildcards, threads: (
            [*PACKAGES, "--processes", threads] if functions.record(wildcards).form == "speech" else []
        ),
    message:
        "{rule}: {wildcards.dataset} -> {output.corpus}"
    shell:
        """
        python -m pipeline {params.stage} --dataset {input.dataset:q} --corpus {params.corpus:q} {params.options:q} \\
        >{log:q} 2>&1
        """
