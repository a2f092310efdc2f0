#!/usr/bin/env python3
"""Evener against Google's Tink, both ways.

usage: tink_interop.py EVENER

EVENER is the command to test. Needs what requirements.txt names, for instance:

    python3 -m venv VENV && VENV/bin/pip install -r requirements.txt
    VENV/bin/python tink_interop.py target/release/evener

For every template and with and without associated data: files of 0 and 1 byte, one byte around each border of
segments, and 10 MiB, sealed by one side and opened by the other. Then what both must refuse, and keysets of
several keys. The last line sums up; the exit status is 0 if nothing failed.
"""

import io
import json
import pathlib
import subprocess
import sys
import tempfile

import tink
from tink import json_proto_keyset_format, secret_key_access, streaming_aead

TEMPLATES = {
    "AES128_GCM_HKDF_4KB": streaming_aead.streaming_aead_key_templates.AES128_GCM_HKDF_4KB,
    "AES128_GCM_HKDF_1MB": streaming_aead.streaming_aead_key_templates.AES128_GCM_HKDF_1MB,
    "AES256_GCM_HKDF_4KB": streaming_aead.streaming_aead_key_templates.AES256_GCM_HKDF_4KB,
    "AES256_GCM_HKDF_1MB": streaming_aead.streaming_aead_key_templates.AES256_GCM_HKDF_1MB,
}
ASSOCIATED_DATA = [b"", b"bound to this text"]
TAG_BYTES = 16


