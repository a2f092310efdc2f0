"""Bursts, judged by the package cryptography."""

import array
import hashlib
import hmac
import random
import threading

import numpy
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

import evener

from conftest import noise

#: Lengths of messages around blocks, lanes and what is little.
SIZES = [0, 1, 15, 16, 17, 64, 255, 256, 4096, 70_000]


def cipher(name, key, iv):
    mode = {"ECB": lambda: modes.ECB(), "CBC": lambda: modes.CBC(iv), "CTR": lambda: modes.CTR(iv), "XTS": lambda: modes.XTS(iv)}
    return Cipher(algorithms.AES(key), mode[name.rsplit("-", 1)[1]]())


def whole(size, name):
    if name.endswith(("ECB", "CBC")):
        return size // 16 * 16
    return max(size, 16) if name.endswith("XTS") else size


@pytest.mark.parametrize("name", [name for name in evener.algorithms() if name.startswith("AES") and not name.endswith("GCM")])
def test_ciphers_do_what_cryptography_does_both_ways(name):
    row = evener.algorithms()[name]
    key, draw = noise(row["key_bytes"]), random.Random(2)
    texts = [draw.randbytes(whole(size, name)) for size in SIZES * 7]
    ivs = [draw.randbytes(row["iv_bytes"]) for _ in texts]
    done = evener.crypt_many(evener.Session(name, key), texts, ivs if row["iv_bytes"] else None)
    assert done.tags is None and not done.failed
    for text, iv, sealed in zip(texts, ivs, done.outputs):
        judge = cipher(name, key, iv).encryptor()
        assert sealed == judge.update(text) + judge.finalize()
    opened = evener.crypt_many(evener.Session(name, key, "decrypt"), done.outputs, ivs if row["iv_bytes"] else None)
    assert opened.outputs == texts


@pytest.mark.parametrize("name", ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "CHACHA20-POLY1305"])
def test_aead_does_what_cryptography_does_with_associated_data_of_each(name):
    row, draw = evener.algorithms()[name], random.Random(3)
    key = draw.randbytes(row["key_bytes"])
    texts = [draw.randbytes(size) for size in SIZES * 7]
    ivs, aads = [draw.randbytes(12) for _ in texts], [draw.randbytes(len(text) % 50) for text in texts]
    judge = (ChaCha20Poly1305 if name.startswith("CHACHA") else AESGCM)(key)
    done = evener.crypt_many(evener.Session(name, key), texts, b"".join(ivs), aads=aads)
    tags = [done.tags[at : at + 16] for at in range(0, len(done.tags), 16)]
    for text, iv, aad, sealed, tag in zip(texts, ivs, aads, done.outputs, tags):
        assert sealed + tag == judge.encrypt(iv, text, aad)
    session = evener.Session(name, key, "decrypt")
    assert evener.crypt_many(session, done.outputs, ivs, aads=aads, tags=done.tags).outputs == texts
    assert evener.crypt_many(session, done.outputs, ivs, aads=aads, tags=tags).outputs == texts


def test_jobs_that_are_not_authentic_are_named_and_the_others_are_done():
    key, texts = noise(32), [noise(5000, number) for number in range(40)]
    ivs = [number.to_bytes(12, "big") for number in range(40)]
    done = evener.crypt_many(evener.Session("AES-256-GCM", key), texts, ivs, aads=b"all")
    spoilt = bytearray(done.tags)
    for number in [3, 17]:
        spoilt[number * 16] ^= 1
    session = evener.Session("AES-256-GCM", key, "decrypt")
    with pytest.raises(evener.AuthenticationError) as raised:
        evener.crypt_many(session, done.outputs, ivs, aads=b"all", tags=spoilt)
    assert raised.value.indices == (3, 17)
    with pytest.raises(InvalidTag):
        AESGCM(key).decrypt(ivs[3], done.outputs[3] + bytes(spoilt[48:64]), b"all")
    told = evener.crypt_many(session, done.outputs, ivs, aads=b"all", tags=spoilt, check=False)
    assert set(told.failed) == {3, 17} and told.outputs[3] is None
    assert [out for out in told.outputs if out] == [text for number, text in enumerate(texts) if number not in (3, 17)]
    spaces = [bytearray(output) for output in done.outputs]
    evener.crypt_many(session, spaces, ivs, aads=b"all", tags=spoilt, in_place=True, check=False)
    assert spaces[3] == bytes(5000) and spaces[4] == texts[4]


