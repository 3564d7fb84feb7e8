"""From run folders to claims, cells and figures.

- `reference_types`, `view`: names in settings files, and a paper at one scale, which resolves them.
- `run_folders`, `training_curves`: files of finished runs, and whether a system was trained far enough.
- `evidence`: effect sizes, standard errors and p-values.
- `claims/`, `cells/`, `figures/`: each kind is a class that the package lists in its `__init__`.
"""
