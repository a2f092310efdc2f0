"""Trees of objects by the machines of a Ray cluster: :func:`encrypt`, :func:`decrypt`, and :func:`run` for a plan that is there already.

The tree is cut into shards, and each is a task that runs the command ``evener run-shard`` on a node (``docs/guide/objects.md``). A task is told
places, where its shard begins and where its key is to be found; objects and keys never pass through Ray. On each node there have to be the
command (with ``evener-objects`` beside it), this package, and what the environment says of stores and keys.
"""

from __future__ import annotations

import heapq
import importlib
import os
import sys
import time
import typing

from . import _shards
from ._arguments import PathName
from ._exceptions import Error, ObjectsError
from ._files import ProgressCallback
from ._shards import AGAIN, DONE, NEVER, Ended, KeyReferences, Plan, ShardsReport

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

try:
    # By name, for a checker of types would else go through all of Ray.
    _ray: typing.Any = importlib.import_module("ray")
except ImportError as error:
    raise ImportError("evener.ray needs Ray: pip install 'evener[ray]', or ray beside the package") from error

__all__ = ["KeyReferences", "ObjectsError", "ShardsReport", "decrypt", "encrypt", "run"]

#: Shards for each task that the cluster runs at once: what the last ones leave idle is a small part of the whole.
_SHARDS_PER_SLOT = 8
#: Tasks in flight for each that runs: the next one waits where the last one ends.
_IN_FLIGHT_PER_SLOT = 2
#: The pause before a shard is tried again, which doubles, and the longest. Assumed, not measured.
_PAUSE_S, _PAUSE_MAX_S = 1.0, 60.0
#: How often progress is told where nothing ends.
_TICK_S = 0.5
#: What a run that is stopped waits for its tasks.
_STOP_S = 30.0
#: Names that the message of an error has.
_NAMES_MAX = 20
_TRANSFERS_PER_CPU = 4


def encrypt(
    source: PathName,
    destination: PathName,
    *,
    plan: PathName | None = None,
    shards: int | None = None,
    shard_bytes: int | None = None,
    suffix: str = "",
    update: bool = False,
    force: bool = False,
    in_flight: int | None = None,
    retries: int = 5,
    progress: ProgressCallback | bool | None = None,
    check: bool = True,
    command: str | None = None,
    transfers: int | None = None,
    memory: int | None = None,
    timeout: int | None = None,
    ray_options: dict[str, typing.Any] | None = None,
    **keys: Unpack[KeyReferences],
) -> ShardsReport:
    """Encrypts a tree of objects by all nodes. The same call again does what is left; with recipients, name a ``plan`` for that.

    :param source: a place in a store, ``s3://BUCKET/PREFIX``, ``gs://``, ``az://``, or a directory that every node sees.
    :param destination: where outputs go, under the same names.
    :param plan: a file here for the plan. One of the same places that is there is replaced, and outputs of its shards are known again.
    :param shards: how many shards are cut; eight for each task that the cluster runs at once unless given.
    :param shard_bytes: cuts shards of about so many bytes instead.
    :param suffix: what names get when they are encrypted, and lose when they are decrypted.
    :param update: makes outputs of Evener again whose source has changed, or that are for another key.
    :param force: replaces whatever stands there and is not the finished output.
    :param in_flight: most tasks that Ray is given at once; two for each that the cluster runs unless given.
    :param retries: how often a shard is started again after it ended with what another try may mend, and how often Ray does where its worker died.
        What no other try would mend is not tried again.
    :param progress: is called some times a second with objects finished, their bytes, and bytes in all; what it raises stops the run.
        ``True`` shows a bar on standard error.
    :param check: raises where anything failed; else the report tells.
    :param command: the command on the nodes, where it is not ``evener`` on their PATH.
    :param transfers: objects or parts that a task has under way at once; four for each of its CPUs unless given.
    :param memory: most memory for data in work of a task, in bytes.
    :param timeout: seconds for which a request is tried again before its object fails.
    :param ray_options: options of the tasks: ``num_cpus`` (1 unless given), ``resources``, ``scheduling_strategy``, ...
    :param keys: where the workers find the key: :class:`KeyReferences`.
    :raises ObjectsError: objects or shards failed; all that could be done is done.
    """
    words = _shards.key_words(dict(keys))
    tasks = _Tasks(command, words, update, force, retries, in_flight, transfers, memory, timeout, ray_options, keys.get("key_env"))
    start = time.monotonic()
    made = _planned(tasks, source, destination, plan, shards, shard_bytes, suffix, False)
    return _run(made, tasks, progress, check, start)


