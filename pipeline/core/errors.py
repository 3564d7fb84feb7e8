"""The one exception that is the user's to mend: shown as one line, without a traceback."""


class UserError(Exception):
    """Bad input, configuration or environment. The message says what, where, and what to do."""


class UnreadableError(UserError):
    """A file can't be read, which says nothing of what it holds."""


class LostPeer(UserError, RuntimeError):
    """Another process of this training died or hangs: no fault of this one, and none that another start would meet."""
