# From trained weights to what a model writes. What may want a GPU is launched: here, or through Slurm, where what reads the
# weights of one run is done in one job; `update`, since a file may be made before its own rule's turn comes.
# A file named {split}@{scored_on} is about that corpus, whatever the run was trained on.


rule average:
    """Average the last or the best checkpoints of one run."""
    input:
        unpack(needs(Averaged)),
    output:
        update(pattern(Averaged)),
    log:
        log_of(Averaged, "average", "{decoding}"),
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        job=job_of(Averaged, "average", "{decoding}"),
        command=stage(
            "average --run {folder} {which} --out {output}",
            folder=folder,
            which=averaged_checkpoints,
        ),
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset} -> {output}"
    shell:
        f"{TOGETHER} -- {{params.command:q}} >{{log:q}} 2>&1"


rule translate:
    """Translate one split by beam search."""
    input:
        unpack(needs(Translation)),
    output:
        tokenised=update(pattern(Translation)),
        text=update(pattern(Translation).replace(".tok", ".txt")),
    log:
        log_of(Translation, "translate", "{decoding}", "{split}"),
    wildcard_constraints:
        dataset=of_form("sentences", "speech", "characters"),
    threads: resource("decode", "threads")
    resources:
        mem_mb=resource("decode", "mem_mb"),
        runtime=resource("decode", "runtime"),
        launcher="local",
        sbatch="",
        gpus=resource("decode", "gpus"),
    params:
        job=job_of(Translation, "translate", "{decoding}", "{split}"),
        command=stage(
            "translate --weights {weights} --split {wildcards.split} --decoding {decoding} {language_model}"
            " --out {output.tokenised} --text {output.text}",
            weights=weights_file,
            decoding=decoding_settings,
            language_model=language_model,
        ),
    message:
        "{rule}: {wildcards.paper}/{wildcards.system} on {wildcards.dataset} -> {output}"
    shell:
        f"{TOGETHER} -- {{params.command:q}} --threads {{threads}} >{{log:q}} 2>&1"


use rule translate as parse with:
    """Write the linearised tree of each sentence of one split by beam search."""
    input:
        unpack(needs(Parse)),
    output:
        update(pattern(Parse)),
    log:
        log_of(Parse, "parse", "{decoding}", "{split}"),
    wildcard_constraints:
        dataset=of_form("trees"),
    params:
        job=job_of(Parse, "parse", "{decoding}", "{split}"),
        command=stage(
            "translate --weights {weights} --split {wildcards.split} --decoding {decoding} --out {output}",
            weights=weights_file,
            decoding=decoding_settings,
        ),


use rule translate as tune with:
    """Choose the weights of shallow fusion on the development set of the run's own corpus."""
    input:
        unpack(needs(Tuned)),
    output:
        update(pattern(Tuned)),
    log:
        log_of(Tuned, "tune", "{decoding}"),
    wildcard_constraints:
        dataset=r"[\w-]+",
    params:
        job=job_of(Tuned, "tune", "{decoding}"),
        command=stage(
            "tune --weights {weights} --decoding {decoding} {language_model} --out {output}",
            weights=weights_file,
            decoding=decoding_settings,
            language_model=language_model,
        ),


use rule translate as transcribe with:
    """Write down what is said in one split of a corpus."""
    input:
        unpack(needs(Transcript)),
    output:
        update(pattern(Transcript)),
    log:
        log_of(Transcript, "transcribe", "{decoding}", "{split}@{scored_on}"),
    wildcard_constraints:
        dataset=r"[\w-]+",
    params:
        job=job_of(Transcript, "transcribe", "{decoding}", "{split}@{scored_on}"),
        command=stage(
            "transcribe --weights {weights} --corpus {corpus} --split {wildcards.split} --decoding {decoding}"
            " {language_model} {tuned} --out {output}",
            weights=weights_file,
            corpus=folder_of("scored_on"),
            decoding=decoding_settings,
            language_model=language_model,
            tuned=tuned,
        ),
