# Before: is the data here, what will it cost? After: what did it cost? None of these files is a result of a paper.

PLAN, COST = str(layout.results / "plan.csv"), str(layout.results / "cost.csv")


rule calibrate:
    """Measure how fast this machine trains and decodes the models of the papers."""
    output:
        pattern(Calibration),
    log:
        log_of(Calibration, "calibrate"),
    threads: resource("train", "threads")
    resources:
        mem_mb=resource("train", "mem_mb"),
        runtime=resource("score", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        job=job_of(Calibration, "calibrate"),
        command=stage("calibrate {settings} --out {output}"),
    message:
        "{rule} for about a minute -> {output}"
    shell:
        LAUNCH
        + " --folder {params.job:q} --makes {output:q} -- {params.command:q} --threads {threads} 2>&1 | tee {log:q}"


rule check_data:
    """Say which files of the data are here and how to get the others; an error if some can't be had."""
    log:
        log_of(Calibration, "check-data"),
    params:
        command=stage("check-data {settings}"),
    message:
        "{rule} of scale {SCALE}"
    shell:
        """
        python -m pipeline {params.command:q} 2>&1 | tee {log:q}
        """


use rule check_data as plan with:
    """Forecast operations, hours, disk and downloads of every job; written anew each time, with what is done."""
    input:
        # Measured where trainings run on this machine's processor; of GPUs only if somebody did.
        calibration=pattern(Calibration) if resource("train", "gpus") == 0 else [],
    log:
        log_of(Calibration, "plan"),
    params:
        command=stage(f"plan {{settings}} --calibration {pattern(Calibration)} --out {PLAN}"),


use rule check_data as cost with:
    """Put what trainings and translations took next to the forecast; written anew each time."""
    log:
        log_of(Calibration, "cost"),
    params:
        command=stage(f"cost {{settings}} --plan {PLAN} --out {COST}"),
