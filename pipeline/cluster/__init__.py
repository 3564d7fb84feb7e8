"""One launcher for long jobs: on Slurm through submitit, as a process of this machine, or in-process for a debugger.

`launch` submits or adopts a job and waits; `job` is what runs inside it; `queue` is the one question all waiting
launchers put to Slurm; `ownership` keeps two jobs from working on one run. The files of a run folder they share are
listed in `markers`. None of it needs torch.
"""
