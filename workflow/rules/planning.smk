# Check the data and forecast the cost before a campaign, and compare the cost afterwards. None is a paper's result.

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
        gpus=resource("decode", "gpus") * SHARING.trainings_per_gpu,  # a whole GPU, because it measures time
        jobs_per_gpu=SHARING.trainings_per_gpu,
    params:
        job=f"{WORK}/jobs/calibrate",
        settings=SETTINGS,
    message:
        "{rule} for about a minute -> {output}"
    shell:
        LAUNCH
        + " --alone --folder {params.job:q} --makes {output:q}"
        + " -- calibrate {params.settings:q} --out {output:q} --threads {threads} 2>&1 | tee {log:q}"


rule check_data:
    """List which data files are here and how to get the others; fail if some are unavailable."""
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
    """Forecast FLOPs, hours, disk and downloads of every job; rewritten each time, with finished jobs."""
    input:
        # Calibrated if trainings run on this machine's CPU; for GPUs only if the file exists.
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
    """Compare the cost of trainings and decodings with the forecast; rewritten each time."""
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
