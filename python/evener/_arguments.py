"""Arguments as users give them, gathered for the native half."""

from __future__ import annotations

import os
import typing
from collections.abc import Iterable

PathName = typing.Union[str, "os.PathLike[str]"]
#: A key file: where it lies, or its contents as ``bytes``.
Secret = typing.Union[str, "os.PathLike[str]", bytes]
#: A passphrase.
Passphrase = typing.Union[str, bytes]


class KeyArguments(typing.TypedDict, total=False):
    """Which key: one kind of these. A path is read and wiped by Evener; ``bytes`` are contents, and stay Python's."""

    key: Secret
    """A Tink keyset, JSON or binary, as ``evener keygen`` makes it: the Tink format."""
    key_passphrase: Passphrase
    """The passphrase of the keyset's or identity's own file."""
    key_encryption: Secret
    """A cleartext keyset that the keyset is encrypted under, as Tink does it."""
    associated_data: bytes
    """What a Tink file is bound to: not stored, and given again to decrypt."""
    identity: typing.Union[Secret, "Iterable[Secret]"]
    """age identities or SSH keys, one or several files; encryption is for their recipients."""
    recipient: typing.Union[str, "Iterable[str]"]
    """age or SSH recipients, for encryption: ``age1...``, ``ssh-ed25519 ...``."""
    recipients_file: typing.Union[Secret, "Iterable[Secret]"]
    """Files of recipients, one a line."""
    passphrase: Passphrase
    """A passphrase: the age format, or with ``format="openssl"`` that of ``openssl enc``."""
    work_factor: int
    """What deriving a passphrase's key costs in new age files: 18 unless given, and 22 at most; each more doubles time and memory."""
    work_factor_max: int
    """The most that is accepted in files that are read: 20 unless given, and 22 at most."""
    format: str
    """``age``, ``tink`` or ``openssl``, where the key alone does not say it. ``openssl`` is NOT authenticated."""
    cipher: str
    """Cipher of the openssl format; ``aes-256-cbc`` unless given."""
    digest: str
    """Digest of the openssl format; ``sha256`` unless given."""
    kdf: str
    """``pbkdf2`` or ``legacy``."""
    iterations: int
    """Rounds of PBKDF2."""


_SEVERAL = ("identity", "recipient", "recipients_file")
_KEYS = tuple(KeyArguments.__annotations__)


def keys(given: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Every key argument by its name, those that take several as lists; one that there is not is a ``TypeError``."""
    gathered: dict[str, typing.Any] = dict.fromkeys(_KEYS)
    for name, value in given.items():
        if name not in gathered:
            raise TypeError(f"there is no argument {name!r}")
        gathered[name] = value
    for name in _SEVERAL:
        gathered[name] = several(gathered[name])
    gathered["associated_data"] = _data("associated_data", gathered["associated_data"])
    return gathered


def _data(name: str, given: typing.Any) -> bytes:
    """A copy of bytes that a buffer lends; a number, of which ``bytes`` would make so many zeros, is none."""
    if given is None:
        return b""
    try:
        return memoryview(given).tobytes()
    except TypeError:
        raise TypeError(f"{name} is to be bytes, and not {type(given).__name__}") from None


def several(given: typing.Any) -> list[typing.Any]:
    """One or several, as a list."""
    if given is None:
        return []
    if isinstance(given, (str, bytes, os.PathLike)):
        return [given]
    return list(given)
