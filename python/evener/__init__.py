"""Symmetric encryption by all cores, and by crypto modules where they pay.

Files and trees (:func:`encrypt`, :func:`decrypt`, :func:`verify`), encrypted files as file objects (:func:`open`), and bursts of thousands
of buffers in one call (:class:`Session`, :func:`crypt_many`, :func:`hash_many`). :mod:`evener.aio` has files and bursts for asyncio,
:mod:`evener.ray` trees of objects by the machines of a Ray cluster.
"""

from __future__ import annotations

from ._arguments import KeyArguments
from ._bursts import Crypted, algorithms, configure, crypt_many, hash_many, statistics
from ._evener import Session, __version__
from ._exceptions import (
    AuthenticationError,
    CancelledError,
    Error,
    FilesError,
    FormatError,
    InvalidKeyError,
    ObjectsError,
    OutputExistsError,
    UnsupportedError,
    WrongKeyError,
)
from ._files import ProgressCallback, decrypt, encrypt, verify
from ._report import Report
from ._streams import EncryptedReader, EncryptedTextWriter, EncryptedWriter, open

__all__ = [
    "AuthenticationError",
    "CancelledError",
    "Crypted",
    "EncryptedReader",
    "EncryptedTextWriter",
    "EncryptedWriter",
    "Error",
    "FilesError",
    "FormatError",
    "InvalidKeyError",
    "KeyArguments",
    "ObjectsError",
    "OutputExistsError",
    "ProgressCallback",
    "Report",
    "Session",
    "UnsupportedError",
    "WrongKeyError",
    "__version__",
    "algorithms",
    "configure",
    "crypt_many",
    "decrypt",
    "encrypt",
    "hash_many",
    "open",
    "statistics",
    "verify",
]
