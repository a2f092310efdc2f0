"""Encrypted files as file objects, judged by pyrage and Tink."""

import errno
import io
import os
import random
import stat
import threading
import time

import pytest

import evener

from conftest import noise
from test_files import KeptOpen


@pytest.fixture
def sealed(identity):
    import pyrage

    return pyrage.encrypt(noise(1_000_000), [identity.to_public()])


def test_any_place_is_read_from_memory_a_path_and_a_file_object(tmp_path, sealed, age_keys):
    _, unseal = age_keys
    (tmp_path / "sealed").write_bytes(sealed)
    draw, plain = random.Random(4), noise(1_000_000)
    sources = [sealed, memoryview(sealed), tmp_path / "sealed", io.BytesIO(sealed), open(tmp_path / "sealed", "rb", buffering=0)]
    for source in sources:
        with evener.open(source, **unseal) as opened:
            assert opened.seek(0, os.SEEK_END) == len(plain)
            for _ in range(50):
                place, count = draw.randrange(len(plain)), draw.choice([1, 100, 4096, 65536, 200_000])
                opened.seek(place)
                assert opened.read(count) == plain[place : place + count]
            opened.seek(0)
            assert opened.read() == plain and opened.read(1) == b""
            opened.seek(2_000_000)
            assert opened.read(10) == b""


def test_no_more_than_the_segments_around_it_is_read(sealed, age_keys):
    _, unseal = age_keys
    segment = 65536 + 16
    with evener.open(sealed, segments=2, **unseal) as opened:
        raw = opened.raw
        last = raw.bytes_read
        assert last <= segment
        for place in [3 * 65536, 7 * 65536 + 60_000, 9 * 65536 + 61_440]:
            opened.seek(place)
            assert opened.read(4096) == noise(1_000_000)[place : place + 4096]
            assert raw.bytes_read - last == segment
            last = raw.bytes_read


def test_lines_and_text_are_read_as_from_any_file(age_keys):
    import pyrage

    _, unseal = age_keys
    text = "".join(f"line {number} é\n" for number in range(20_000))
    sealed = pyrage.encrypt(text.encode(), [pyrage.x25519.Recipient.from_str(age_keys[0]["recipient"])])
    with io.TextIOWrapper(evener.open(sealed, **unseal), encoding="utf-8") as lines:
        assert "".join(lines) == text


def test_text_is_written_and_read_as_by_open(tmp_path, identity, age_keys):
    import pyrage

    seal, unseal = age_keys
    for named in [{"encoding": "utf-8"}, {"encoding": "utf-16", "newline": "\r\n"}, {"encoding": "ascii", "errors": "replace"}]:
        with evener.open(tmp_path / "sealed", "wt", **named, **seal) as ours, open(tmp_path / "plain", "w", **named) as judge:
            for file in (ours, judge):
                file.write("row é\n" * 50_000)
                print("last", 7, file=file)
        assert pyrage.decrypt((tmp_path / "sealed").read_bytes(), [identity]) == (tmp_path / "plain").read_bytes()
        with evener.open(tmp_path / "sealed", "rt", **named, **unseal) as ours, open(tmp_path / "plain", **named) as judge:
            assert list(ours) == list(judge)
    with pytest.raises(FileExistsError):
        evener.open(tmp_path / "sealed", "xt", **seal)
    for mode, named, kind in [
        ("rb", {"encoding": "utf-8"}, ValueError), ("wb", {"newline": ""}, ValueError), ("rt", {"buffering": 0}, ValueError),
        ("wt", {"newline": "x"}, ValueError), ("wt", {"encoding": "none-such"}, LookupError),
    ]:
        with pytest.raises(kind):
            evener.open(tmp_path / "sealed", mode, **named, **(unseal if mode[0] == "r" else seal))
    assert sorted(os.listdir(tmp_path)) == ["plain", "sealed"]