def decrypt(
    source: PathName,
    destination: PathName,
    *,
    plan: PathName | None = None,
    shards: int | None = None,
    shard_bytes: int | None = None,
    suffix: str = "",
    update: bool = False,
    force: bool = False,
    in_flight: int | None = None,
    retries: int = 5,
    progress: ProgressCallback | bool | None = None,
    check: bool = True,
    command: str | None = None,
    transfers: int | None = None,
    memory: int | None = None,
    timeout: int | None = None,
    ray_options: dict[str, typing.Any] | None = None,
    **keys: Unpack[KeyReferences],
) -> ShardsReport:
    """Decrypts a tree of objects by all nodes; arguments as for :func:`encrypt`. An object that is not authentic leaves no output."""
    words = _shards.key_words(dict(keys))
    tasks = _Tasks(command, words, update, force, retries, in_flight, transfers, memory, timeout, ray_options, keys.get("key_env"))
    start = time.monotonic()
    made = _planned(tasks, source, destination, plan, shards, shard_bytes, suffix, True)
    return _run(made, tasks, progress, check, start)


def run(
    plan: PathName | bytes,
    *,
    update: bool = False,
    force: bool = False,
    in_flight: int | None = None,
    retries: int = 5,
    progress: ProgressCallback | bool | None = None,
    check: bool = True,
    command: str | None = None,
    transfers: int | None = None,
    memory: int | None = None,
    timeout: int | None = None,
    ray_options: dict[str, typing.Any] | None = None,
    **keys: Unpack[KeyReferences],
) -> ShardsReport:
    """Does the shards of a plan that ``evener plan`` or an earlier call made: a file here, or its contents as ``bytes``."""
    words = _shards.key_words(dict(keys))
    tasks = _Tasks(command, words, update, force, retries, in_flight, transfers, memory, timeout, ray_options, keys.get("key_env"))
    start = time.monotonic()
    if not isinstance(plan, bytes):
        with open(plan, "rb") as file:
            plan = file.read()
    return _run(Plan(plan), tasks, progress, check, start)


class _Tasks:
    """How tasks are started: what each is told, and what Ray is."""

    def __init__(
        self,
        command: str | None,
        key_words: list[str],
        update: bool,
        force: bool,
        retries: int,
        in_flight: int | None,
        transfers: int | None,
        memory: int | None,
        timeout: int | None,
        ray_options: dict[str, typing.Any] | None,
        key_env: str | None,
    ) -> None:
        if retries < 0 or (in_flight is not None and in_flight < 1):
            raise ValueError("retries is 0 or more, in_flight 1 or more")
        if update and force:
            raise ValueError("update and force exclude each other")
        self.command, self.retries, self._in_flight = command, retries, in_flight
        self._options = {"num_cpus": 1, "max_retries": retries, "retry_exceptions": False, "scheduling_strategy": "SPREAD", **(ray_options or {})}
        if not _ray.is_initialized():
            _ray.init()
        _refuse_keys_in(self._options.get("runtime_env"), key_env)
        _refuse_keys_in(_ray.get_runtime_context().runtime_env, key_env)
        self._cpus = float(self._options["num_cpus"] or 0)
        if transfers is None:
            transfers = max(1, round(self._cpus * _TRANSFERS_PER_CPU))
        words = {"--transfers": transfers, "--memory": memory, "--timeout": timeout}
        self._words = [*key_words, *(f"{name}={value}" for name, value in words.items() if value is not None)]
        self._words += ["--update"] * update + ["--force"] * force
        self._run_shard = _ray.remote(_shards.run_shard)
        self._make_plan = _ray.remote(_shards.make_plan)

    def slots(self) -> int:
        """Tasks that the cluster, as it is now, runs at once."""
        cpus = float(_ray.cluster_resources().get("CPU", 0))
        return max(1, int(cpus / self._cpus) if self._cpus else len(_ray.nodes()))

    def in_flight(self) -> int:
        """Most tasks that Ray is to have at once."""
        return self._in_flight or _IN_FLIGHT_PER_SLOT * self.slots()

    def shard(self, plan: Plan, number: int) -> typing.Any:
        """Starts a task for a shard."""
        text, place = plan.only(number)
        options = {"name": f"evener shard {number}", **self._options}
        return self._run_shard.options(**options).remote(self.command, text, place, self._words)

    def plan(self, words: list[str]) -> typing.Any:
        """Starts the task that plans."""
        options = {"name": "evener plan", **self._options}
        return self._make_plan.options(**options).remote(self.command, words)


