"""Shards of a plan by the command ``evener``: what runs where a shard is done, and what it is told. Nothing here needs Ray.

The way of a shard: plan -> :meth:`Plan.only` one shard of it, and :func:`key_words`, which name keys -> over the wire -> :func:`run_shard` on
another machine, which starts ``evener run-shard`` -> :class:`Ended` -> back.
"""

from __future__ import annotations

import collections
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
import typing
from collections.abc import Iterable, Sequence

from ._arguments import PathName, several

#: What the exit status of ``evener run-shard`` says.
DONE, AGAIN, NEVER = 0, 1, 2

#: What an object weighs beside its bytes, as in the plan's cuts.
_OBJECT_WEIGHT = 64 << 10
#: Lines of standard error that are kept for a shard without a report.
_LINES_MAX = 5


class KeyReferences(typing.TypedDict, total=False):
    """Where the worker finds its key: one kind of these, and no contents. Paths are the worker's own."""

    key: PathName
    """A file with a Tink keyset, in clear."""
    identity: typing.Union[PathName, "Iterable[PathName]"]
    """Files with age identities; encryption is for their recipients."""
    recipient: typing.Union[str, "Iterable[str]"]
    """age or SSH recipients, which are public: ``age1...``, ``ssh-ed25519 ...``."""
    recipients_file: typing.Union[PathName, "Iterable[PathName]"]
    """Files of recipients, one a line."""
    key_env: str
    """The name of a variable of the worker's environment that holds a keyset, identities or recipients."""
    key_command: str
    """A command that prints one of them there, as one of a key service; ``sh`` runs it. It goes over the wire as it is, so it holds no token or
    password, but reads them there."""
    associated_data: typing.Union[str, bytes]
    """What Tink files are bound to. It is not secret, and goes over the wire."""


class Ended(typing.NamedTuple):
    """How a shard ended."""

    status: int
    """``DONE``, ``AGAIN`` where another try may do the rest, or ``NEVER``."""
    totals: dict[str, typing.Any]
    """The last line of its report; empty where there is none."""
    failed: dict[str, str]
    """Objects that failed, with the reason."""
    reason: str
    """Why there is no report."""


class Planned(typing.NamedTuple):
    """How planning ended."""

    status: int
    text: bytes
    """The plan, where there is one."""
    reason: str


class ShardsReport(typing.NamedTuple):
    """What a run over the shards of a plan did."""

    objects: int
    """Objects that were listed: each is done, done before or failed."""
    done: int
    """Objects that this run made."""
    already_done: int
    """Objects whose finished output was there, also from a try of this run whose worker died."""
    failed: dict[str, str]
    """Objects that failed, by their names below the source, with the reason."""
    failed_shards: dict[int, str]
    """Shards that ended without a report, by their numbers."""
    bytes_in: int
    """Bytes that were read."""
    bytes_out: int
    """Bytes that were written."""
    shards: int
    """Shards of the plan."""
    starts: int
    """How often one was started, but for those that Ray started again because a worker died."""
    seconds: float
    """From start to end, planning included."""
    plan: bytes
    """The plan. :func:`evener.ray.run` takes it, and does what is left."""