def test_failed_text_leaves_what_was_there(tmp_path, age_keys):
    seal, unseal = age_keys
    (tmp_path / "sealed").write_bytes(b"before")
    with pytest.raises(ZeroDivisionError):
        with evener.open(tmp_path / "sealed", "wt", encoding="utf-8", **seal) as file:
            file.write("x" * 300_000)
            raise ZeroDivisionError
    with pytest.raises(UnicodeEncodeError):
        with evener.open(tmp_path / "sealed", "wt", encoding="ascii", **seal) as file:
            file.write("begun\n")
            file.write("é")
    file = evener.open(tmp_path / "sealed", "wt", encoding="utf-8", **seal)
    file.write("given up")
    del file

    class Refused(io.BytesIO):
        is_full = False

        def write(self, data):
            if self.is_full:
                raise OSError(28, "the disk is full")
            return super().write(data)

    sink = Refused()
    file = evener.open(sink, "wt", encoding="utf-8", **seal)
    file.write("x" * 300_000)
    sink.is_full = True
    with pytest.raises(OSError, match="full"):
        file.close()
    assert file.closed
    assert (tmp_path / "sealed").read_bytes() == b"before" and os.listdir(tmp_path) == ["sealed"]
    # What is taken out of its wrapper is whole when it is closed.
    file = evener.open(tmp_path / "sealed", "wt", encoding="utf-8", **seal)
    file.write("taken out")
    writer = file.detach()
    del file
    writer.close()
    assert evener.open(tmp_path / "sealed", **unseal).read() == b"taken out"


@pytest.mark.parametrize("length", [240, 255])
def test_a_name_as_long_as_names_can_be_is_written(tmp_path, age_keys, length):
    seal, unseal = age_keys
    path = tmp_path / ("é" * 50).ljust(length - 50, "n")
    assert len(os.fsencode(path.name)) == length
    with evener.open(path, "wb", **seal) as file:
        file.write(b"long")
    assert evener.open(path, **unseal).read() == b"long" and os.listdir(tmp_path) == [path.name]


def test_associated_data_is_whatever_lends_bytes_and_nothing_else(keyset):
    _, text = keyset
    into = KeptOpen()
    with evener.open(into, "wb", key=text, associated_data=bytearray(b"table 7")) as file:
        file.write(b"bound")
    assert evener.open(into.getvalue(), key=text, associated_data=memoryview(b"x table 7")[2:]).read() == b"bound"
    for other in [7, [1, 2], "table 7", True]:
        with pytest.raises(TypeError, match="associated_data"):
            evener.open(KeptOpen(), "wb", key=text, associated_data=other)


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 500_000])
def test_pyrage_opens_what_was_written(tmp_path, identity, age_keys, size):
    import pyrage

    seal, unseal = age_keys
    draw, plain, written = random.Random(5), noise(size), 0
    with evener.open(tmp_path / "sealed", "wb", **seal) as file:
        while written < size:
            piece = plain[written : written + draw.randrange(1, 100_000)]
            assert file.write(piece) == len(piece)
            written += len(piece)
        assert file.tell() == size and not (tmp_path / "sealed").exists()
    assert os.listdir(tmp_path) == ["sealed"]
    assert pyrage.decrypt((tmp_path / "sealed").read_bytes(), [identity]) == plain
    into = io.BytesIO()
    with evener.open(into, "wb", **seal) as file:
        file.write(plain)
    assert pyrage.decrypt(into.getvalue(), [identity]) == plain


def test_tink_reads_what_was_written_and_is_read_at_any_place(keyset, tink_streaming):
    handle, text = keyset
    primitive = handle.primitive(tink_streaming.StreamingAead)
    plain, into = noise(100_000), KeptOpen()
    with evener.open(into, "wb", key=text, associated_data=b"a") as file:
        file.write(plain)
    with primitive.new_decrypting_stream(io.BytesIO(into.getvalue()), b"a") as theirs:
        assert theirs.read() == plain
    with evener.open(into.getvalue(), key=text, associated_data=b"a") as ours:
        ours.seek(50_001)
        assert ours.read(5000) == plain[50_001:55_001]
    with pytest.raises((evener.WrongKeyError, evener.AuthenticationError)):
        evener.open(into.getvalue(), key=text, associated_data=b"b")