@pytest.mark.parametrize("name", ["SHA-1", "SHA-256", "MD5"])
def test_hashes_do_what_hashlib_does(name):
    texts = [noise(size, size) for size in SIZES * 20]
    judged = [hashlib.new(name.replace("-", "").lower(), text).digest() for text in texts]
    assert evener.hash_many(name, texts) == judged
    keyed = [hmac.new(b"a key", text, name.replace("-", "").lower()).digest() for text in texts]
    assert evener.hash_many(f"HMAC-{name}", texts, key=b"a key") == keyed


def test_padding_is_that_of_cryptography():
    from cryptography.hazmat.primitives.padding import PKCS7

    key, iv = noise(16), noise(16, 2)
    texts = [noise(size) for size in SIZES]
    done = evener.crypt_many(evener.Session("AES-128-CBC", key, padding=True), texts, iv * len(texts))
    for text, sealed in zip(texts, done.outputs):
        padder, judge = PKCS7(128).padder(), cipher("AES-128-CBC", key, iv).encryptor()
        assert sealed == judge.update(padder.update(text) + padder.finalize())
    opened = evener.crypt_many(evener.Session("AES-128-CBC", key, "decrypt", padding=True), done.outputs, iv * len(texts))
    assert opened.outputs == texts


def lent(kind, content):
    return {
        "bytes": lambda: bytes(content),
        "bytearray": lambda: bytearray(content),
        "memoryview": lambda: memoryview(bytearray(content)),
        "array": lambda: array.array("B", content),
        "numpy": lambda: numpy.frombuffer(content, dtype=numpy.uint8).copy(),
        "numpy64": lambda: numpy.frombuffer(content, dtype=numpy.uint64).copy(),
    }[kind]()


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "memoryview", "array", "numpy", "numpy64"])
def test_whatever_lends_its_memory_is_taken(kind):
    key, iv = noise(32), noise(16)
    texts = [noise(4096, number) for number in range(50)]
    judged = []
    for text in texts:
        judge = cipher("AES-256-CTR", key, iv).encryptor()
        judged.append(judge.update(text))
    session = evener.Session("AES-256-CTR", key)
    assert evener.crypt_many(session, [lent(kind, text) for text in texts], iv * 50).outputs == judged
    if kind == "bytes":
        with pytest.raises(BufferError, match=r"buffers\[0\]"):
            evener.crypt_many(session, texts, iv * 50, in_place=True)
        return
    spaces = [lent(kind, text) for text in texts]
    assert evener.crypt_many(session, spaces, iv * 50, in_place=True).outputs is None
    assert [bytes(space) for space in spaces] == judged


def test_one_large_buffer_is_cut_by_size_or_ranges_and_rows_of_an_array():
    key, count = noise(16), 300
    table = numpy.frombuffer(noise(count * 512), dtype=numpy.uint8).reshape(count, 512).copy()
    ivs = numpy.arange(count * 16, dtype=numpy.uint8).reshape(count, 16)
    judged = b""
    for row, iv in zip(table, ivs):
        judge = cipher("AES-128-CBC", key, bytes(iv)).encryptor()
        judged += judge.update(row.tobytes())
    session = evener.Session("AES-128-CBC", key)
    assert b"".join(evener.crypt_many(session, table, ivs, size=512).outputs) == judged
    ranges = [(at * 512, at * 512 + 512) for at in range(count)]
    out = bytearray(count * 512)
    evener.crypt_many(session, table, ivs, ranges=ranges, out=out)
    assert out == judged
    evener.crypt_many(session, table, ivs, size=512, in_place=True)
    assert table.tobytes() == judged