def _refuse_keys_in(environment: typing.Any, key_env: str | None) -> None:
    """A variable of a runtime environment is kept and logged by Ray."""
    variables = dict((environment or {}).get("env_vars") or {})
    if key_env in variables or any(_shards.holds_key(str(value)) for value in variables.values()):
        raise ValueError("a key in runtime_env goes over the wire and into Ray's logs; set its variable on the nodes, or name a file or a command")


def _planned(
    tasks: _Tasks,
    source: PathName,
    destination: PathName,
    file: PathName | None,
    shards: int | None,
    shard_bytes: int | None,
    suffix: str,
    is_decryption: bool,
) -> Plan:
    """Has a task list the tree: a node has the command and sees the store, and this machine need not."""
    if shards is not None and shard_bytes is not None:
        raise ValueError("shards and shard_bytes exclude each other")
    wanted = f"--shard-bytes={shard_bytes}" if shard_bytes is not None else f"--shards={shards or _SHARDS_PER_SLOT * tasks.slots()}"
    places = [_shards.place(source), _shards.place(destination)]
    if file is not None:
        # At once, before a listing that may take long.
        _shards.earlier_plan(os.fspath(file), *places)
    words = [wanted, f"--suffix={suffix}", *["--decrypt"] * is_decryption, "--", *places]
    pauses = _pauses(tasks.retries)
    while True:
        task = tasks.plan(words)
        try:
            ended = _result(task)
        except BaseException:
            _stop([task])
            raise
        if isinstance(ended, str):
            raise Error(f"there is no plan: {ended}")
        if ended.status == DONE:
            break
        pause = next(pauses, None)
        if ended.status == NEVER or pause is None:
            raise Error(f"there is no plan: {ended.reason}")
        time.sleep(pause)
    made = Plan(ended.text)
    if file is not None:
        _shards.keep_plan(made, os.fspath(file))
    return made


def _run(plan: Plan, tasks: _Tasks, progress: ProgressCallback | bool | None, check: bool, start: float) -> ShardsReport:
    """Does all shards, and tells what came of them."""
    tell = _Bar() if progress is True else progress or None
    shards = _Shards(plan, tasks, tell)
    try:
        shards.do()
    except BaseException:
        _stop(list(shards.flying))
        raise
    finally:
        if isinstance(tell, _Bar):
            tell.end()
    report = shards.report(time.monotonic() - start)
    if check and (report.failed or report.failed_shards):
        raise ObjectsError(_message(report), report)
    return report


class _Shards:
    """The shards of a run: each waits, is in flight, waits for another try, or has ended."""

    def __init__(self, plan: Plan, tasks: _Tasks, tell: ProgressCallback | None) -> None:
        self._plan, self._tasks, self._tell = plan, tasks, tell
        self._waiting = plan.by_weight()[::-1]
        #: When a shard is tried again, with its number.
        self._later: list[tuple[float, int]] = []
        self.flying: dict[typing.Any, int] = {}
        self._pauses = {number: _pauses(tasks.retries) for number in self._waiting}
        self._ended: dict[int, Ended] = {}
        #: Objects, bytes in and bytes out of all tries.
        self._made = [0, 0, 0]
        self._starts = 0

    def do(self) -> None:
        self._told()
        while self._waiting or self._later or self.flying:
            self._start()
            self._land()
            self._told()

    def report(self, seconds: float) -> ShardsReport:
        told = [ended.totals for ended in self._ended.values() if ended.totals]
        ended = sorted(self._ended.items())
        failed = {name: reason for _, one in ended for name, reason in one.failed.items()}
        # Ranges of one object that failed are one object.
        repeated = sum(len(one.failed) for _, one in ended) - len(failed)
        finished = sum(int(totals["done"]) + int(totals["already_done"]) for totals in told)
        done, bytes_in, bytes_out = self._made
        return ShardsReport(
            objects=sum(int(totals["objects"]) for totals in told) - repeated,
            done=done,
            already_done=max(0, finished - done),
            failed=failed,
            failed_shards={number: one.reason for number, one in ended if not one.totals},
            bytes_in=bytes_in,
            bytes_out=bytes_out,
            shards=len(self._plan),
            starts=self._starts,
            seconds=seconds,
            plan=self._plan.text,
        )

    def _start(self) -> None:
        """Gives Ray as many tasks as it may have."""
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._waiting.append(heapq.heappop(self._later)[1])
        if not self._waiting:
            return
        for _ in range(self._tasks.in_flight() - len(self.flying)):
            if not self._waiting:
                break
            number = self._waiting.pop()
            self.flying[self._tasks.shard(self._plan, number)] = number
            self._starts += 1

    def _land(self) -> None:
        """Takes what has ended, or waits for a while."""
        if not self.flying:
            time.sleep(max(0.0, min(_TICK_S, self._later[0][0] - time.monotonic())))
            return
        ready, rest = _ray.wait(list(self.flying), num_returns=1, timeout=_TICK_S)
        if ready and rest:
            # Whatever else has ended meanwhile.
            ready += _ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for task in ready:
            number = self.flying.pop(task)
            ended = _result(task)
            self._take(number, Ended(NEVER, {}, {}, ended) if isinstance(ended, str) else ended)

    def _take(self, number: int, ended: Ended) -> None:
        for at, name in enumerate(("done", "bytes_in", "bytes_out")):
            self._made[at] += int(ended.totals.get(name, 0))
        pause = next(self._pauses[number], None) if ended.status == AGAIN else None
        if pause is None:
            self._ended[number] = ended
        else:
            heapq.heappush(self._later, (time.monotonic() + pause, number))

    def _told(self) -> None:
        if self._tell is not None:
            objects = sum(int(ended.totals.get("objects", 0)) for ended in self._ended.values())
            size = sum(self._plan.sizes[number] for number in self._ended)
            self._tell(objects, size, self._plan.byte_count)


