"""From run folders to claims, cells and figures.

- `names`, `view`: what settings files refer to, and the part of a project that is used here.
- `run_folders`, `training_curves`, `layer_times`: what stages wrote.
- `evidence`, `convergence`: how sure a difference is, and whether a system was trained far enough.
- `claims/`, `cells/`, `figures/`: each kind as a class, listed in the package's `__init__`.
"""
