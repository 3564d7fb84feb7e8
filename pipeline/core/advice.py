"""What a user is told to type."""

import os


def advised(stage: str) -> str:
    """A stage as it is to be typed, with the settings of the workflow that this process is part of, if of one."""
    settings = os.environ.get("REPRISE_SETTINGS")
    unknown = " (with --set for each --config)" if settings is None else ""
    return f"`reprise {stage}{settings or ''}`{unknown}"


REPAIR = f"run {advised('verify --repair')}, then the same command again"
"""What mends any file that is damaged or missing."""
