# Before: is the data here, what will it cost? After: what did it cost? None of these files is a result of a paper.

CALIBRATION = f"{WORK}/calibration.json"
PLAN, COST = f"{layout.results}/plan.csv", f"{layout.results}/cost.csv"


rule calibrate:
    """Measure how fast this machine trains and decodes the models of the papers."""
    output:
        f"{WORK}/calibration.json",
    log:
        f"{WORK}/logs/calibrate.log",
    threads: resource("train", "threads")
    resources:
        mem_mb=resource("train", "mem_mb"),
        runtime=resource("score", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        job=f"{WORK}/jobs/calibrate",
        settings=SETTINGS,
    message:
        "{rule} for about a minute -> {output}"
    shell:
        LAUNCH
        + " --folder {params.job:q} --makes {output:q}"
        + " -- calibrate {params.settings:q} --out {output:q} --threads {threads} 2>&1 | tee {log:q}"


rule check_data:
    """Say which files of the data are here and how to get the others; an error if some can't be had."""
    log:
        f"{WORK}/logs/check-data.log",
    params:
        settings=SETTINGS,
    message:
        "{rule} of scale {SCALE}"
    shell:
        """
        python -m pipeline check-data {params.settings:q} 2>&1 | tee {log:q}
        """


rule plan:
    """Forecast operations, hours, disk and downloads of every job; rewritten each time, with what is done."""
    input:
        # Measured where trainings run on this machine's processor; of GPUs only if somebody did.
        calibration=CALIBRATION if resource("train", "gpus") == 0 else [],
    log:
        f"{WORK}/logs/plan.log",
    params:
        settings=[*SETTINGS, "--calibration", CALIBRATION, "--out", PLAN],
    message:
        "{rule} of scale {SCALE}"
    shell:
        """
        python -m pipeline plan {params.settings:q} 2>&1 | tee {log:q}
        """


rule cost:
    """Put what trainings and translations took next to the forecast; rewritten each time."""
    log:
        f"{WORK}/logs/cost.log",
    params:
        settings=[*SETTINGS, "--plan", PLAN, "--out", COST],
    message:
        "{rule} of scale {SCALE}"
    shell:
        """
        python -m pipeline cost {params.settings:q} 2>&1 | tee {log:q}
        """
