"""A toy: the next symbol from the last one and the sum of the source's."""
