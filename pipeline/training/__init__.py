"""Training: the loop and what stands around it."""
