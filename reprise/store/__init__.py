"""Keeping what was made: verify.py looks for damage, adopt.py takes over what earlier versions left."""
