"""The errors a user can cause. Each is one readable sentence and ends the program with exit code 2.

Anything else that is raised is a bug and ends it with a traceback and exit code 1. The classes live in the
rightmost room so that every other room can raise them.
"""


class UserError(ValueError):
    """Something the user gave is wrong; the message says what was found, where, and how to go on."""


class ConfigError(UserError):
    """An experiment file, an option or one of its values."""


class DivergedError(ConfigError):
    """Training settings under which a loss, gradient or val figure became infinite or no number."""


class DataError(UserError):
    """A corpus: missing, unreadable, changed, or too short."""


class TokenizerError(UserError):
    """A tokenizer, its file, or text that it cannot represent."""


class CheckpointError(UserError):
    """A checkpoint that is damaged or belongs to another tokenizer, text or configuration."""


class ReportError(UserError):
    """Results that cannot be compared."""


class InUseError(UserError):
    """Something that another process is at work on."""
