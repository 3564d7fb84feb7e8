"""Tables, figures, claims and costs: scores next to what the papers printed."""
