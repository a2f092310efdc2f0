"""Files and trees."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable

from . import _arguments, _evener
from ._arguments import KeyArguments, PathName
from ._exceptions import FilesError
from ._report import Report

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

#: Is told files finished, bytes worked on, and bytes in all or ``None`` while they are not known.
ProgressCallback = Callable[[int, int, typing.Optional[int]], object]


def encrypt(
    paths: PathName | Iterable[PathName],
    output: PathName | None = None,
    *,
    suffix: str | None = None,
    force: bool = False,
    update: bool = False,
    delete: bool = False,
    dry_run: bool = False,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    tar: bool = False,
    armor: bool = False,
    threads: int | None = None,
    memory: int | None = None,
    modules: str | Iterable[str] = (),
    policy: str = "adaptive",
    progress: ProgressCallback | None = None,
    check: bool = True,
    **keys: Unpack[KeyArguments],
) -> Report:
    """Encrypts files and directories, as the command ``evener encrypt`` does.

    Without ``output`` each file gets its output beside it. One file goes to ``output``, or into it where that is a directory; one directory
    is mirrored by ``output``; several inputs go into it under their own names. An output appears under its name only when it is complete,
    and the same call again does what is left.

    :param suffix: what names of encrypted files end in; ``.age``, ``.tink`` or ``.enc`` without ``output``, and nothing with it.
    :param force: does every file again, and replaces what is there.
    :param update: makes outputs again whose source or key has changed.
    :param delete: deletes outputs that have lost their source.
    :param dry_run: writes nothing; the report tells what would be done.
    :param include: takes only files that these globs match.
    :param exclude: leaves out what these globs match, as in ``.gitignore``.
    :param tar: makes one encrypted archive of all inputs.
    :param armor: writes text.
    :param threads: how many work on the CPU; as many as the process may use unless given.
    :param memory: most memory for data in work, in bytes.
    :param modules: crypto modules by name, as ``--module`` takes them.
    :param policy: who takes which segment where there is a module.
    :param progress: is called some times a second by this thread; what it raises stops the run.
    :param check: raises where any file failed; else the report tells.
    :param keys: which key: :class:`evener.KeyArguments`.
    :raises FilesError: of several files some failed; one that was asked for alone raises its own exception.
    """
    files = _gathered(paths, output, suffix, force, update, delete, dry_run, include, exclude, tar, threads, memory, modules, policy)
    return _run("encrypt", _arguments.keys(dict(keys)), dict(files, armor=armor), progress, check)


def decrypt(
    paths: PathName | Iterable[PathName],
    output: PathName | None = None,
    *,
    suffix: str | None = None,
    force: bool = False,
    update: bool = False,
    delete: bool = False,
    dry_run: bool = False,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    tar: bool = False,
    threads: int | None = None,
    memory: int | None = None,
    modules: str | Iterable[str] = (),
    policy: str = "adaptive",
    progress: ProgressCallback | None = None,
    check: bool = True,
    **keys: Unpack[KeyArguments],
) -> Report:
    """Decrypts files and directories; names, places and arguments as for :func:`encrypt`. A file that is not authentic leaves no output."""
    files = _gathered(paths, output, suffix, force, update, delete, dry_run, include, exclude, tar, threads, memory, modules, policy)
    return _run("decrypt", _arguments.keys(dict(keys)), files, progress, check)


def verify(
    paths: PathName | Iterable[PathName],
    *,
    against: PathName | None = None,
    suffix: str | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    threads: int | None = None,
    memory: int | None = None,
    progress: ProgressCallback | None = None,
    check: bool = True,
    **keys: Unpack[KeyArguments],
) -> Report:
    """Opens encrypted files whole and writes nothing; with ``against`` each has to hold what its source there holds, too."""
    files = _gathered(paths, None, suffix, False, False, False, False, include, exclude, False, threads, memory, (), "adaptive")
    return _run("verify", _arguments.keys(dict(keys)), dict(files, against=against), progress, check)


def _gathered(
    paths: typing.Any,
    output: typing.Any,
    suffix: str | None,
    force: bool,
    update: bool,
    delete: bool,
    dry_run: bool,
    include: typing.Any,
    exclude: typing.Any,
    tar: bool,
    threads: int | None,
    memory: int | None,
    modules: typing.Any,
    policy: str,
) -> dict[str, typing.Any]:
    return {
        "sources": _arguments.several(paths),
        "output": output,
        "against": None,
        "suffix": suffix,
        "force": force,
        "update": update,
        "delete": delete,
        "dry_run": dry_run,
        "include": _arguments.several(include),
        "exclude": _arguments.several(exclude),
        "tar": tar,
        "armor": False,
        "threads": threads,
        "memory": memory,
        "modules": _arguments.several(modules),
        "policy": policy,
    }


def _run(
    what: str,
    keys: dict[str, typing.Any],
    files: dict[str, typing.Any],
    progress: ProgressCallback | None,
    check: bool,
) -> Report:
    import json

    facts, failed = _evener.run_files(what, keys, files, progress)
    report = Report(json.loads(facts))
    if not failed or not check:
        return report
    if len(failed) == 1 and report.found == 1:
        raise failed[0][1]
    first = failed[0][1]
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    raise FilesError(f"{len(failed)} of {report.found} files failed: {first}{more}", report, dict(failed)) from first
