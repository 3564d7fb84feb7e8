"""What kinds of figures have in common."""
