"""The one exception that is the user's to mend: shown as one line, without a traceback."""


class UserError(Exception):
    """Bad input, configuration or environment. The message says what, where, and what to do."""


class UnreadableError(UserError):
    """A file can't be read, which says nothing of what it holds."""
