# From a dataset file to encoded splits. Every stage works in the corpus' own folder.


rule grammar:
    """Write a corpus with the embedded grammar; needs no network."""
    input:
        dataset=DATASET,
    output:
        pattern(Raw),
    log:
        log_of(Raw, "generate"),
    wildcard_constraints:
        dataset=collected_by("grammar"),
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        command=stage("generate --dataset {input.dataset} --corpus {corpus}", corpus=corpus_folder),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline {params.command:q} >{log:q} 2>&1
        """


rule download:
    """Fetch a corpus, verify every file, and extract its splits."""
    input:
        dataset=DATASET,
    output:
        pattern(Raw),
    log:
        log_of(Raw, "download"),
    wildcard_constraints:
        dataset=collected_by("download"),
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        command=stage(
            "download --dataset {input.dataset} --downloads {downloads} --corpus {corpus} {mirror} {packages}",
            corpus=corpus_folder,
        ),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline {params.command:q} 2>&1 | tee {log:q}
        """


use rule download as collect_trees with:
    """Fetch a treebank, or take it from the folder of a licensed package, every file checked."""
    log:
        log_of(Raw, "collect"),
    wildcard_constraints:
        dataset=collected_by("collect-trees"),
    params:
        command=stage(
            "collect-trees --dataset {input.dataset} --downloads {downloads} --corpus {corpus} {mirror} {packages}",
            corpus=corpus_folder,
        ),


use rule download as collect_text with:
    """Write or fetch the text that is read aloud, or that a language model learns from."""
    log:
        log_of(Raw, "collect-text"),
    wildcard_constraints:
        dataset=collected_by("collect-text"),
    params:
        command=stage(
            "collect-text --dataset {input.dataset} --downloads {downloads} --corpus {corpus} {mirror} {packages}",
            corpus=corpus_folder,
        ),


use rule download as collect_recordings with:
    """Fetch recordings, every file verified, and list their utterances."""
    log:
        log_of(Raw, "collect-recordings"),
    wildcard_constraints:
        dataset=collected_by("collect-recordings"),
    params:
        command=stage(
            "collect-recordings --dataset {input.dataset} --downloads {downloads} --corpus {corpus} {mirror}",
            corpus=corpus_folder,
        ),


rule fetch:
    """Fetch all that comes from the network, so that nothing else needs one."""
    input:
        fetched,


rule prepare:
    """Clean, with every rejection counted, and tokenise."""
    input:
        unpack(needs(Prepared)),
        dataset=DATASET,
    output:
        pattern(Prepared),
    log:
        log_of(Prepared, "prepare"),
    wildcard_constraints:
        dataset=of_form("sentences"),
    threads: resource("prepare", "threads")
    resources:
        mem_mb=resource("prepare", "mem_mb"),
        runtime=resource("prepare", "runtime"),
    params:
        command=stage("prepare --dataset {input.dataset} --corpus {corpus}", corpus=corpus_folder),
    message:
        "{rule}: {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline {params.command:q} --processes {threads} >{log:q} 2>&1
        """


use rule grammar as prepare_trees with:
    """Clean trees and write each as a sentence and a sequence of symbols."""
    input:
        unpack(needs(Prepared)),
        dataset=DATASET,
    output:
        pattern(Prepared),
    log:
        log_of(Prepared, "prepare"),
    wildcard_constraints:
        dataset=of_form("trees"),
    params:
        command=stage("prepare-trees --dataset {input.dataset} --corpus {corpus}", corpus=corpus_folder),


use rule grammar as subwords with:
    """Learn the subword vocabulary from a seeded sample."""
    input:
        unpack(needs(Vocabulary)),
        dataset=DATASET,
    output:
        model=pattern(Vocabulary),
        record=pattern(Vocabulary).replace(".model", ".json"),
    log:
        log_of(Vocabulary, "subwords"),
    wildcard_constraints:
        dataset=of_form("sentences", "trees"),
    params:
        command=stage("subwords --dataset {input.dataset} --corpus {corpus}", corpus=corpus_folder),


use rule prepare as encode with:
    """Encode every split into the memory-mapped token store."""
    input:
        unpack(needs(Encoded)),
        dataset=DATASET,
    output:
        pattern(Encoded),
    log:
        log_of(Encoded, "encode"),
    wildcard_constraints:
        dataset=of_form("sentences", "trees"),
    params:
        command=stage("encode --dataset {input.dataset} --corpus {corpus}", corpus=corpus_folder),


use rule prepare as speak with:
    """Read text aloud with a synthesiser, the same readers for every domain."""
    input:
        unpack(needs(Spoken)),
        dataset=DATASET,
    output:
        pattern(Spoken),
    log:
        log_of(Spoken, "speak"),
    wildcard_constraints:
        dataset=either(name for name, record in datasets.items() if record.is_read_aloud),
    params:
        command=stage("speak --dataset {input.dataset} --corpus {corpus}", corpus=corpus_folder),


use rule prepare as features with:
    """Turn utterances into log-mel features and characters, with every rejection counted."""
    input:
        unpack(needs(Encoded)),
        dataset=DATASET,
    output:
        report=pattern(Prepared),
        corpus=pattern(Encoded),
    log:
        log_of(Encoded, "features"),
    wildcard_constraints:
        dataset=of_form("speech"),
    params:
        command=stage("features --dataset {input.dataset} --corpus {corpus} {packages}", corpus=corpus_folder),


use rule grammar as encode_text with:
    """Turn the text of a language model into characters, with every rejection counted."""
    input:
        unpack(needs(Encoded)),
        dataset=DATASET,
    output:
        report=pattern(Prepared),
        corpus=pattern(Encoded),
    log:
        log_of(Encoded, "encode-text"),
    wildcard_constraints:
        dataset=of_form("characters"),
    params:
        command=stage("encode-text --dataset {input.dataset} --corpus {corpus}", corpus=corpus_folder),
