"""Searching for the outputs of a model that is given: greedy, beam and CTC prefix search."""
