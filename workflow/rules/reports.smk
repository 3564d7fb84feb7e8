# Tables, figures and claims, their site, and the view of the configured paper's tables at the top of results/.
#
# Each is labelled once for `--report`: of two labels that halve a category Snakemake makes a switch, and its page breaks
# where one of the four combinations is not there.


rule table:
    """Set scores next to the numbers a paper printed."""
    input:
        unpack(needs(Table)),
        printed=PRINTED,
    output:
        csv=report(
            pattern(Table),
            caption="../report/table.rst",
            category="{paper}",
            labels={"result": "{table}"},
        ),
        markdown=pattern(Table).replace(".csv", ".md"),
    log:
        log_of(Table, "{paper}", "{table}"),
    wildcard_constraints:
        table=shown("tables"),
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        shown=as_json("tables"),
        command=stage("table --paper {wildcards.paper} --table {wildcards.table} {settings} --out {output.csv}"),
    message:
        "{rule} -> {output[0]}"
    shell:
        """
        python -m pipeline {params.command:q} >{log:q} 2>&1
        """


use rule table as example_table with:
    """Set every system's translation of one sentence side by side."""
    input:
        unpack(needs(ExampleTable)),
        printed=PRINTED,
    wildcard_constraints:
        table=shown("examples"),
    params:
        shown=as_json("examples"),
        command=stage("example-table --paper {wildcards.paper} --table {wildcards.table} {settings} --out {output.csv}"),


use rule table as transcript_table with:
    """Set what systems write down of a few utterances next to what a paper printed."""
    input:
        unpack(needs(TranscriptTable)),
        printed=PRINTED,
    wildcard_constraints:
        table=shown("transcripts"),
    params:
        shown=as_json("transcripts"),
        command=stage(
            "transcript-table --paper {wildcards.paper} --table {wildcards.table} {settings} --out {output.csv}"
        ),


use rule table as layer_table with:
    """Set layer types' times next to their printed complexities, and draw them."""
    input:
        unpack(needs(LayerTable)),
        printed=PRINTED,
    output:
        csv=report(
            pattern(Table),
            caption="../report/layers.rst",
            category="{paper}",
            labels={"result": "{table}"},
        ),
        markdown=pattern(Table).replace(".csv", ".md"),
        svg=report(
            pattern(Table).replace(".csv", ".svg"),
            caption="../report/layers.rst",
            category="{paper}",
            labels={"result": "{table}, drawn"},
        ),
        png=pattern(Table).replace(".csv", ".png"),
    wildcard_constraints:
        table=shown("layer_costs"),
    params:
        shown=as_json("layer_costs"),
        caption=lambda wildcards: project.papers[wildcards.paper].layer_costs[wildcards.table].caption,
        command=stage(
            "layer-table --paper {wildcards.paper} --table {wildcards.table} {settings} --layer-times {input.times}"
            " --out {output.csv}"
        ),


use rule table as figure with:
    """Draw a figure of a paper."""
    input:
        unpack(needs(Figure)),
    output:
        svg=report(
            pattern(Figure),
            caption="../report/figure.rst",
            category="{paper}",
            labels={"result": "{figure}"},
        ),
        png=pattern(Figure).replace(".svg", ".png"),
        csv=pattern(Figure).replace(".svg", ".csv"),
        caption=pattern(Figure).replace(".svg", ".md"),
    log:
        log_of(Figure, "{paper}", "{figure}"),
    wildcard_constraints:
        figure=r"figure\d+",
    params:
        shown=as_json("figures"),
        caption=lambda wildcards: project.figure(wildcards.paper, wildcards.figure).caption,
        command=stage("figure --paper {wildcards.paper} --figure {wildcards.figure} {settings} --out {output.svg}"),


use rule table as claims with:
    """Set what was measured next to what a paper says, with a verdict for each claim."""
    input:
        unpack(needs(Claims)),
        claims="workflow/papers/{paper}/claims.yaml",
    output:
        csv=report(
            pattern(Claims),
            caption="../report/claims.rst",
            category="{paper}",
            labels={"result": "claims"},
        ),
        markdown=pattern(Claims).replace(".csv", ".md"),
    log:
        log_of(Claims, "{paper}", "claims"),
    wildcard_constraints:
        paper=either(project.papers),
    params:
        shown=lambda wildcards: json.dumps([project.claims[wildcards.paper].model_dump(), project.config.seed_list]),
        command=stage("claims --paper {wildcards.paper} {settings} --out {output.csv}"),


rule site:
    """Make pages of all results, to be opened from disk."""
    input:
        reports(*project.reproduced),
    output:
        SITE,
    log:
        str(layout.scale_folder / "logs/site.log"),
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        shown=json.dumps([SCALE, project.config.seed_list]),
        command=stage(f"site {{settings}} --out {os.path.dirname(SITE)}"),
    message:
        "{rule} -> {output}"
    shell:
        """
        python -m reprise {params.command:q} >{log:q} 2>&1
        """


rule view:
    """Show a table or the claims of the configured paper at the configured scale at the top of results/."""
    input:
        csv=str(layout.results / project.config.paper / "{view}.csv"),
        markdown=str(layout.results / project.config.paper / "{view}.md"),
    output:
        csv="results/{view}.csv",
        markdown="results/{view}.md",
    log:
        str(layout.scale_folder / "logs/view-{view}.log"),
    params:
        shown=f"{project.config.paper} at {SCALE}",
    message:
        "{rule}: {input.csv} as {output.csv}"
    shell:
        """
        (cp {input.csv:q} {output.csv:q} && cp {input.markdown:q} {output.markdown:q}) >{log:q} 2>&1
        """