class Plan:
    """What ``evener plan`` wrote: both places and, for each shard of names, after which name it begins, its objects and their bytes; then each object
    that is cut into ranges, its bytes, its entity tag and how many ranges it has, each of which is a shard."""

    def __init__(self, text: bytes) -> None:
        try:
            self._facts: dict[str, typing.Any] = json.loads(text)
            self.shards: list[tuple[str, int, int]] = [(str(a), int(n), int(b)) for a, n, b in self._facts["shards"]]
            self._cut: list[tuple[str, int, str, int]] = [(str(a), int(b), str(t), int(n)) for a, b, t, n in self._facts.get("ranges", [])]
            version = self._facts["evener-plan"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError("this is no plan of evener") from error
        if version not in (1, 2):
            raise ValueError(f"a plan of version {version}, and this package reads versions 1 and 2")
        #: Bytes of each shard, and what it weighs.
        self.sizes = [size for _, _, size in self.shards]
        self._weights = [size + objects * _OBJECT_WEIGHT for _, objects, size in self.shards]
        for _, size, _, count in self._cut:
            borders = [size * number // count for number in range(count + 1)]
            self.sizes += [end - start for start, end in zip(borders, borders[1:])]
            self._weights += [-(-size // count) + _OBJECT_WEIGHT] * count

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def source(self) -> str:
        """Where objects are."""
        return str(self._facts["source"])

    @property
    def destination(self) -> str:
        """Where results go."""
        return str(self._facts["destination"])

    @property
    def text(self) -> bytes:
        """As it stands in a file."""
        return json.dumps(self._facts, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    @property
    def byte_count(self) -> int:
        """Bytes of all objects."""
        return sum(self.sizes)

    def by_weight(self) -> list[int]:
        """Numbers of shards, the heaviest first: so those that are done last are small, and workers end together."""
        return sorted(range(len(self)), key=lambda number: -self._weights[number])

    def only(self, number: int) -> tuple[bytes, int]:
        """A plan of a few lines in which this shard is the same, and its number there: what crosses the wire does not grow with the plan."""
        if number >= len(self.shards):
            return self._only_range(number - len(self.shards))
        first, behind = self.shards[number], self.shards[number + 1 : number + 2]
        before = [["", 0, 0]] if first[0] else []
        facts = dict(self._facts, shards=[*before, list(first), *([after, 0, 0] for after, _, _ in behind)])
        # Objects among its names that are none of its own.
        cut = [row for row in self._cut if row[0] > first[0] and all(row[0] <= after for after, _, _ in behind)]
        return self._written(facts, cut), len(before)

    def _only_range(self, number: int) -> tuple[bytes, int]:
        for row in self._cut:
            if number < row[3]:
                return self._written(dict(self._facts, shards=[]), [row]), number
            number -= row[3]
        raise IndexError("the plan has no such shard")

    @staticmethod
    def _written(facts: dict[str, typing.Any], cut: list[tuple[str, int, str, int]]) -> bytes:
        facts.pop("ranges", None)
        if cut:
            facts["ranges"] = cut
        return json.dumps(facts, ensure_ascii=False).encode()

    def is_of(self, source: str, destination: str) -> bool:
        """Whether it is of these places, slashes at their ends aside."""
        return all(_bare(str(self._facts.get(name))) == _bare(place) for name, place in (("source", source), ("destination", destination)))

    def keep_salt(self, earlier: Plan) -> None:
        """Takes the random number of a plan of the same places, so that outputs of its shards are known again."""
        if earlier.is_of(self._facts["source"], self._facts["destination"]):
            self._facts["salt"] = earlier._facts["salt"]


def _bare(place: str) -> str:
    """A place by one of its names: a directory as a URI, and no slash at the end."""
    text = place if "://" in place else "file://" + place
    return "file://" + os.path.normpath(text[len("file://") :]) if text.startswith("file:///") else text.rstrip("/")


def place(given: PathName) -> str:
    """A place as the command takes it on any machine. What has credentials is refused, and not repeated: arguments of tasks are kept by Ray."""
    text = os.fspath(given)
    if not isinstance(text, str):
        raise TypeError("a place is to be text")
    scheme, is_uri, rest = text.partition("://")
    if not is_uri:
        return os.path.abspath(text)
    # As the command has it: a user where no container is, and a password, which may have a slash.
    bucket = re.split(r"[/?#]", rest, maxsplit=1)[0]
    is_web, has_container = scheme.lower() in ("http", "https"), scheme.lower() in ("az", "abfs", "abfss")
    has_user = "@" in bucket and not has_container
    colon = bucket.find(":")
    has_password = colon >= 0 and (re.fullmatch(r":\d+", bucket[colon:]) is None if is_web else "@" in rest[colon:])
    if has_user or has_password or "?" in rest or "#" in rest:
        raise ValueError("a place names no user, password, query or fragment: the environment of the nodes has credentials")
    return text


def earlier_plan(file: str, source: str, destination: str) -> Plan | None:
    """The plan that stands in a file and is of the same places. Another file is not written over."""
    try:
        with open(file, "rb") as there:
            text = there.read()
    except FileNotFoundError:
        return None
    if not text:
        return None
    try:
        plan = Plan(text)
        if plan.is_of(source, destination):
            return plan
        reason = "a plan of other places"
    except ValueError as error:
        reason = str(error)
    raise FileExistsError(f"{file} is not written over: {reason}; name another file, or remove it")


def keep_plan(plan: Plan, file: str) -> None:
    """Writes a plan, whole or not at all, in the place of an earlier one of the same places, whose random number it takes."""
    earlier = earlier_plan(file, plan.source, plan.destination)
    if earlier is not None:
        plan.keep_salt(earlier)
    # Where a link leads, the plan goes.
    file = os.path.realpath(file)
    directory = os.path.dirname(file)
    draft, name = tempfile.mkstemp(prefix=".evener-plan-", dir=directory)
    try:
        with open(draft, "wb") as made:
            made.write(plan.text)
            made.flush()
            os.fsync(made.fileno())
            os.fchmod(made.fileno(), 0o666 & ~_umask())
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _umask() -> int:
    """It is read, for only who changes it is told by a call."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))
    except (OSError, StopIteration, ValueError):
        return 0o077


def key_words(given: dict[str, typing.Any]) -> list[str]:
    """References to keys as words of the command line. What may be a key itself is refused, and not repeated."""
    words = []
    for name, value in given.items():
        if name not in KeyReferences.__annotations__:
            raise TypeError(f"there is no argument {name!r}; keys are named by {', '.join(KeyReferences.__annotations__)}")
        if value is None:
            continue
        if name == "associated_data":
            if not isinstance(value, (str, bytes)):
                raise TypeError(f"associated_data is to be text or bytes, and not {type(value).__name__}")
            words.append("--associated-data=" + os.fsdecode(value))
            continue
        for one in several(value):
            words.append(f"--{name.replace('_', '-')}={_reference(name, one)}")
    if all(word.startswith("--associated-data=") for word in words):
        raise ValueError("a key is needed: key, identity, recipient, recipients_file, key_env or key_command")
    return words


def holds_key(text: str) -> bool:
    """Whether a text is a key, or has one in it, as far as its form tells."""
    return re.search(r"AGE-SECRET-KEY-|AGE-PLUGIN-|PRIVATE KEY-----|\"(keyData|encryptedKeyset)\"", text, re.IGNORECASE) is not None


def _reference(name: str, value: typing.Any) -> str:
    if isinstance(value, bytes) or not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} says where a key is; the key itself is not to go over the wire")
    text = os.fspath(value)
    if not isinstance(text, str):
        raise TypeError(f"{name} is to be text")
    # A variable's value in the place of its name is caught too.
    is_reference = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) if name == "key_env" else "\n" not in text.strip()
    if holds_key(text) or not is_reference:
        raise ValueError(f"{name} says where a key is, and this is none or the key itself, which is not to go over the wire")
    return text


def make_plan(command: str | None, words: Sequence[str]) -> Planned:
    """Has ``evener plan`` list a tree."""
    program = _found(command)
    if program is None:
        return Planned(NEVER, b"", _absent(command))
    ran = subprocess.run(
        [program, "plan", "--quiet", "--output=-", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False
    )
    if ran.returncode == DONE:
        return Planned(DONE, ran.stdout, "")
    lines = collections.deque(_said(ran.stderr.splitlines()), _LINES_MAX)
    return Planned(_status(ran.returncode), b"", _reason(lines, ran.returncode))


# Seconds until a task that waits for its shard hears that it is to end.
_LOOK_S = 0.2


def run_shard(command: str | None, plan: bytes, number: int, words: Sequence[str]) -> Ended:
    """Has ``evener run-shard`` do a shard. It reads the plan from standard input, so that nothing is left of it, and ends with this process."""
    program = _found(command)
    if program is None:
        return Ended(NEVER, {}, {}, _absent(command))
    arguments = [program, "run-shard", "/dev/stdin", str(number), "--json=-", "--quiet", "--with-parent", *words]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    lines: collections.deque[str] = collections.deque(maxlen=_LINES_MAX)
    # It is read beside the report, for a pipe that is full stops the shard.
    listener = threading.Thread(target=lambda said: lines.extend(_said(said)), args=(process.stderr,), daemon=True)
    reports: list[tuple[dict[str, typing.Any], dict[str, str]]] = []
    reader = threading.Thread(target=lambda said: reports.append(_reported(said)), args=(process.stdout,), daemon=True)
    try:
        listener.start()
        reader.start()
        try:
            process.stdin.write(plan)
            process.stdin.close()
        except BrokenPipeError:
            pass
        # An interrupted task hears of it between two steps of Python, and a thread that reads a pipe takes none.
        while reader.is_alive():
            reader.join(_LOOK_S)
        returned = process.wait()
        listener.join(5)
    finally:
        # Whoever interrupts a task wants the shard to end too.
        process.kill()
        process.wait()
    reader.join()
    process.stdout.close()
    totals, failed = reports[0]
    if not totals:
        return Ended(AGAIN if returned == DONE else _status(returned), {}, failed, _reason(lines, returned))
    # The report's word counts: where a host program ignores its children's ends, no status of theirs is to be had.
    return Ended(int(totals["exit_status"]), totals, failed, "")


def _reported(lines: Iterable[bytes]) -> tuple[dict[str, typing.Any], dict[str, str]]:
    """The last line, and objects that failed. Lines of objects that did not are many, and not looked into."""
    totals: dict[str, typing.Any] = {}
    failed: dict[str, str] = {}
    for line in lines:
        is_last = line.startswith(b'{"shard"')
        if not is_last and b'"outcome":"failed"' not in line:
            continue
        try:
            facts = json.loads(line)
        except ValueError:
            # Who wrote it was killed in the middle, so that there is no report: the status of the process tells.
            continue
        if is_last:
            totals = facts
        else:
            failed[facts["object"]] = facts.get("error", "")
    return totals, failed


def _said(lines: Iterable[bytes]) -> typing.Iterator[str]:
    """What the command itself says. A command for a key has the same standard error, and what it says there stays where it was said."""
    for line in lines:
        text = line.decode(errors="replace").strip()
        if text.startswith(("evener: ", "error: ")):
            yield text.split(": ", 1)[1]


def _reason(lines: Iterable[str], returned: int) -> str:
    ended = f"ended by signal {-returned}" if returned < 0 else f"ended with {returned}"
    return "; ".join(lines) or f"the command {ended} and did not say why"


def _status(returned: int) -> int:
    # One that was killed, for memory, say, may go well elsewhere.
    return returned if returned in (DONE, NEVER) else AGAIN


def _found(command: str | None) -> str | None:
    return shutil.which(command or "evener")


def _absent(command: str | None) -> str:
    return f"{command or 'evener'} is no program on {platform.node()}: it is to be installed on every node, on the PATH or where `command` says"
