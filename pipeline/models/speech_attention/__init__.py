"""The attention recogniser (Sriram et al. 2017, section 4.2)."""
