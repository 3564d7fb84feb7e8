"""Searching for the outputs of a model that is given: beam and CTC prefix search."""
