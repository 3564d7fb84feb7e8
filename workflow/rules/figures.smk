# Pictures, each with the numbers in it and a caption; and layer types timed on this machine.


rule attention_maps:
    """Attention of single heads on a sentence chosen by a rule."""
    input:
        weights=weights,
        corpus=f"{CORPUS}/encoded/corpus.json",
    output:
        f"{RUN}/attention/{{decoding}}/{{split}}-{{choice}}.json",
    log:
        f"{RUN}/logs/attention-{{decoding}}-{{split}}-{{choice}}.log",
    conda:
        "../envs/pipeline.yaml"
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        weights=weights_file,
    message:
        "Looking for a {wildcards.choice} sentence of {wildcards.dataset} ({wildcards.split}) -> {output}"
    shell:
        """
        python -m pipeline attention_maps --weights {params.weights:q} --split {wildcards.split} \
            --rule {wildcards.choice} --threads {threads} --out {output:q} >{log:q} 2>&1
        """


rule figure:
    """Draw a figure of a paper."""
    input:
        figure_inputs,
    output:
        svg=report(
            f"results/{SCALE}/{{paper}}/{{figure}}.svg",
            caption="../report/figure.rst",
            category="{paper}",
            labels={"table": "{figure}", "format": "SVG"},
        ),
        png=f"results/{SCALE}/{{paper}}/{{figure}}.png",
        csv=f"results/{SCALE}/{{paper}}/{{figure}}.csv",
        caption=f"results/{SCALE}/{{paper}}/{{figure}}.md",
    log:
        f"{WORK}/{SCALE}/logs/{{paper}}-{{figure}}.log",
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        settings=SETTINGS,
        shown=figure_settings,
        caption=figure_caption,
    message:
        "Drawing {output.svg}"
    shell:
        """
        python -m pipeline figure --paper {wildcards.paper} --figure {wildcards.figure} {params.settings} \
            --out {output.svg:q} >{log:q} 2>&1
        """


rule layer_times:
    """Time layer types over sequence lengths and widths."""
    output:
        f"{WORK}/{SCALE}/layer_times.json",
    log:
        f"{WORK}/{SCALE}/logs/layer-times.log",
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        job=f"{WORK}/{SCALE}/jobs/layer-times",
    message:
        "Timing layers -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output:q} \
            -- layer_cost --out {output:q} >{log:q} 2>&1
        """


rule layer_table:
    """Set layer types' times next to their printed complexities, and draw them."""
    input:
        printed="workflow/papers/{paper}/{costs}.csv",
        times=f"{WORK}/{SCALE}/layer_times.json",
    output:
        csv=report(
            f"results/{SCALE}/{{paper}}/{{costs}}.csv",
            caption="../report/costs.rst",
            category="{paper}",
            labels={"table": "{costs}", "format": "CSV"},
        ),
        markdown=f"results/{SCALE}/{{paper}}/{{costs}}.md",
        svg=report(
            f"results/{SCALE}/{{paper}}/{{costs}}.svg",
            caption="../report/costs.rst",
            category="{paper}",
            labels={"table": "{costs}", "format": "SVG"},
        ),
        png=f"results/{SCALE}/{{paper}}/{{costs}}.png",
    log:
        f"{WORK}/{SCALE}/logs/{{paper}}-{{costs}}.log",
    wildcard_constraints:
        paper=either(name for name, paper in project.papers.items() if paper.layer_costs),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        settings=SETTINGS,
        caption=costs_caption,
    message:
        "Writing {output.csv} and {output.svg}"
    shell:
        """
        python -m pipeline layer_table --paper {wildcards.paper} --table {wildcards.costs} {params.settings} \
            --layer-times {input.times:q} --out {output.csv:q} >{log:q} 2>&1
        """
