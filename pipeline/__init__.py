"""Reprise: the stages that take a paper from raw data to its printed tables. Knows nothing of Snakemake."""