@pytest.mark.parametrize(
    ("kind", "match", "call"),
    [
        (TypeError, "buffers", lambda s, b, iv: evener.crypt_many(s, 7, iv)),
        (TypeError, r"buffers\[1\]", lambda s, b, iv: evener.crypt_many(s, [b, "text"], iv * 2)),
        (ValueError, "ivs: AES-128-CBC to encrypt takes one", lambda s, b, iv: evener.crypt_many(s, [b])),
        (ValueError, r"ivs: 15 bytes, where 1 jobs take 16", lambda s, b, iv: evener.crypt_many(s, [b], iv[:15])),
        (ValueError, r"ivs\[0\]: 15 bytes and not 16", lambda s, b, iv: evener.crypt_many(s, [b], [iv[:15]])),
        (ValueError, "ivs: 2 for 1 jobs", lambda s, b, iv: evener.crypt_many(s, [b], [iv, iv])),
        (ValueError, "tags: .* takes none", lambda s, b, iv: evener.crypt_many(s, [b], iv, tags=b"")),
        (ValueError, "aads: AES-128-CBC takes none", lambda s, b, iv: evener.crypt_many(s, [b], iv, aads=b"x")),
        (ValueError, "overlap", lambda s, b, iv: evener.crypt_many(s, [b, b], iv * 2, in_place=True)),
        (ValueError, "overlap", lambda s, b, iv: evener.crypt_many(s, b, iv * 2, ranges=[(0, 32), (16, 48)], in_place=True)),
        (ValueError, "overlap", lambda s, b, iv: evener.crypt_many(s, [memoryview(b)[:32]], iv, out=[memoryview(b)[16:48]])),
        (ValueError, "overlap", lambda s, b, iv: evener.crypt_many(s, [b, b], iv * 2, out=[b, bytearray(64)])),
        (ValueError, "exclude", lambda s, b, iv: evener.crypt_many(s, [b], iv, in_place=True, out=[b])),
        (ValueError, "multiple of size", lambda s, b, iv: evener.crypt_many(s, b, iv, size=40)),
        (ValueError, "ends behind", lambda s, b, iv: evener.crypt_many(s, b, iv, ranges=[(0, 80)])),
        (ValueError, "ends before", lambda s, b, iv: evener.crypt_many(s, b, iv, ranges=[(32, 16)])),
        (ValueError, "cut one buffer", lambda s, b, iv: evener.crypt_many(s, [b], iv, size=16)),
        (ValueError, r"out\[0\] is shorter", lambda s, b, iv: evener.crypt_many(s, [b], iv, out=[bytearray(63)])),
        (ValueError, "job 0: its length", lambda s, b, iv: evener.crypt_many(s, [b[:17]], iv)),
        (BufferError, "contiguous", lambda s, b, iv: evener.crypt_many(s, [memoryview(b)[::2]], iv)),
    ],
)
def test_what_does_not_fit_is_one_exception_that_names_it_and_writes_nothing(kind, match, call):
    space = bytearray(noise(64))
    with pytest.raises(kind, match=match):
        call(evener.Session("AES-128-CBC", noise(16)), space, noise(16))
    assert space == noise(64)


def test_a_session_refuses_what_is_no_key_and_shows_none():
    key = b"sixteen secrets!"
    shown = repr(evener.Session("AES-128-CBC", key, padding=True))
    assert "hidden" in shown and "secrets" not in shown and key.hex() not in shown
    with pytest.raises(evener.InvalidKeyError, match="16 bytes, not 15"):
        evener.Session("AES-128-CBC", key[:15])
    with pytest.raises(ValueError, match="no algorithm"):
        evener.Session("AES-512-CBC", key)
    with pytest.raises(evener.InvalidKeyError):
        evener.Session("SHA-256", b"", "decrypt")
    with pytest.raises(TypeError):
        evener.Session("AES-128-CBC", "text")
    import pickle

    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(evener.Session("AES-128-CBC", key))


def test_lent_memory_is_given_back_and_not_resized_meanwhile():
    space, out, ivs = bytearray(noise(64)), bytearray(64), bytes(16 * 256)

    def resizing():
        # Asked for IVs, and so in the middle of the call.
        for lent in [space, out]:
            with pytest.raises(BufferError):
                lent.extend(b"more")
        yield noise(16)

    session = evener.Session("AES-128-CBC", noise(16))
    evener.crypt_many(session, [space], resizing(), out=[out])
    assert len(space) == len(out) == 64
    out.extend(b"more")
    space.extend(b"more")
    large, refused = bytearray(16 << 20), 0
    pieces = [(at << 16, (at + 1) << 16) for at in range(256)]
    for _ in range(100):
        burst = threading.Thread(target=lambda: evener.crypt_many(session, large, ivs, ranges=pieces, in_place=True))
        burst.start()
        while burst.is_alive():
            try:
                large.append(0)
            except BufferError:
                refused += 1
        burst.join()
        if refused:
            break
    assert refused
    with pytest.raises(ValueError):
        evener.crypt_many(evener.Session("AES-128-CBC", noise(16)), [space], b"")
    space.extend(b"more")


def test_an_empty_burst_is_done_at_once():
    assert evener.crypt_many(evener.Session("AES-128-CBC", noise(16)), [], b"").outputs == []
    assert evener.hash_many("SHA-256", []) == []


def test_what_was_done_is_counted():
    before = evener.statistics()["jobs"]
    evener.hash_many("SHA-256", [b"x" * 4096] * 100)
    assert evener.statistics()["jobs"] == before + 100


def test_associated_data_that_a_job_would_write_over_is_refused_before_anything_is_written():
    space, session = bytearray(noise(8192)), evener.Session("AES-128-GCM", noise(16))
    with pytest.raises(ValueError, match="aads overlap"):
        evener.crypt_many(session, space, bytes(24), size=4096, in_place=True, aads=memoryview(space)[:16])
    assert space == noise(8192)
