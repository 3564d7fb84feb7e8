"""What kinds of cells have in common."""
