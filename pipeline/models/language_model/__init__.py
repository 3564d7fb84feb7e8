"""The character language model (Sriram et al. 2017, Table 2)."""
