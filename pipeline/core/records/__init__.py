"""The JSON files that one stage writes and another one reads: a closed record each, with its version (record.py)."""
