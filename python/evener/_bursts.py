"""Bursts: thousands of messages in one call."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence

from . import _evener
from ._evener import Session
from ._exceptions import AuthenticationError

if typing.TYPE_CHECKING:
    from typing_extensions import Buffer


class Crypted(typing.NamedTuple):
    """What a burst came to."""

    outputs: typing.Optional[list[typing.Optional[bytes]]]
    """Outputs in the order of the buffers; ``None`` where they went elsewhere. Of a job that failed ``None``."""
    tags: typing.Optional[bytes]
    """Tags or digests, one behind the other, each of ``session.tag_bytes``; ``None`` where there are none."""
    failed: dict[int, Exception]
    """Jobs that failed, by their numbers; empty unless ``check`` was false."""


def crypt_many(
    session: Session,
    buffers: Buffer | Iterable[Buffer],
    ivs: Buffer | Iterable[Buffer] | None = None,
    *,
    aads: Buffer | Iterable[Buffer] | None = None,
    tags: Buffer | Iterable[Buffer] | None = None,
    out: Buffer | Iterable[Buffer] | None = None,
    in_place: bool = False,
    size: int | None = None,
    ranges: Sequence[tuple[int, int]] | None = None,
    check: bool = True,
) -> Crypted:
    """Encrypts or decrypts many messages, each a job of its own, by all cores that the process may use. Other threads of Python's run meanwhile.

    Memory is taken as it is: ``bytes``, ``bytearray``, ``memoryview``, numpy arrays, whatever has the buffer protocol and is contiguous. Nothing
    may change it while the call lasts.

    :param buffers: a message each; or one buffer, which ``size`` or ``ranges`` cut into messages.
    :param ivs: for each job an IV, nonce, counter or tweak; one buffer has them one behind the other. A nonce must be new for each message.
    :param aads: associated data: one buffer for all jobs, or one each.
    :param tags: the tags to be checked, to decrypt; one buffer has them one behind the other.
    :param out: where outputs go; unless given, new ``bytes``.
    :param in_place: outputs replace the messages.
    :param size: bytes of each piece of one large buffer.
    :param ranges: pieces of one large buffer, each from and to.
    :param check: raises where a job failed. Jobs that did not fail are done all the same.
    :raises AuthenticationError: tags or padding do not fit; ``indices`` names the jobs, whose output is cleared.
    """
    done = Crypted(*_evener.crypt_many(session, buffers, ivs, aads, tags, out, in_place, size, ranges))
    if check and done.failed:
        raise _failure(done.failed)
    return done


def hash_many(
    algorithm: str,
    buffers: Buffer | Iterable[Buffer],
    *,
    key: Buffer = b"",
    size: int | None = None,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> list[bytes]:
    """Digests of many messages, by lanes and all cores: ``SHA-256``, ``SHA-1``, ``MD5``; ``HMAC-SHA-256`` and so on with a ``key``."""
    session = Session(algorithm, key)
    if session.iv_bytes or not session.tag_bytes:
        raise ValueError(f"{algorithm} is no hash")
    done = crypt_many(session, buffers, size=size, ranges=ranges)
    digests, each = done.tags or b"", session.tag_bytes
    return [digests[start : start + each] for start in range(0, len(digests), each)]


def algorithms() -> dict[str, dict[str, int | None]]:
    """What :class:`Session` takes: for each algorithm ``key_bytes`` (``None``: any), ``iv_bytes`` and ``tag_bytes``."""
    return {
        name: {"key_bytes": key, "iv_bytes": iv, "tag_bytes": tag} for name, key, iv, tag in _evener.algorithms()
    }


def configure(*, threads: int | None = None, modules: str | Iterable[str] = (), policy: str | None = None) -> None:
    """Says how bursts are run, before the first :class:`Session`: worker threads (as many as there are cores unless given; 0: the calling thread
    alone), crypto modules by name, and the policy that weighs them.

    :raises RuntimeError: there was a session already.
    """
    from ._arguments import several

    _evener.configure(threads, several(modules), policy)


def statistics() -> dict[str, int]:
    """What bursts of this process have done so far, and who did it."""
    return _evener.statistics()


def _failure(failed: dict[int, Exception]) -> Exception:
    numbers = tuple(failed)
    of_tags = tuple(number for number in numbers if isinstance(failed[number], AuthenticationError))
    if not of_tags:
        return failed[numbers[0]]
    first = failed[of_tags[0]]
    more = f", and {len(of_tags) - 1} more" if len(of_tags) > 1 else ""
    error = AuthenticationError(f"{first}{more}")
    error.indices = of_tags
    return error
