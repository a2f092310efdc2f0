"""What tests share. Judges are libraries of other hands: cryptography, pyrage, Tink."""

import contextlib
import io
import os
import pathlib
import re

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory):
    """Costs, records and secrets of the tests stay among the tests."""
    folder = tmp_path_factory.mktemp("evener")
    os.environ["EVENER_CACHE_DIR"] = str(folder / "cache")
    os.environ["EVENER_STATE_DIR"] = str(folder / "state")


@pytest.fixture(scope="session")
def identity():
    import pyrage

    return pyrage.x25519.Identity.generate()


@pytest.fixture(scope="session")
def age_keys(identity):
    """To seal, and to open."""
    return {"recipient": str(identity.to_public())}, {"identity": str(identity).encode()}


@pytest.fixture(scope="session")
def tink_streaming():
    from tink import streaming_aead

    streaming_aead.register()
    return streaming_aead


@pytest.fixture(scope="session")
def keyset(tink_streaming):
    """A keyset of Tink's own making: its handle, and its JSON."""
    import tink
    from tink import json_proto_keyset_format, secret_key_access

    template = tink_streaming.streaming_aead_key_templates.AES256_GCM_HKDF_4KB
    handle = tink.new_keyset_handle(template)
    return handle, json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN).encode()


def shown_and_printed(page: str) -> int:
    """Runs the Python blocks of a page, one after the other, and compares what they print; how many there are."""
    blocks = re.findall(r"```python\n(.*?)```\n(?:```output\n(.*?)```\n)?", page, re.DOTALL)
    names: dict[str, object] = {}
    for script, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(script, names)
        pattern = ".*".join(map(re.escape, shown.split("…")))
        assert re.fullmatch(pattern, printed.getvalue()), (script, printed.getvalue())
    return len(blocks)


def noise(count: int, seed: int = 1) -> bytes:
    import random

    return random.Random(seed).randbytes(count)


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "tree"
    (folder / "below").mkdir(parents=True)
    for number, size in enumerate([0, 1, 65536, 65537, 300_000]):
        (folder / "below" / f"{number}").write_bytes(noise(size, number))
    return folder


def pytest_terminal_summary(terminalreporter):
    """The line that the run of all tests adds up."""
    count = {kind: len(terminalreporter.getreports(kind)) for kind in ("passed", "failed", "error")}
    terminalreporter.write_line(f"{count['passed']} passed, {count['failed'] + count['error']} failed")
