"""The same for asyncio: calls that are awaited, while the event loop goes on.

Each runs on a thread of the loop's executor, without the interpreter's lock while it computes. Memory is lent until the call has ended: one that
is cancelled, as all are by Ctrl-C, is waited for. A run over files is stopped then, and leaves nothing half.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import typing

from . import _bursts, _files

__all__ = ["crypt_many", "decrypt", "encrypt", "hash_many", "verify"]

_Result = typing.TypeVar("_Result")


async def _awaited(work: typing.Callable[[], _Result], stop: typing.Callable[[], object] = lambda: None) -> _Result:
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop()
        # Its buffers are in use until then, however often it is cancelled.
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                pass
        raise


def _wrapped(call: typing.Callable[..., _Result]) -> typing.Callable[..., typing.Coroutine[typing.Any, typing.Any, _Result]]:
    @functools.wraps(call)
    async def awaited(*arguments: typing.Any, **named: typing.Any) -> _Result:
        return await _awaited(functools.partial(call, *arguments, **named))

    return awaited


class _Stopped(Exception):
    """Whoever awaited a run does so no more."""


def _stoppable(call: typing.Callable[..., _Result]) -> typing.Callable[..., typing.Coroutine[typing.Any, typing.Any, _Result]]:
    @functools.wraps(call)
    async def awaited(*arguments: typing.Any, progress: typing.Optional[_files.ProgressCallback] = None, **named: typing.Any) -> _Result:
        stopped = threading.Event()

        def told(files: int, count: int, total: typing.Optional[int]) -> None:
            if stopped.is_set():
                raise _Stopped
            if progress is not None:
                progress(files, count, total)

        # Who does not look at progress need not have a whole tree walked through for its total.
        setattr(told, "wants_total", progress is not None)
        return await _awaited(functools.partial(call, *arguments, progress=told, **named), stopped.set)

    return awaited


crypt_many = _wrapped(_bursts.crypt_many)
hash_many = _wrapped(_bursts.hash_many)
encrypt = _stoppable(_files.encrypt)
decrypt = _stoppable(_files.decrypt)
verify = _stoppable(_files.verify)
