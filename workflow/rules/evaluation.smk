# From what a model writes to scores.


rule score:
    """Score one split's translations by every metric of translations, with intervals."""
    input:
        unpack(needs(Score, measure="scores")),
        dataset=DATASET,
        text=pattern(Translation).replace(".tok", ".txt"),
    output:
        pattern(Score, measure="scores", scored_on=None),
    log:
        log_of(Score, "score", "{decoding}", "{split}"),
    wildcard_constraints:
        dataset=of_form("sentences", "speech", "characters"),
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        command=stage(
            "score --dataset {input.dataset} --prepared {prepared} --split {wildcards.split}"
            " --tokenised {input.translation} --text {input.text} --out {output}",
            prepared=folder_of("prepared"),
        ),
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset} -> {output}"
    shell:
        """
        python -m pipeline {params.command:q} >{log:q} 2>&1
        """


use rule score as score_trees with:
    """Score one split's parses: labelled bracketing F1, and how many outputs were well-formed trees."""
    input:
        unpack(needs(Score, measure="scores")),
        dataset=DATASET,
    output:
        score=pattern(Score, measure="scores", scored_on=None),
        trees=str(patterns.trees(product_of(Score, Placeholders()))),
        aligned=str(patterns.trees(product_of(Score, Placeholders()), ".aligned")),
    log:
        log_of(Score, "score-trees", "{decoding}", "{split}"),
    wildcard_constraints:
        dataset=of_form("trees"),
    params:
        command=stage(
            "score-trees --dataset {input.dataset} --prepared {prepared} --split {wildcards.split}"
            " --sequences {input.parse} --trees {output.trees} --aligned-trees {output.aligned} --out {output.score}",
            prepared=folder_of("prepared"),
        ),


use rule score as score_speech with:
    """Character and word error rate of one split's transcripts."""
    input:
        unpack(needs(Score, measure="scores")),
        dataset="workflow/datasets/{scored_on}.yaml",
    output:
        pattern(Score, measure="scores"),
    log:
        log_of(Score, "score", "{decoding}", "{split}@{scored_on}"),
    wildcard_constraints:
        dataset=r"[\w-]+",
    params:
        command=stage(
            "score-speech --dataset {input.dataset} --corpus {corpus} --split {wildcards.split}"
            " --transcripts {input.transcript} --out {output}",
            corpus=folder_of("scored_on"),
        ),


use rule score as phenomena with:
    """Count names, idioms and word order that came out right; of the grammar's sentences it is known what is right."""
    input:
        unpack(needs(Score, measure="phenomena")),
        dataset=DATASET,
    output:
        pattern(Score, measure="phenomena", scored_on=None),
    log:
        log_of(Score, "phenomena", "{decoding}", "{split}"),
    wildcard_constraints:
        dataset=written("sentences"),
    params:
        command=stage(
            "phenomena --dataset {input.dataset} --corpus {corpus} --split {wildcards.split}"
            " --tokenised {input.translation} --out {output}",
            corpus=corpus_folder,
        ),
