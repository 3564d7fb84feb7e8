"""The command `verify`, and the checks that it makes."""
