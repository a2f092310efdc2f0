"""What a run did."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping


class Report(Mapping[str, typing.Any]):
    """What a run over files did: the report of ``evener encrypt --json`` as a mapping, its usual rows as attributes.

    Its form is described by ``docs/reference/schemas/report.schema.json``.
    """

    __slots__ = ("_facts",)

    def __init__(self, facts: Mapping[str, typing.Any]) -> None:
        self._facts = dict(facts)

    @property
    def outcome(self) -> str:
        """``done``, ``some_failed`` or ``stopped``."""
        return str(self._facts["outcome"])

    @property
    def found(self) -> int:
        """What was found: each is done, done before, left out or failed."""
        return int(self._facts["found"])

    @property
    def files(self) -> int:
        """Files that this run finished."""
        return int(self._facts["files"])

    @property
    def already_done(self) -> int:
        """Files whose finished output was there before."""
        return int(self._facts["already_done"])

    @property
    def bytes_in(self) -> int:
        """Bytes that were read."""
        return int(self._facts["bytes_in"])

    @property
    def bytes_out(self) -> int:
        """Bytes that were written."""
        return int(self._facts["bytes_out"])

    @property
    def seconds(self) -> float:
        """From start to end."""
        return float(self._facts["seconds"])

    @property
    def failed(self) -> list[dict[str, str]]:
        """What failed: rows with ``path`` and ``reason``."""
        return list(self._facts["failed"])

    @property
    def skipped(self) -> list[dict[str, str]]:
        """What was left out: rows with ``path`` and ``reason``."""
        return list(self._facts["skipped"])

    def to_json(self) -> str:
        """The report as the command writes it."""
        import json

        return json.dumps(self._facts, indent=2)

    def __getitem__(self, name: str) -> typing.Any:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return (
            f"<evener.Report {self.outcome}: {self.files} of {self.found} files, "
            f"{self.already_done} done before, {len(self.failed)} failed, {self.bytes_in} bytes in {self.seconds:.3f} s>"
        )
