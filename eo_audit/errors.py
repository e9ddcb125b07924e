"""Errors a user may see, each with its exit code.

AuditError
├── ArgumentError       10  a bad argument
├── InputError          11  a path or a set of dumps that cannot be audited
├── ConfigurationError  12  a policy, configuration or schema that cannot be used
└── WarehouseError      11  results that cannot be read or written (locked, missing, of another version)

A bad *line* is data and never an exception. Any other exception is a crash: 20.
"""

PASS, FAIL, UNKNOWN = 0, 1, 2
CRASH = 20


class AuditError(Exception):
    """Base of every error that is printed as one sentence, without a stack trace."""

    exit_code = CRASH


class ArgumentError(AuditError):
    """An argument that cannot be understood."""

    exit_code = 10


class InputError(AuditError):
    """A path that does not exist, or two files that claim the same segment with different content."""

    exit_code = 11


class ConfigurationError(AuditError):
    """A policy, configuration or schema file that cannot be used."""

    exit_code = 12


class WarehouseError(AuditError):
    """Results that are locked, missing or of another version."""

    exit_code = 11