def test_what_was_cut_off_or_changed_is_found_before_it_is_given(sealed, age_keys):
    _, unseal = age_keys
    for cut in [len(sealed) - 1, len(sealed) - 65552, 100, 0]:
        with pytest.raises((evener.AuthenticationError, evener.FormatError)):
            evener.open(sealed[:cut], **unseal)
    changed = bytearray(sealed)
    changed[len(sealed) // 2] ^= 1
    with evener.open(bytes(changed), **unseal) as opened:
        assert opened.read(65536) == noise(1_000_000)[:65536]
        with pytest.raises(evener.AuthenticationError):
            opened.read()


def test_a_failed_with_block_leaves_what_was_there(tmp_path, age_keys):
    seal, _ = age_keys
    (tmp_path / "sealed").write_bytes(b"before")
    with pytest.raises(ZeroDivisionError):
        with evener.open(tmp_path / "sealed", "wb", **seal) as file:
            file.write(noise(300_000))
            raise ZeroDivisionError
    file = evener.open(tmp_path / "sealed", "wb", **seal)
    file.write(b"given up")
    del file
    assert (tmp_path / "sealed").read_bytes() == b"before" and os.listdir(tmp_path) == ["sealed"]
    with pytest.raises(FileExistsError):
        evener.open(tmp_path / "sealed", "xb", **seal)


def test_closed_files_and_wrong_modes_say_so(tmp_path, sealed, age_keys):
    seal, unseal = age_keys
    opened = evener.open(sealed, buffering=0, **unseal)
    opened.close()
    opened.close()
    for call in [opened.read, opened.tell, lambda: opened.seek(0), lambda: opened.size]:
        with pytest.raises(ValueError, match="closed"):
            call()
    file = evener.open(tmp_path / "out", "wb", **seal)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.write(b"x")
    for mode in ["r", "w", "r+b", "ab"]:
        with pytest.raises(ValueError, match="mode"):
            evener.open(tmp_path / "out", mode, **unseal)
    with pytest.raises(FileNotFoundError):
        evener.open(tmp_path / "absent", **unseal)
    with pytest.raises(TypeError):
        evener.open(7, **unseal)


def test_what_a_file_object_raises_comes_through(sealed, age_keys):
    seal, unseal = age_keys

    class Failing(io.BytesIO):
        def read(self, *_):
            raise ZeroDivisionError("of the store")

        def write(self, *_):
            raise ZeroDivisionError("of the store")

    with pytest.raises(ZeroDivisionError, match="of the store"):
        evener.open(Failing(sealed), **unseal)
    with pytest.raises(ZeroDivisionError, match="of the store"):
        evener.open(Failing(), "wb", **seal)


def test_threads_read_one_file_each_at_the_same_time(sealed, age_keys):
    from concurrent.futures import ThreadPoolExecutor

    _, unseal = age_keys

    def read(seed):
        with evener.open(sealed, **unseal) as opened:
            draw = random.Random(seed)
            for _ in range(30):
                place = draw.randrange(1_000_000 - 4096)
                opened.seek(place)
                assert opened.read(4096) == noise(1_000_000)[place : place + 4096]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(16)))


