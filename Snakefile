# `snakemake` starts here. The workflow is in workflow/Snakefile, where Snakemake's catalogue and modules look for it.
include: "workflow/Snakefile"


localrules:
    default,


rule default:
    """Make what `all` makes: an included file cannot choose the target of a `snakemake` without one."""
    default_target: True
    input:
        rules.all.input,
