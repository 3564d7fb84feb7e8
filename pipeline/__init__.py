"""Reprise: the pipeline from raw data to the printed tables of papers. Does not import Snakemake."""
