# Tables, and the view of the configured paper's tables at the top of results/.


# Where a paper's table is measured on layers, no run is behind it; one of examples has no scores.
ruleorder: layer_table > example_table > transcript_table > table


rule table:
    """Set scores next to the numbers a paper printed."""
    input:
        printed="workflow/papers/{paper}/{table}.csv",
        measured=table_inputs,
        rates=cost_inputs,
    output:
        csv=report(
            f"results/{SCALE}/{{paper}}/{{table}}.csv",
            caption="../report/table.rst",
            category="{paper}",
            labels={"table": "{table}", "format": "CSV"},
        ),
        markdown=f"results/{SCALE}/{{paper}}/{{table}}.md",
    log:
        f"{WORK}/{SCALE}/logs/{{paper}}-{{table}}.log",
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        settings=SETTINGS,
        shown=table_settings,
    message:
        "Writing {output.csv} and {output.markdown}"
    shell:
        """
        python -m pipeline table --paper {wildcards.paper} --table {wildcards.table} {params.settings} \
            --out {output.csv:q} >{log:q} 2>&1
        """


rule example_table:
    """Set every system's translation of one sentence side by side."""
    input:
        printed="workflow/papers/{paper}/{table}.csv",
        measured=example_inputs,
    output:
        csv=report(
            f"results/{SCALE}/{{paper}}/{{table}}.csv",
            caption="../report/table.rst",
            category="{paper}",
            labels={"table": "{table}", "format": "CSV"},
        ),
        markdown=f"results/{SCALE}/{{paper}}/{{table}}.md",
    log:
        f"{WORK}/{SCALE}/logs/{{paper}}-{{table}}.log",
    wildcard_constraints:
        table=either({name for paper in project.papers.values() for name in paper.examples}),
        paper=either(name for name, paper in project.papers.items() if paper.examples),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        settings=SETTINGS,
        shown=example_settings,
    message:
        "Writing {output.csv} and {output.markdown}"
    shell:
        """
        python -m pipeline example-table --paper {wildcards.paper} --table {wildcards.table} {params.settings} \
            --out {output.csv:q} >{log:q} 2>&1
        """


rule transcript_table:
    """Set what systems write down of a few utterances next to what a paper printed."""
    input:
        printed="workflow/papers/{paper}/{table}.csv",
        written=transcript_inputs,
    output:
        csv=report(
            f"results/{SCALE}/{{paper}}/{{table}}.csv",
            caption="../report/table.rst",
            category="{paper}",
            labels={"table": "{table}", "format": "CSV"},
        ),
        markdown=f"results/{SCALE}/{{paper}}/{{table}}.md",
    log:
        f"{WORK}/{SCALE}/logs/{{paper}}-{{table}}.log",
    wildcard_constraints:
        table=either({name for paper in project.papers.values() for name in paper.transcripts}),
        paper=either(name for name, paper in project.papers.items() if paper.transcripts),
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        settings=SETTINGS,
        shown=transcript_settings,
    message:
        "Writing {output.csv} and {output.markdown}"
    shell:
        """
        python -m pipeline transcript-table --paper {wildcards.paper} --table {wildcards.table} {params.settings} \
            --out {output.csv:q} >{log:q} 2>&1
        """


rule view:
    """Show a table or the claims of the configured paper at the configured scale at the top of results/."""
    input:
        csv=f"results/{SCALE}/{project.config.paper}/{{shown}}.csv",
        markdown=f"results/{SCALE}/{project.config.paper}/{{shown}}.md",
    output:
        csv="results/{shown}.csv",
        markdown="results/{shown}.md",
    log:
        f"{WORK}/{SCALE}/logs/view-{{shown}}.log",
    conda:
        "../envs/pipeline.yaml"
    params:
        shown=f"{project.config.paper} at {SCALE}",
    message:
        "Showing {input.csv} as {output.csv}"
    shell:
        """
        (cp {input.csv:q} {output.csv:q} && cp {input.markdown:q} {output.markdown:q}) >{log:q} 2>&1
        """
