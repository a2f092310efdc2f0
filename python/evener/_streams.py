"""Encrypted files as file objects."""

from __future__ import annotations

import errno
import io
import os
import stat
import typing

from . import _arguments, _evener
from ._arguments import KeyArguments, PathName
from ._exceptions import UnsupportedError

if typing.TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer, Unpack

#: Segments that a reader keeps open unless told otherwise.
SEGMENTS = 4


class EncryptedReader(io.RawIOBase):
    """The plaintext of an encrypted source, at any place: what is read was authenticated, and no more than the segments around it is opened.

    One thread at a time; :func:`evener.open` wraps it into an ``io.BufferedReader``.
    """

    def __init__(self, source: typing.Any, keys: dict[str, typing.Any], segments: int, name: str) -> None:
        super().__init__()
        self.name = name
        self.mode = "rb"
        self._place = 0
        self._opened: typing.Optional[_evener.Reader] = None
        self._opened = _evener.Reader(source, keys, segments)

    @property
    def size(self) -> int:
        """Length of the plaintext."""
        return self._reader().size

    @property
    def bytes_read(self) -> int:
        """Bytes of segments that were read from the source so far."""
        return self._reader().bytes_read

    def readable(self) -> bool:
        self._reader()
        return True

    def seekable(self) -> bool:
        self._reader()
        return True

    def readinto(self, buffer: Buffer) -> int:
        count = self._reader().read_into(self._place, buffer)
        self._place += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        reader = self._reader()
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: reader.size}
        if whence not in starts:
            raise ValueError(f"whence is {whence}; there are 0, 1 and 2")
        place = starts[whence] + offset
        if place < 0:
            raise ValueError(f"the place {place} lies before the start")
        self._place = place
        return place

    def tell(self) -> int:
        self._reader()
        return self._place

    def close(self) -> None:
        self._opened = None
        super().close()

    def _reader(self) -> _evener.Reader:
        if self._opened is None:
            raise ValueError("I/O operation on closed file")
        return self._opened

    def __repr__(self) -> str:
        return f"<evener.EncryptedReader {self.name!r}>"


class _Leaving(typing.Protocol):
    def close(self) -> None: ...
    def discard(self) -> None: ...


