"""Symmetric encryption by all cores, and by crypto modules where they pay.

Files and trees (:func:`encrypt`, :func:`decrypt`, :func:`verify`), and encrypted files as file objects (:func:`open`). :mod:`evener.aio` has
the former for asyncio.
"""

from __future__ import annotations

from ._arguments import KeyArguments
from ._evener import __version__
from ._exceptions import (
    AuthenticationError,
    CancelledError,
    Error,
    FilesError,
    FormatError,
    InvalidKeyError,
    OutputExistsError,
    UnsupportedError,
    WrongKeyError,
)
from ._files import ProgressCallback, decrypt, encrypt, verify
from ._report import Report
from ._streams import EncryptedReader, EncryptedWriter, open

__all__ = [
    "AuthenticationError",
    "CancelledError",
    "EncryptedReader",
    "EncryptedWriter",
    "Error",
    "FilesError",
    "FormatError",
    "InvalidKeyError",
    "KeyArguments",
    "OutputExistsError",
    "ProgressCallback",
    "Report",
    "UnsupportedError",
    "WrongKeyError",
    "__version__",
    "decrypt",
    "encrypt",
    "open",
    "verify",
]
