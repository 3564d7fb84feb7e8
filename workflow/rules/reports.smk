# Tables, figures and claims, their site, and the view of the configured paper's tables at the top of results/.
#
# Each has one label for `--report`: if two labels halve a category, Snakemake makes a switch, and its page breaks
# if one of the four combinations is missing.
RESULTS = f"{layout.results}/{{paper}}"
STAGES = {"tables": "table", "examples": "example-table", "transcripts": "transcript-table"}


rule table:
    """Compare scores, translations or transcripts with those that a paper printed."""
    input:
        needs(artifacts.Table, artifacts.ExampleTable, artifacts.TranscriptTable),
        printed=from_wildcards(functions.printed),
    output:
        csv=report(
            f"{RESULTS}/{{table}}.csv",
            caption="../report/table.rst",
            category="{paper}",
            labels={"result": "{table}"},
        ),
        markdown=f"{RESULTS}/{{table}}.md",
    log:
        f"{WORK}/logs/{{paper}}-{{table}}.log",
    wildcard_constraints:
        table=described("tables", "examples", "transcripts"),
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        stage=lambda wildcards: STAGES[functions.section(wildcards)],
        shown=lambda wildcards: from_wildcards(functions.report, functions.section(wildcards))(wildcards),
        settings=SETTINGS,
    message:
        "{rule} -> {output[0]}"
    shell:
        """
        python -m pipeline {params.stage} --paper {wildcards.paper} --table {wildcards.table} {params.settings:q} \\
        --out {output.csv:q} >{log:q} 2>&1
        """


use rule table as layer_table with:
    """Compare the times of layer types with their printed complexities, and draw them."""
    input:
        needs(artifacts.LayerTable),
        times=f"{WORK}/layer_times.json",
        printed=from_wildcards(functions.printed),
    output:
        csv=report(
            f"{RESULTS}/{{table}}.csv",
            caption="../report/layers.rst",
            category="{paper}",
            labels={"result": "{table}"},
        ),
        markdown=f"{RESULTS}/{{table}}.md",
        svg=report(
            f"{RESULTS}/{{table}}.svg",
            caption="../report/layers.rst",
            category="{paper}",
            labels={"result": "{table}, drawn"},
        ),
        png=f"{RESULTS}/{{table}}.png",
    wildcard_constraints:
        table=described("layer_costs"),
    params:
        stage="layer-table",
        shown=from_wildcards(functions.report, "layer_costs"),
        caption=lambda wildcards: project.papers[wildcards.paper].layer_costs[wildcards.table].caption,
        settings=[*SETTINGS, "--layer-times", f"{WORK}/layer_times.json"],


rule figure:
    """Draw a figure of a paper."""
    input:
        needs(artifacts.Figure),
    output:
        svg=report(
            f"{RESULTS}/{{figure}}.svg",
            caption="../report/figure.rst",
            category="{paper}",
            labels={"result": "{figure}"},
        ),
        png=f"{RESULTS}/{{figure}}.png",
        csv=f"{RESULTS}/{{figure}}.csv",
        caption=f"{RESULTS}/{{figure}}.md",
    log:
        f"{WORK}/logs/{{paper}}-{{figure}}.log",
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        shown=from_wildcards(functions.report, "figures"),
        caption=lambda wildcards: project.figure(wildcards.paper, wildcards.figure).caption,
        settings=SETTINGS,
    message:
        "{rule} -> {output[0]}"
    shell:
        """
        python -m pipeline figure --paper {wildcards.paper} --figure {wildcards.figure} {params.settings:q} \\
        --out {output.svg:q} >{log:q} 2>&1
        """


rule claims:
    """Compare measured scores with the claims of a paper, with a verdict for each claim."""
    input:
        needs(artifacts.Claims),
        claims="workflow/papers/{paper}/claims.yaml",
    output:
        csv=report(
            f"{RESULTS}/claims.csv",
            caption="../report/claims.rst",
            category="{paper}",
            labels={"result": "claims"},
        ),
        markdown=f"{RESULTS}/claims.md",
    log:
        f"{WORK}/logs/{{paper}}-claims.log",
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        shown=from_wildcards(functions.claims),
        settings=SETTINGS,
    message:
        "{rule} -> {output[0]}"
    shell:
        """
        python -m pipeline claims --paper {wildcards.paper} {params.settings:q} --out {output.csv:q} >{log:q} 2>&1
        """


rule site:
    """Write the site of all results, which opens from disk."""
    input:
        functions.reports(project.reproduced),
    output:
        SITE,
    log:
        f"{WORK}/logs/site.log",
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        shown=json.dumps([SCALE, project.config.seed_list]),
        settings=SETTINGS,
    message:
        "{rule} -> {output}"
    shell:
        """
        python -m pipeline site {params.settings:q} --out "$(dirname {output:q})" >{log:q} 2>&1
        """


rule view:
    """Copy a table or the claims of the configured paper and scale to the top of results/."""
    input:
        csv=f"{layout.results}/{project.config.paper}/{{view}}.csv",
        markdown=f"{layout.results}/{project.config.paper}/{{view}}.md",
    output:
        csv="results/{view}.csv",
        markdown="results/{view}.md",
    log:
        f"{WORK}/logs/view-{{view}}.log",
    params:
        shown=f"{project.config.paper} at {SCALE}",
    message:
        "{rule}: {input.csv} as {output.csv}"
    shell:
        """
        (cp {input.csv:q} {output.csv:q} && cp {input.markdown:q} {output.markdown:q}) >{log:q} 2>&1
        """
