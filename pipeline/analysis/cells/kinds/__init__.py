"""Kinds of columns of a table, one a file: what each needs, what stands in it, and how that is shown.

A file holds one record derived from `Cell` (shared/cell.py), whose `kind` is the file's name and what paper.yaml says;
that is all. Every dry run imports it, so it may import numpy, but neither torch nor what counts scores.
"""
