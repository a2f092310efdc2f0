"""What goes wrong, one class for each kind of fault.

What the system refuses is an ``OSError`` (``PermissionError``, ``FileNotFoundError``, ...); arguments that do not fit are ``ValueError``,
``TypeError`` or ``BufferError``, as elsewhere in Python.
"""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from ._report import Report
    from ._shards import ShardsReport

__all__ = [
    "AuthenticationError",
    "CancelledError",
    "Error",
    "FilesError",
    "FormatError",
    "InvalidKeyError",
    "ObjectsError",
    "OutputExistsError",
    "UnsupportedError",
    "WrongKeyError",
]


class Error(Exception):
    """Whatever Evener raises and Python has no class for."""


class InvalidKeyError(Error, ValueError):
    """A key, keyset, recipient, identity or passphrase cannot be one."""


class WrongKeyError(Error):
    """None of the keys fits what is to be opened."""


class FormatError(Error, ValueError):
    """Bytes are not in the format that was expected, or end too early."""


class AuthenticationError(Error):
    """A tag or padding does not fit: a wrong key, nonce or associated data, or bytes that were changed.

    Of a burst, ``indices`` has the numbers of all jobs that failed so; the others are done.
    """

    indices: tuple[int, ...] = ()


class UnsupportedError(Error):
    """Understood, and not done by Evener or by the module that was named."""


class OutputExistsError(Error, FileExistsError):
    """Something stands where the output belongs, and is not the finished result."""


class CancelledError(Error):
    """The work was stopped before this was done."""


class FilesError(Error):
    """Several files of a run failed. ``report`` tells what was done; ``failed`` has each path with its exception."""

    report: Report
    failed: dict[str, Exception]

    def __init__(self, message: str, report: Report, failed: dict[str, Exception]) -> None:
        super().__init__(message)
        self.report = report
        self.failed = failed

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.args[0], self.report, self.failed))


class ObjectsError(Error):
    """Objects of a tree failed, or whole shards. ``failed`` has each object with the reason, ``failed_shards`` each shard that told of none."""

    report: ShardsReport

    def __init__(self, message: str, report: ShardsReport) -> None:
        super().__init__(message)
        self.report = report

    @property
    def failed(self) -> dict[str, str]:
        """Objects that failed, by their names below the source."""
        return self.report.failed

    @property
    def failed_shards(self) -> dict[int, str]:
        """Shards that ended without a report, by their numbers in the plan."""
        return self.report.failed_shards

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.args[0], self.report))
