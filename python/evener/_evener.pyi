"""The native half; what users call stands in the other modules."""

import typing
from collections.abc import Callable

from typing_extensions import Buffer

__version__: str

class Reader:
    def __new__(cls, source: typing.Any, keys: dict[str, typing.Any], segments: int) -> Reader: ...
    @property
    def size(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    def read_into(self, place: int, buffer: Buffer) -> int: ...

class Writer:
    def __new__(cls, sink: typing.Any, keys: dict[str, typing.Any], armor: bool) -> Writer: ...
    def write(self, data: Buffer) -> int: ...
    def finish(self) -> None: ...

def run_files(
    what: str,
    keys: dict[str, typing.Any],
    files: dict[str, typing.Any],
    progress: Callable[[int, int, int | None], object] | None = None,
) -> tuple[str, list[tuple[str, Exception]]]: ...