class Tally:
    """What held and what did not."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, claim, holds):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {claim}")


class KeptOpen(io.BytesIO):
    """Bytes that outlive the stream that is written to them."""

    def close(self):
        pass


def header_bytes(template):
    """1 + salt + 7 bytes of nonce prefix; the salt is as long as the key."""
    return 24 if "AES128" in template else 40


def sizes(template):
    segment = 4096 if "4KB" in template else 1 << 20
    first = segment - header_bytes(template) - TAG_BYTES
    later = segment - TAG_BYTES
    borders = [first, first + later, first + 2 * later]
    around = [border + step for border in borders for step in (-1, 0, 1)]
    return [0, 1] + around + [10 << 20]


def pattern(count):
    return (bytes(range(251)) * (count // 251 + 1))[:count]


def primitive_of(keyset_json):
    handle = json_proto_keyset_format.parse(keyset_json, secret_key_access.TOKEN)
    return handle.primitive(streaming_aead.StreamingAead)


def tink_seals(primitive, plain, associated_data):
    sealed = KeptOpen()
    with primitive.new_encrypting_stream(sealed, associated_data) as stream:
        stream.write(plain)
    return sealed.getvalue()


def tink_opens(primitive, sealed, associated_data):
    """The plaintext, None where Tink refuses."""
    try:
        with primitive.new_decrypting_stream(io.BytesIO(sealed), associated_data) as stream:
            return stream.read()
    except (tink.TinkError, OSError, ValueError):
        return None


class Evener:
    """The command, on files in a folder of its own."""

    def __init__(self, command, folder):
        self.command = command
        self.folder = folder
        self.runs = 0

    def keygen(self, template):
        key = self.folder / f"{template}.json"
        self._run("keygen", key, "--template", template)
        return key

    def seal(self, key, files, associated_data):
        return self._process("encrypt", key, files, associated_data)

    def open(self, key, files, associated_data):
        return self._process("decrypt", key, files, associated_data)

    def _process(self, verb, key, files, associated_data):
        """Files by name in, files by name out; what failed is missing."""
        self.runs += 1
        source, target = self.folder / f"in{self.runs}", self.folder / f"out{self.runs}"
        source.mkdir()
        for name, content in files.items():
            (source / name).write_bytes(content)
        bound = ["--associated-data", associated_data.decode()] if associated_data else []
        self._run(verb, "--key", key, "--quiet", *bound, "-o", target, source, may_fail=True)
        return {path.name: path.read_bytes() for path in target.iterdir()} if target.exists() else {}

    def _run(self, *arguments, may_fail=False):
        done = subprocess.run([self.command, *map(str, arguments)], stderr=subprocess.PIPE, timeout=600)
        if done.returncode not in ((0, 1) if may_fail else (0,)):
            raise SystemExit(f"evener {arguments[0]}: status {done.returncode}: {done.stderr.decode()}")


def both_ways(tally, evener, name, key, primitive):
    plains = {str(size): pattern(size) for size in sizes(name)}
    for associated_data in ASSOCIATED_DATA:
        case = f"{name}, associated data {associated_data!r}"
        sealed = evener.seal(key, plains, associated_data)
        for size, plain in plains.items():
            opened = tink_opens(primitive, sealed.get(size, b""), associated_data)
            tally.check(f"{case}: tink opens {size} bytes of evener", opened == plain)
        sealed = {size: tink_seals(primitive, plain, associated_data) for size, plain in plains.items()}
        opened = evener.open(key, sealed, associated_data)
        for size, plain in plains.items():
            tally.check(f"{case}: evener opens {size} bytes of tink", opened.get(size) == plain)


def spoilt(name, sealed):
    """Changes of a file of three segments, by name."""
    segment = 4096 if "4KB" in name else 1 << 20
    head = header_bytes(name)
    one, two, three = sealed[:segment], sealed[segment : 2 * segment], sealed[2 * segment :]
    flip = lambda place: sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
    return {
        "nothing": b"",
        "header only": sealed[:head],
        "one byte less": sealed[:-1],
        "one byte more": sealed + b"x",
        "without last segment": one + two,
        "without middle segment": one + three,
        "last segment twice": sealed + three,
        "middle segment twice": one + two + two + three,
        "segments swapped": two + one + three,
        "bit of the length byte": flip(0),
        "bit of the salt": flip(1),
        "bit of the nonce": flip(head - 1),
        "bit of segment 0": flip(head),
        "bit of a tag": flip(2 * segment - 1),
        "last bit": flip(len(sealed) - 1),
    }


def refused_by_both(tally, evener, name, key, primitive):
    full = sizes(name)[-2] - 1  # three segments
    sealed = tink_seals(primitive, pattern(full - 1), b"")
    cases = spoilt(name, sealed)
    opened = evener.open(key, cases, b"")
    for case, content in cases.items():
        tally.check(f"{name}: tink refuses {case}", tink_opens(primitive, content, b"") is None)
        tally.check(f"{name}: evener refuses {case}", case not in opened)
    # Tink stops reading at a full segment that is marked as the last.
    behind = {"x": tink_seals(primitive, pattern(full), b"") + b"x"}
    tally.check(f"{name}: evener refuses what stands behind a full last segment", evener.open(key, behind, b"") == {})
    tally.check(f"{name}: evener refuses other associated data", evener.open(key, {"x": sealed}, b"other") == {})


def several_keys(tally, evener, folder):
    """Every enabled key of a keyset that Tink wrote opens, the primary one seals, a disabled one does neither."""
    handles = {name: tink.new_keyset_handle(template) for name, template in TEMPLATES.items()}
    serialize = json_proto_keyset_format.serialize
    written = {name: serialize(handle, secret_key_access.TOKEN) for name, handle in handles.items()}
    keys = [json.loads(text)["key"][0] for text in written.values()]
    joined = {"primaryKeyId": keys[2]["keyId"], "key": keys}
    key = folder / "joined.json"
    key.write_text(json.dumps(joined))
    key.chmod(0o600)
    files = {name: tink_seals(primitive_of(text), b"text", b"") for name, text in written.items()}
    opened = evener.open(key, files, b"")
    for name in TEMPLATES:
        tally.check(f"a keyset of four opens {name}", opened.get(name) == b"text")
    sealed = evener.seal(key, {"x": b"text"}, b"").get("x", b"")
    primary = primitive_of(written["AES256_GCM_HKDF_4KB"])
    tally.check("the primary key seals", tink_opens(primary, sealed, b"") == b"text")
    tally.check("tink opens it with the keyset", tink_opens(primitive_of(json.dumps(joined)), sealed, b"") == b"text")
    keys[0]["status"] = "DISABLED"
    key.write_text(json.dumps(joined))
    opened = evener.open(key, files, b"")
    tally.check("a disabled key opens nothing", set(opened) == set(TEMPLATES) - {"AES128_GCM_HKDF_4KB"})


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    streaming_aead.register()
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        evener = Evener(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        for template in TEMPLATES:
            key = evener.keygen(template)
            primitive = primitive_of(key.read_text())
            both_ways(tally, evener, template, key, primitive)
            refused_by_both(tally, evener, template, key, primitive)
        several_keys(tally, evener, folder)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