def test_a_new_file_gets_its_name_where_the_file_system_has_no_second_names(tmp_path, age_keys, monkeypatch):
    seal, unseal = age_keys

    def refused(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with evener.open(tmp_path / "new", "xb", **seal) as file:
        file.write(b"text")
    assert evener.open(tmp_path / "new", **unseal).read() == b"text"
    # What came there meanwhile stays.
    file = evener.open(tmp_path / "late", "xb", **seal)
    file.write(b"ours")
    (tmp_path / "late").write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        file.close()
    assert (tmp_path / "late").read_bytes() == b"theirs" and sorted(os.listdir(tmp_path)) == ["late", "new"]


def test_a_file_that_is_replaced_leaves_its_mode_and_owner_to_the_new_one(tmp_path, age_keys):
    seal, _ = age_keys
    path = tmp_path / "sealed"
    for mode in [0o600, 0o664, 0o4750]:
        path.write_bytes(b"before")
        if os.geteuid() == 0:
            os.chown(path, 1234, 2345)
        path.chmod(mode)
        before = path.stat()
        with evener.open(path, "wb", **seal) as file:
            file.write(b"after")
        after = path.stat()
        assert after.st_ino != before.st_ino
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.ENOSYS])
def test_a_file_is_replaced_where_its_owner_cannot_be_given_and_nobody_may_more_than_before(tmp_path, age_keys, monkeypatch, number):
    seal, unseal = age_keys

    def refused(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fchown", refused)
    path = tmp_path / "made.age"
    # The group's right is not another group's, and whom it had shut out may be among all others now.
    for mode, left in [(0o644, 0o644), (0o640, 0o600), (0o664, 0o644), (0o604, 0o600), (0o4755, 0o755)]:
        path.write_bytes(b"old")
        path.chmod(mode)
        with evener.open(path, "wb", **seal) as out:
            out.write(b"new")
        assert stat.S_IMODE(path.stat().st_mode) == left, oct(mode)
    monkeypatch.setattr(os, "fchmod", refused)
    with evener.open(path, "wb", **seal) as out:
        out.write(b"once more")
    assert evener.open(path, **unseal).read() == b"once more"


def test_a_file_that_is_in_place_is_no_failure_where_its_directory_cannot_be_synced(tmp_path, age_keys, monkeypatch):
    seal, unseal = age_keys

    def refused(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refused)
    with evener.open(tmp_path / "file", "wb", **seal) as file:
        file.write(b"text")
    monkeypatch.undo()
    assert evener.open(tmp_path / "file", **unseal).read() == b"text"


def test_a_forked_child_is_told_instead_of_waiting_for_what_its_parent_read(sealed, age_keys):
    _, unseal = age_keys
    opened = evener.open(sealed, buffering=0, **unseal)
    child = os.fork()
    if child == 0:
        try:
            opened.bytes_read
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_what_is_no_regular_file_is_never_replaced(tmp_path, age_keys):
    seal, unseal = age_keys
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(evener.UnsupportedError):
        evener.open(tmp_path / "pipe", "wb", **seal)
    with pytest.raises(IsADirectoryError):
        evener.open(tmp_path / "folder", "wb", **seal)
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("file")
    with evener.open(tmp_path / "link", "wb", **seal) as file:
        file.write(b"after")
    assert (tmp_path / "link").is_symlink() and sorted(os.listdir(tmp_path)) == ["file", "folder", "link", "pipe"]
    assert evener.open(tmp_path / "file", **unseal).read() == b"after"


def test_a_forked_child_leaves_the_draft_of_its_parent(tmp_path, age_keys):
    seal, unseal = age_keys
    with evener.open(tmp_path / "file", "wb", **seal) as file:
        file.write(noise(100_000))
        child = os.fork()
        if child == 0:
            file.discard()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert evener.open(tmp_path / "file", **unseal).read() == noise(100_000)


def ended(call):
    """What a call raised, or its result; one that stands still fails."""
    answers = []

    def work():
        try:
            answers.append(call())
        except BaseException as error:
            answers.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(60)
    assert answers, "it stands still"
    return answers[0]


def test_a_file_object_that_uses_the_file_it_serves_is_told_so(sealed, age_keys):
    seal, unseal = age_keys

    class Curious(io.BytesIO):
        use = None

        def read(self, *count):
            if self.use is not None:
                self.use()
            return super().read(*count)

        def write(self, data):
            if self.use is not None:
                self.use()
            return super().write(data)

    source = Curious(sealed)
    with evener.open(source, buffering=0, **unseal) as opened:
        for use in [lambda: opened.bytes_read, lambda: opened.read(1)]:
            source.use = use
            raised = ended(lambda: opened.read(100))
            assert isinstance(raised, RuntimeError) and "reentrant" in str(raised)
        source.use = None
        assert opened.read(100) == noise(1_000_000)[:100]
        # Another thread waits for its turn, and needs no more.
        source.use = lambda: (waiting.start(), time.sleep(0.05))
        waiting = threading.Thread(target=lambda: opened.bytes_read)
        opened.seek(700_000)
        assert ended(lambda: opened.read(100)) == noise(1_000_000)[700_000:700_100]
        waiting.join(60)
        assert not waiting.is_alive()
    sink = Curious()
    file = evener.open(sink, "wb", **seal)
    for use in [lambda: file.write(b"more"), file.close]:
        sink.use = use
        raised = ended(lambda: file.write(noise(1_000_000)))
        assert isinstance(raised, (RuntimeError, ValueError)), raised
    file.discard()


def test_a_raw_file_object_that_takes_nothing_is_an_error(age_keys):
    seal, _ = age_keys
    read, write = os.pipe()
    os.set_blocking(write, False)
    with io.FileIO(read), io.FileIO(write, "wb") as sink:
        with pytest.raises(OSError):
            with evener.open(sink, "wb", **seal) as file:
                file.write(bytes(1 << 20))


def test_a_format_that_shows_no_damage_has_no_file_objects(tmp_path):
    for mode in ["rb", "wb"]:
        with pytest.raises(evener.UnsupportedError):
            evener.open(tmp_path / "file", mode, passphrase="long enough", format="openssl")
    assert os.listdir(tmp_path) == []
