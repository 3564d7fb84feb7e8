# Trained models, or their layers, run to look into them.


use rule translate as perplexity with:
    """Perplexity per subword of one split, unsmoothed."""
    input:
        unpack(needs(Score, measure="perplexities")),
        dataset=DATASET,
    output:
        update(pattern(Score, measure="perplexities", scored_on=None)),
    log:
        log_of(Score, "perplexity", "{decoding}", "{split}"),
    wildcard_constraints:
        dataset=r"[\w-]+",
    params:
        job=job_of(Score, "perplexity", "{decoding}", "{split}"),
        command=stage(
            "perplexity --weights {weights} --split {wildcards.split} --dataset {input.dataset} --out {output}",
            weights=weights_file,
        ),


use rule translate as perplexity_elsewhere with:
    """Perplexity of one split of another corpus of the same symbols."""
    input:
        unpack(needs(Score, measure="perplexities")),
        dataset="workflow/datasets/{scored_on}.yaml",
    output:
        update(pattern(Score, measure="perplexities")),
    log:
        log_of(Score, "perplexity", "{decoding}", "{split}@{scored_on}"),
    wildcard_constraints:
        dataset=r"[\w-]+",
    params:
        job=job_of(Score, "perplexity", "{decoding}", "{split}@{scored_on}"),
        command=stage(
            "perplexity --weights {weights} --corpus {corpus} --split {wildcards.split} --dataset {input.dataset}"
            " --out {output}",
            weights=weights_file,
            corpus=folder_of("scored_on"),
        ),


rule gate_values:
    """Mean of the gate between two channels over kinds of source words; of the grammar's sentences these are known."""
    input:
        unpack(needs(Gates)),
        dataset=DATASET,
    output:
        update(pattern(Gates)),
    log:
        log_of(Gates, "gates"),
    wildcard_constraints:
        dataset=written("sentences"),
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        job=job_of(Gates, "gates"),
        command=stage("gate-values --weights {weights} --dataset {input.dataset} --out {output}", weights=weights_file),
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset} -> {output}"
    shell:
        f"{TOGETHER} -- {{params.command:q}} --threads {{threads}} >{{log:q}} 2>&1"


use rule gate_values as attention_maps with:
    """Attention of single heads on a sentence chosen by a rule."""
    input:
        unpack(needs(AttentionMaps)),
    output:
        update(pattern(AttentionMaps)),
    log:
        log_of(AttentionMaps, "attention", "{decoding}", "{split}-{choice}"),
    wildcard_constraints:
        dataset=r"[\w-]+",
    params:
        job=job_of(AttentionMaps, "attention", "{decoding}", "{split}-{choice}"),
        command=stage(
            "attention-maps --weights {weights} --split {wildcards.split} --rule {wildcards.choice} --out {output}",
            weights=weights_file,
        ),


use rule gate_values as alignments with:
    """Attention over speech at every kept checkpoint of one training."""
    input:
        unpack(needs(Alignments)),
    output:
        update(pattern(Alignments)),
    log:
        log_of(Alignments, "alignments", "{split}"),
    wildcard_constraints:
        dataset=r"[\w-]+",
    params:
        job=job_of(Alignments, "alignments", "{split}"),
        command=stage("alignments --run {folder} --split {wildcards.split} --out {output}", folder=folder),


rule layer_times:
    """Time layer types over sequence lengths and widths."""
    output:
        pattern(LayerTimes),
    log:
        log_of(LayerTimes, "layer-times"),
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        job=job_of(LayerTimes, "layer-times"),
    message:
        "{rule} -> {output}"
    shell:
        LAUNCH + " --folder {params.job:q} --makes {output:q} -- layer-times --out {output:q} >{log:q} 2>&1"


rule model_sizes:
    """Count the parameters of a paper's systems at the paper's own size."""
    output:
        pattern(ModelSizes),
    log:
        log_of(ModelSizes, "model-sizes", "{paper}"),
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        systems=systems_as_printed,
        command=stage("model-sizes --paper {wildcards.paper} {settings} --out {output}"),
    message:
        "{rule} -> {output}"
    shell:
        """
        python -m pipeline {params.command:q} >{log:q} 2>&1
        """