def _pauses(retries: int) -> typing.Iterator[float]:
    return (min(_PAUSE_S * 2.0**retry, _PAUSE_MAX_S) for retry in range(retries))


def _result(task: typing.Any) -> typing.Any:
    """What a task returned, or why it did not, as text: by then Ray has tried it as often as it was to."""
    try:
        return _ray.get(task)
    except _ray.exceptions.RayTaskError as error:
        cause = error.cause
        return f"{type(cause).__name__}: {cause}" if cause is not None else _first_line(error)
    except _ray.exceptions.RayError as error:
        return f"its worker did not end it ({type(error).__name__}): {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _stop(tasks: list[typing.Any]) -> None:
    """Has tasks end, and waits for them: each ends its shard."""
    for task in tasks:
        _ray.cancel(task, force=False)
    if tasks:
        _ray.wait(tasks, num_returns=len(tasks), timeout=_STOP_S)


def _message(report: ShardsReport) -> str:
    of_shards = [f"shard {number}: {reason}" for number, reason in report.failed_shards.items()]
    names = [f"{name}: {reason}" for name, reason in report.failed.items()]
    counts = [f"{len(report.failed)} of {report.objects} objects failed"] if names else []
    counts += [f"{len(of_shards)} of {report.shards} shards failed"] if of_shards else []
    rows = of_shards + names
    more = [f"and {len(rows) - _NAMES_MAX} more"] if len(rows) > _NAMES_MAX else []
    return "\n  ".join([" and ".join(counts) + ":", *rows[:_NAMES_MAX], *more])


class _Bar:
    """Progress on standard error: a bar where that is a terminal, else a line now and then."""

    _LINE_S = 10.0
    _WIDTH = 24

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._start = time.monotonic()
        self._shown_at = float("-inf")
        self._shown = self._text = ""

    def __call__(self, objects: int, size: int, total: int | None) -> None:
        now = time.monotonic()
        part = min(1.0, size / total) if total else 1.0
        left = f", {(now - self._start) * (1 - part) / part:.0f} s left" if 0 < part < 1 else ""
        text = f"{objects} objects, {size / 1e9:.2f} of {(total or 0) / 1e9:.2f} GB, {part:4.0%}{left}"
        if self._is_terminal:
            filled = int(part * self._WIDTH)
            sys.stderr.write(f"\r[{'#' * filled}{'.' * (self._WIDTH - filled)}] {text}\x1b[K")
            sys.stderr.flush()
        elif now - self._shown_at >= self._LINE_S:
            self._shown_at = now
            self._show(text)
        self._text = text

    def end(self) -> None:
        """Leaves the last state where it stands."""
        if self._is_terminal:
            sys.stderr.write("\n")
        elif self._text != self._shown:
            self._show(self._text)

    def _show(self, text: str) -> None:
        self._shown = text
        sys.stderr.write(f"evener: {text}\n")
        sys.stderr.flush()