class _WholeOrNothing:
    """A file whose ``with`` block gives up what it wrote where it ends by an exception."""

    def __exit__(self: _Leaving, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class EncryptedWriter(_WholeOrNothing, io.BufferedIOBase):
    """Encrypts what is written to it. A file has its name when it is closed, whole and on the disk; after an exception in a ``with`` block, and
    after :meth:`discard`, nothing is there that was not there before. A file that it replaces leaves its mode to it, and its owner where this
    process may give it.
    """

    def __init__(self, sink: typing.Any, keys: dict[str, typing.Any], armor: bool, name: str, final: str | None = None, exclusive: bool = False) -> None:
        super().__init__()
        self.name = name
        self.mode = "wb"
        self._final = final
        self._exclusive = exclusive
        self._place = 0
        self._opened: typing.Optional[_evener.Writer] = None
        self._process = os.getpid()
        self._draft = _draft(final) if final is not None else None
        try:
            self._opened = _evener.Writer(self._draft or sink, keys, armor)
        except BaseException:
            self._remove()
            raise

    def writable(self) -> bool:
        self._writer()
        return True

    def write(self, data: Buffer) -> int:
        count = self._writer().write(data)
        self._place += count
        return count

    def tell(self) -> int:
        self._writer()
        return self._place

    def close(self) -> None:
        writer, self._opened = self._opened, None
        if writer is not None:
            try:
                writer.finish()
                self._settle()
            except BaseException:
                self._remove()
                super().close()
                raise
        super().close()

    def discard(self) -> None:
        """Gives up what was written: closes without a result. Of a file object it leaves what went there, which no reader takes for whole."""
        self._opened = None
        self._remove()
        super().close()

    def _settle(self) -> None:
        if self._draft is None or self._final is None:
            return
        if self._exclusive:
            _name_new(self._draft, self._final)
        else:
            _take_over(self._draft, self._final)
            os.replace(self._draft, self._final)
        self._draft = None
        _sync_directory(os.path.dirname(self._final) or ".")

    def _remove(self) -> None:
        draft, self._draft = self._draft, None
        # A child that a fork left with a copy of this has no part in it.
        if draft is not None and os.getpid() == self._process:
            try:
                os.unlink(draft)
            except FileNotFoundError:
                pass

    def _writer(self) -> _evener.Writer:
        if self._opened is None:
            raise ValueError("I/O operation on closed file")
        return self._opened

    def __del__(self) -> None:
        # Nobody said that it is whole.
        if getattr(self, "_opened", None) is not None:
            self.discard()

    def __repr__(self) -> str:
        return f"<evener.EncryptedWriter {self.name!r}>"


class EncryptedTextWriter(_WholeOrNothing, io.TextIOWrapper):
    """Encrypts text that is written to it. As of an :class:`EncryptedWriter`, nothing is left of what fails; a wrapper of one's own would close the file
    after an exception as well, and so give what was written until then its name.
    """

    def __init__(self, writer: EncryptedWriter, encoding: str | None, errors: str | None, newline: str | None) -> None:
        self._writer = writer
        try:
            # A byte order mark is written only where it can be asked that nothing was before.
            setattr(writer, "seekable", lambda: True)
            super().__init__(writer, encoding, errors, newline)
            delattr(writer, "seekable")
        except BaseException:
            writer.discard()
            raise

    def close(self) -> None:
        if not self.closed:
            try:
                self.flush()
            except BaseException:
                self.discard()
                raise
        super().close()

    def discard(self) -> None:
        """Gives up what was written: closes without a result."""
        self._writer.discard()

    def __del__(self) -> None:
        try:
            is_open = not self.closed
        except ValueError:
            # The writer was taken out of it, and is another's.
            is_open = False
        # Nobody said that it is whole.
        if is_open:
            self.discard()


@typing.overload
def open(file: typing.Any, mode: typing.Literal["rb"] = "rb", *, buffering: typing.Literal[0], segments: int = SEGMENTS, **keys: Unpack[KeyArguments]) -> EncryptedReader: ...
@typing.overload
def open(file: typing.Any, mode: typing.Literal["rb"] = "rb", *, buffering: int = -1, segments: int = SEGMENTS, **keys: Unpack[KeyArguments]) -> io.BufferedReader: ...
@typing.overload
def open(file: typing.Any, mode: typing.Literal["wb", "xb"], *, armor: bool = False, **keys: Unpack[KeyArguments]) -> EncryptedWriter: ...
@typing.overload
def open(
    file: typing.Any,
    mode: typing.Literal["rt"],
    *,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    segments: int = SEGMENTS,
    **keys: Unpack[KeyArguments],
) -> io.TextIOWrapper: ...
@typing.overload
def open(
    file: typing.Any,
    mode: typing.Literal["wt", "xt"],
    *,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    armor: bool = False,
    **keys: Unpack[KeyArguments],
) -> EncryptedTextWriter: ...


def open(
    file: typing.Any,
    mode: str = "rb",
    *,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    segments: int = SEGMENTS,
    armor: bool = False,
    **keys: typing.Any,
) -> typing.Any:
    """Opens an encrypted file, age or Tink, as a file object: binary, or of text.

    :param file: a path; a binary file object, which is read by ``seek`` and ``read`` or written by ``write`` and stays open; or, to be read,
        ``bytes`` and whatever else has the buffer protocol.
    :param mode: ``rb``; ``wb`` to encrypt; ``xb`` to encrypt what is not there yet. ``rt``, ``wt`` and ``xt`` are the same for text.
    :param buffering: as of :func:`io.open`; 0 gives the :class:`EncryptedReader` itself.
    :param encoding: of text, as of :func:`io.open`, and so are ``errors`` and ``newline``.
    :param segments: how many opened segments are kept, for reading at random places.
    :param armor: writes an armored file, which is text.
    :param keys: which key: :class:`evener.KeyArguments`.
    """
    if mode not in ("rb", "wb", "xb", "rt", "wt", "xt"):
        raise ValueError(f"mode is {mode!r}; there are rb, wb and xb, and rt, wt and xt for text")
    is_text = mode[1] == "t"
    if not is_text and (encoding, errors, newline) != (None, None, None):
        raise ValueError("encoding, errors and newline are of text: rt, wt and xt")
    if is_text and buffering == 0:
        raise ValueError("text is buffered")
    gathered = _arguments.keys(keys)
    if mode[0] == "r":
        if armor:
            raise ValueError("armor is for writing")
        reader = _reader(file, gathered, buffering, segments)
        return io.TextIOWrapper(reader, encoding, errors, newline) if is_text else reader
    writer = _writer(file, gathered, armor, mode[0] == "x")
    return EncryptedTextWriter(writer, encoding, errors, newline) if is_text else writer


def _name(file: typing.Any) -> str:
    return os.fspath(file) if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", type(file).__name__))


def _reader(file: typing.Any, keys: dict[str, typing.Any], buffering: int, segments: int) -> typing.Any:
    name = _name(file)
    raw = EncryptedReader(name if isinstance(file, (str, os.PathLike)) else file, keys, segments, name)
    if buffering == 0:
        return raw
    return io.BufferedReader(raw, io.DEFAULT_BUFFER_SIZE if buffering < 0 else buffering)


def _writer(file: typing.Any, keys: dict[str, typing.Any], armor: bool, exclusive: bool) -> EncryptedWriter:
    name = _name(file)
    if not isinstance(file, (str, os.PathLike)):
        return EncryptedWriter(file, keys, armor, name)
    if exclusive and os.path.lexists(name):
        raise FileExistsError(17, "there is a file already", name)
    # What a link leads to is written, as by io.open.
    final = os.path.realpath(name)
    if os.path.isdir(final):
        raise IsADirectoryError(21, "a directory stands there", name)
    if os.path.exists(final) and not os.path.isfile(final):
        raise UnsupportedError("what is no regular file is written through a file object", name)
    return EncryptedWriter(None, keys, armor, name, final=final, exclusive=exclusive)


def _name_new(draft: str, final: str) -> None:
    """Gives a draft a name that nothing has, also where the file system has no second names."""
    try:
        os.link(draft, final, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        _evener.rename_new(draft, final)
    else:
        os.unlink(draft)


def _take_over(draft: str, final: str) -> None:
    """Gives a draft the mode of the file that it replaces, if there is one, and its owner where that may be."""
    try:
        old = os.stat(final)
    except FileNotFoundError:
        return
    file = os.open(draft, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = stat.S_IMODE(old.st_mode)
        # Set-user-ID goes with the owner only, and what a group may with the group: without it nobody may more than before.
        if not _allowed(os.fchown, file, old.st_uid, old.st_gid):
            if _allowed(os.fchown, file, -1, old.st_gid):
                mode &= ~stat.S_ISUID
            else:
                others = mode & mode >> 3 & 0o7
                mode = mode & stat.S_IRWXU | others << 3 | others
        _allowed(os.fchmod, file, mode)
    finally:
        os.close(file)


def _allowed(give: typing.Callable[..., None], *arguments: int) -> bool:
    """Whether owner or mode could be given: who has no right to, or a file system that knows none, does not lose what was written."""
    try:
        give(*arguments)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        return False
    return True


def _sync_directory(directory: str) -> None:
    """Has a name last. The file has it already: that its directory may not be opened, or cannot be synced, is no failure of it."""
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
    finally:
        os.close(opened)


#: What a file system says of calls that it does not have.
_NOT_THERE = (errno.EPERM, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EMLINK, errno.EACCES)


def _draft(final: str) -> str:
    # Without the name, which may be as long as names can be.
    return os.path.join(os.path.dirname(final), f".evener-{os.urandom(8).hex()}-open.draft")
