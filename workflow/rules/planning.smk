# Before: is the data here, what will it cost? After: what did it cost? None of these files is a result of a paper.


rule check_data:
    """Say which files of the data are here and how to get the others; an error if some can't be had."""
    log:
        f"{WORK}/{SCALE}/logs/check-data.log",
    conda:
        "../envs/pipeline.yaml"
    params:
        settings=SETTINGS,
    message:
        "Looking for the data of scale {SCALE}"
    shell:
        """
        python -m pipeline check-data {params.settings} 2>&1 | tee {log:q}
        """


rule calibrate:
    """Measure how fast this machine trains and decodes the models of the papers."""
    output:
        f"{WORK}/{SCALE}/calibration.json",
    log:
        f"{WORK}/{SCALE}/logs/calibrate.log",
    conda:
        "../envs/pipeline.yaml"
    threads: resource("train", "threads")
    resources:
        mem_mb=resource("train", "mem_mb"),
        runtime=resource("score", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        settings=SETTINGS,
        job=f"{WORK}/{SCALE}/jobs/calibrate",
    message:
        "Calibrating for about a minute -> {output}"
    shell:
        """
        python -m pipeline launch --launcher {resources.launcher} --sbatch={resources.sbatch:q} --cpus {threads} \
            --mem-mb {resources.mem_mb} --runtime-min {resources.runtime} --gpus {resources.gpus} \
            --folder {params.job:q} --makes {output:q} \
            -- calibrate {params.settings} --threads {threads} --out {output:q} 2>&1 | tee {log:q}
        """


rule plan:
    """Forecast operations, hours, disk and downloads of every job; written anew each time, with what is done."""
    input:
        calibration=calibration_input,
    log:
        f"{WORK}/{SCALE}/logs/plan.log",
    conda:
        "../envs/pipeline.yaml"
    params:
        settings=SETTINGS,
        calibration=CALIBRATION,
        plan=f"results/{SCALE}/plan.csv",
    message:
        "Planning -> {params.plan}"
    shell:
        """
        python -m pipeline plan {params.settings} --calibration {params.calibration:q} --out {params.plan:q} \
            2>&1 | tee {log:q}
        """


rule cost:
    """Put what trainings and translations took next to the forecast; written anew each time."""
    log:
        f"{WORK}/{SCALE}/logs/cost.log",
    conda:
        "../envs/pipeline.yaml"
    params:
        settings=SETTINGS,
        plan=f"results/{SCALE}/plan.csv",
        cost=f"results/{SCALE}/cost.csv",
    message:
        "Comparing cost and forecast -> {params.cost}"
    shell:
        """
        python -m pipeline cost {params.settings} --plan {params.plan:q} --out {params.cost:q} 2>&1 | tee {log:q}
        """
