"""Files and trees, read and written by pyrage and Tink as well."""

import io
import json
import os
import pathlib
import subprocess
import sys

import pytest

import evener

from conftest import noise


def test_a_tree_goes_there_and_back_and_its_report_counts_it(tree, tmp_path, age_keys):
    seal, unseal = age_keys
    report = evener.encrypt(tree, tmp_path / "sealed", **seal)
    assert (report.outcome, report.files, report.found, report["format"]) == ("done", 5, 5, "age")
    assert report.bytes_in == sum(file.stat().st_size for file in (tree / "below").iterdir())
    assert json.loads(report.to_json())["direction"] == "encrypt"
    evener.decrypt(tmp_path / "sealed", tmp_path / "back", **unseal)
    for file in (tree / "below").iterdir():
        assert (tmp_path / "back" / "below" / file.name).read_bytes() == file.read_bytes()


def test_the_same_call_again_does_what_is_left(tree, tmp_path, age_keys):
    seal, _ = age_keys
    evener.encrypt(tree, tmp_path / "sealed", **seal)
    (tree / "below" / "new").write_bytes(b"new")
    again = evener.encrypt(tree, tmp_path / "sealed", **seal)
    assert (again.files, again.already_done) == (1, 5)


def test_pyrage_opens_what_evener_sealed_and_the_other_way_round(tmp_path, identity, age_keys):
    import pyrage

    seal, unseal = age_keys
    for size in [0, 1, 65536, 200_001]:
        (tmp_path / "plain").write_bytes(noise(size))
        evener.encrypt(tmp_path / "plain", tmp_path / "ours", force=True, **seal)
        assert pyrage.decrypt((tmp_path / "ours").read_bytes(), [identity]) == noise(size)
        (tmp_path / "theirs").write_bytes(pyrage.encrypt(noise(size), [identity.to_public()]))
        evener.decrypt(tmp_path / "theirs", tmp_path / "back", force=True, **unseal)
        assert (tmp_path / "back").read_bytes() == noise(size)


def test_tink_opens_what_evener_sealed_and_the_other_way_round(tmp_path, keyset, tink_streaming):
    handle, text = keyset
    primitive = handle.primitive(tink_streaming.StreamingAead)
    (tmp_path / "key.json").write_bytes(text)
    os.chmod(tmp_path / "key.json", 0o600)
    (tmp_path / "plain").write_bytes(noise(50_000))
    keys = {"key": tmp_path / "key.json", "associated_data": b"page 7"}
    evener.encrypt(tmp_path / "plain", **keys)
    with primitive.new_decrypting_stream(io.BytesIO((tmp_path / "plain.tink").read_bytes()), b"page 7") as opened:
        assert opened.read() == noise(50_000)
    sealed = KeptOpen()
    with primitive.new_encrypting_stream(sealed, b"page 7") as stream:
        stream.write(noise(70_000, 2))
    (tmp_path / "theirs").write_bytes(sealed.getvalue())
    evener.decrypt(tmp_path / "theirs", tmp_path / "back", key=text, associated_data=b"page 7")
    assert (tmp_path / "back").read_bytes() == noise(70_000, 2)


class KeptOpen(io.BytesIO):
    def close(self):
        pass


def test_openssl_opens_what_evener_wrote_in_its_format(tmp_path):
    (tmp_path / "plain").write_bytes(noise(1000))
    evener.encrypt(tmp_path / "plain", passphrase="of a test", format="openssl")
    words = ["openssl", "enc", "-d", "-aes-256-cbc", "-pbkdf2", "-in", str(tmp_path / "plain.enc"), "-pass", "pass:of a test"]
    assert subprocess.run(words, check=True, capture_output=True).stdout == noise(1000)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda bytes: bytes[:-1] + bytes[-1:].translate(bytes_flipped()), evener.AuthenticationError),
        (lambda bytes: bytes[:60], evener.FormatError),
        (lambda bytes: b"no age file at all" + bytes, evener.FormatError),
    ],
)
def test_what_is_not_authentic_raises_its_kind_and_leaves_no_file(tmp_path, age_keys, spoil, kind):
    seal, unseal = age_keys
    (tmp_path / "plain").write_bytes(noise(100_000))
    evener.encrypt(tmp_path / "plain", **seal)
    sealed = tmp_path / "plain.age"
    sealed.write_bytes(spoil(sealed.read_bytes()))
    with pytest.raises(kind) as raised:
        evener.decrypt(sealed, tmp_path / "back", **unseal)
    assert "plain.age" in str(raised.value)
    assert sorted(os.listdir(tmp_path)) == ["plain", "plain.age"]


def bytes_flipped():
    return bytes(byte ^ 1 for byte in range(256))


def test_a_key_that_does_not_fit_and_one_that_is_none_are_two_things(tmp_path, age_keys):
    import pyrage

    seal, _ = age_keys
    (tmp_path / "plain").write_bytes(b"x")
    evener.encrypt(tmp_path / "plain", **seal)
    other = str(pyrage.x25519.Identity.generate()).encode()
    with pytest.raises(evener.WrongKeyError):
        evener.decrypt(tmp_path / "plain.age", tmp_path / "back", identity=other)
    with pytest.raises(evener.InvalidKeyError):
        evener.decrypt(tmp_path / "plain.age", tmp_path / "back", identity=b"AGE-SECRET-KEY-1NONSENSE")
    with pytest.raises(evener.InvalidKeyError):
        evener.encrypt(tmp_path / "plain", tmp_path / "out", key=b"{}")
    with pytest.raises(evener.InvalidKeyError) as shown:
        evener.decrypt(tmp_path / "plain.age", tmp_path / "back", identity=other.decode())
    assert "SECRET" not in repr(shown.value).upper().replace("SECRETS", "")
    with pytest.raises(FileNotFoundError) as raised:
        evener.encrypt(tmp_path / "plain", tmp_path / "out", key=tmp_path / "no such key")
    assert raised.value.filename.endswith("no such key")


