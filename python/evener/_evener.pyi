"""The native half; what users call stands in the other modules."""

import typing
from collections.abc import Callable, Iterable, Sequence

from typing_extensions import Buffer

__all__ = [
    "Reader",
    "Session",
    "Writer",
    "__version__",
    "algorithms",
    "configure",
    "crypt_many",
    "rename_new",
    "run_files",
    "statistics",
]

__version__: str

@typing.final
class Session:
    """Key, algorithm and direction, checked once, for any thread. The key is copied, and wiped with the last use of the session.

    :param algorithm: a name of :func:`evener.algorithms`: ``AES-256-GCM``, ``AES-128-CBC``, ``SHA-256``.
    :param key: the key; nothing for hashes.
    :param direction: ``encrypt`` (also of hashes) or ``decrypt``.
    :param padding: PKCS#7, for ECB and CBC.
    """

    def __new__(
        cls, algorithm: str, key: Buffer | None = None, direction: typing.Literal["encrypt", "decrypt"] = "encrypt", *, padding: bool = False
    ) -> Session: ...
    @property
    def algorithm(self) -> str:
        """The algorithm's name."""
    @property
    def direction(self) -> str:
        """``encrypt`` or ``decrypt``."""
    @property
    def padding(self) -> bool:
        """Whether PKCS#7 is added and taken away."""
    @property
    def iv_bytes(self) -> int:
        """Length of an IV, nonce, counter or tweak; 0 where there is none."""
    @property
    def tag_bytes(self) -> int:
        """Length of a tag or digest; 0 where there is none."""

@typing.final
class Reader:
    def __new__(cls, source: typing.Any, keys: dict[str, typing.Any], segments: int) -> Reader: ...
    @property
    def size(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    def read_into(self, place: int, buffer: Buffer) -> int: ...

@typing.final
class Writer:
    def __new__(cls, sink: typing.Any, keys: dict[str, typing.Any], armor: bool) -> Writer: ...
    def write(self, data: Buffer) -> int: ...
    def finish(self) -> None: ...

def rename_new(draft: str, name: str) -> None: ...
def run_files(
    what: str,
    keys: dict[str, typing.Any],
    files: dict[str, typing.Any],
    progress: Callable[[int, int, int | None], object] | None = None,
) -> tuple[str, list[tuple[str, Exception]]]: ...
def crypt_many(
    session: Session,
    buffers: Buffer | Iterable[Buffer],
    ivs: Buffer | Iterable[Buffer] | None,
    aads: Buffer | Iterable[Buffer] | None,
    tags: Buffer | Iterable[Buffer] | None,
    out: Buffer | Iterable[Buffer] | None,
    in_place: bool,
    size: int | None,
    ranges: Sequence[tuple[int, int]] | None,
) -> tuple[list[bytes | None] | None, bytes | None, dict[int, Exception]]: ...
def algorithms() -> list[tuple[str, int | None, int, int]]: ...
def configure(threads: int | None, modules: list[str], policy: str | None) -> None: ...
def statistics() -> dict[str, int]: ...
