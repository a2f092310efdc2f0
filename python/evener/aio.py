"""The same for asyncio: calls that are awaited, while the event loop goes on.

Each runs on a thread of the loop's executor, without the interpreter's lock while it computes. Memory is lent until the call has ended: one that
is cancelled is waited for.
"""

from __future__ import annotations

import asyncio
import functools
import typing

from . import _bursts, _files

__all__ = ["crypt_many", "decrypt", "encrypt", "hash_many", "verify"]

_Result = typing.TypeVar("_Result")


async def _awaited(work: typing.Callable[[], _Result]) -> _Result:
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
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


crypt_many = _wrapped(_bursts.crypt_many)
hash_many = _wrapped(_bursts.hash_many)
encrypt = _wrapped(_files.encrypt)
decrypt = _wrapped(_files.decrypt)
verify = _wrapped(_files.verify)