def test_several_failures_are_one_exception_with_each_of_them(tree, tmp_path, age_keys):
    seal, unseal = age_keys
    evener.encrypt(tree, tmp_path / "sealed", **seal)
    for name in "34":
        file = tmp_path / "sealed" / "below" / name
        sealed = file.read_bytes()
        file.write_bytes(sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(evener.FilesError) as raised:
        evener.decrypt(tmp_path / "sealed", tmp_path / "back", **unseal)
    failed = raised.value.failed
    assert sorted(pathlib.Path(path).name for path in failed) == ["3", "4"]
    assert all(isinstance(error, evener.AuthenticationError) for error in failed.values())
    assert raised.value.report.files == 3
    told = evener.decrypt(tmp_path / "sealed", tmp_path / "once more", check=False, **unseal)
    assert (told.outcome, len(told.failed)) == ("some_failed", 2)


def test_arguments_that_do_not_go_together_are_told_apart(tmp_path):
    (tmp_path / "plain").write_bytes(b"x")
    with pytest.raises(ValueError, match="key is needed"):
        evener.encrypt(tmp_path / "plain")
    with pytest.raises(ValueError, match="one kind"):
        evener.encrypt(tmp_path / "plain", passphrase="p", key=b"{}")
    with pytest.raises(ValueError, match="associated_data"):
        evener.encrypt(tmp_path / "plain", passphrase="p", associated_data=b"x")
    with pytest.raises(TypeError, match="no argument 'recipients'"):
        evener.encrypt(tmp_path / "plain", recipients="age1")
    with pytest.raises(ValueError, match="is none of age, tink, openssl"):
        evener.encrypt(tmp_path / "plain", passphrase="p", format="zip")
    with pytest.raises(TypeError):
        evener.encrypt(7, passphrase="p")


def test_what_the_system_refuses_is_an_oserror_with_the_name(tmp_path, age_keys):
    seal, _ = age_keys
    with pytest.raises(FileNotFoundError) as raised:
        evener.encrypt(tmp_path / "absent", tmp_path / "out", **seal)
    assert raised.value.filename.endswith("absent")


def test_an_output_of_somebody_else_stays(tmp_path, age_keys):
    seal, _ = age_keys
    (tmp_path / "plain").write_bytes(b"x")
    (tmp_path / "out").write_bytes(b"somebody else's")
    with pytest.raises(evener.OutputExistsError, match="force="):
        evener.encrypt(tmp_path / "plain", tmp_path / "out", **seal)
    assert (tmp_path / "out").read_bytes() == b"somebody else's"


def test_progress_is_told_to_the_thread_that_called_and_ends_with_all(tree, tmp_path, age_keys):
    import threading

    told = []
    seal, _ = age_keys
    report = evener.encrypt(
        tree, tmp_path / "sealed", progress=lambda *row: told.append((threading.get_ident(), *row)), **seal
    )
    assert {row[0] for row in told} == {threading.get_ident()}
    assert told[-1][1:3] == (report.files, report.bytes_in)


def test_what_the_callback_raises_stops_the_run_and_leaves_nothing_half(tmp_path, age_keys):
    seal, _ = age_keys
    with open(tmp_path / "large", "wb") as file:
        file.truncate(3 << 30)

    def stop(files, bytes, total):
        if bytes:
            raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError):
        evener.encrypt(tmp_path / "large", tmp_path / "out", progress=stop, **seal)
    assert os.listdir(tmp_path) == ["large"]


def test_verify_says_what_is_authentic_and_writes_nothing(tree, tmp_path, age_keys):
    seal, unseal = age_keys
    evener.encrypt(tree, tmp_path / "sealed", **seal)
    assert evener.verify(tmp_path / "sealed", against=tree, **unseal).files == 5
    spoilt = tmp_path / "sealed" / "below" / "4"
    spoilt.write_bytes(spoilt.read_bytes()[:-3])
    with pytest.raises(evener.FilesError):
        evener.verify(tmp_path / "sealed", **unseal)


def test_the_package_is_imported_quickly_and_alone():
    # A number of modules, not a time: what is slow is importing others'.
    script = "import sys; before = set(sys.modules); import evener; print(*sorted(set(sys.modules) - before))"
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    for heavy in ["asyncio", "numpy", "cryptography", "json", "tempfile", "inspect"]:
        assert heavy not in output.split(), heavy


def test_an_identity_under_a_passphrase_opens_what_it_is_for(tmp_path, identity, age_keys):
    import pyrage

    seal, _ = age_keys
    (tmp_path / "plain").write_bytes(noise(1000))
    evener.encrypt(tmp_path / "plain", **seal)
    (tmp_path / "identity.age").write_bytes(pyrage.passphrase.encrypt(str(identity).encode(), "correct horse"))
    named = {"identity": tmp_path / "identity.age", "key_passphrase": "correct horse"}
    evener.decrypt(tmp_path / "plain.age", tmp_path / "back", **named)
    assert (tmp_path / "back").read_bytes() == noise(1000)
    with pytest.raises(evener.Error):
        evener.decrypt(tmp_path / "plain.age", tmp_path / "again", **{**named, "key_passphrase": "wrong"})
