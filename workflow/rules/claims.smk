# What a paper says, judged by what ran.


rule claims:
    """Set what was measured next to what a paper says, with a verdict for each claim."""
    input:
        claims="workflow/papers/{paper}/claims.yaml",
        measured=claim_inputs,
    output:
        csv=report(
            f"results/{SCALE}/{{paper}}/claims.csv",
            caption="../report/claims.rst",
            category="{paper}",
            labels={"table": "claims", "format": "CSV"},
        ),
        markdown=f"results/{SCALE}/{{paper}}/claims.md",
    log:
        f"{WORK}/{SCALE}/logs/{{paper}}-claims.log",
    conda:
        "../envs/pipeline.yaml"
    resources:
        mem_mb=resource("score", "mem_mb"),
        runtime=resource("score", "runtime"),
    params:
        settings=SETTINGS,
        shown=claim_settings,
    message:
        "Writing {output.csv} and {output.markdown}"
    shell:
        """
        python -m pipeline claims --paper {wildcards.paper} {params.settings} --out {output.csv:q} >{log:q} 2>&1
        """
