#!/usr/bin/env python3
"""Evener against Google's Tink, both ways.

usage: tink_interop.py EVENER

EVENER is the command to test. Needs what requirements.txt names, for instance:

    python3 -m venv VENV && VENV/bin/pip install -r requirements.txt
    VENV/bin/python tink_interop.py target/release/evener

For every streaming template of Tink and with and without associated data: files of 0 and 1 byte, one byte around each border of
segments, and 10 MiB, sealed by one side and opened by the other; through a pipe, too, where no thread is to be had. Then what both must
refuse, keysets of several keys, of every form, encrypted ones, and their rotation. The last line sums up; the exit status is 0 if nothing failed.
"""

import io
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

import tink
from tink import aead, json_proto_keyset_format, proto_keyset_format, secret_key_access, streaming_aead

TEMPLATES = {
    name: getattr(streaming_aead.streaming_aead_key_templates, name)
    for name in dir(streaming_aead.streaming_aead_key_templates)
    if name.startswith("AES")
}
ASSOCIATED_DATA = [b"", b"bound to this text"]
# Keys that Evener decrypts keysets with, of those that Tink has.
KEY_ENCRYPTION = ["AES128_GCM", "AES256_GCM", "AES256_GCM_RAW", "XCHACHA20_POLY1305", "XCHACHA20_POLY1305_RAW"]


def tag_bytes(name):
    return 32 if "HMAC" in name else 16


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
    first = segment - header_bytes(template) - tag_bytes(template)
    later = segment - tag_bytes(template)
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


def without_threads():
    """Root's processes have no such limit, so another user's has to be had."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


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

    def seal(self, key, files, associated_data, *options):
        return self._process("encrypt", key, files, associated_data, options)

    def open(self, key, files, associated_data, *options):
        return self._process("decrypt", key, files, associated_data, options)

    def process_alone(self, verb, key, content):
        """Through a pipe, as a user who may have one thread; nothing where it fails."""
        command = self.folder / "evener"
        if not command.exists():
            shutil.copy(self.command, command)
            self.folder.chmod(0o755)
        key.chmod(0o644)
        limit = [command, verb, "--key", key, "--quiet", "--workers", "1", "-o", "-", "-"]
        return subprocess.run(limit, input=content, capture_output=True, preexec_fn=without_threads, timeout=600).stdout

    def keyset(self, *arguments):
        """What `evener keyset` prints, None where it refuses."""
        done = subprocess.run([self.command, "keyset", *map(str, arguments)], capture_output=True, timeout=600)
        return done.stdout.decode() if done.returncode == 0 else None

    def _process(self, verb, key, files, associated_data, options):
        """Files by name in, files by name out; what failed is missing."""
        self.runs += 1
        source, target = self.folder / f"in{self.runs}", self.folder / f"out{self.runs}"
        source.mkdir()
        for name, content in files.items():
            (source / name).write_bytes(content)
        bound = ["--associated-data", associated_data.decode()] if associated_data else []
        self._run(verb, "--key", key, "--quiet", *options, *bound, "-o", target, source, may_fail=True)
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


def both_ways_alone(tally, evener, name, key, primitive):
    plain = pattern(sizes(name)[-2])
    sealed = evener.process_alone("encrypt", key, plain)
    tally.check(f"{name}: tink opens what a pipe without threads made", tink_opens(primitive, sealed, b"") == plain)
    opened = evener.process_alone("decrypt", key, tink_seals(primitive, plain, b""))
    tally.check(f"{name}: a pipe without threads opens what tink made", opened == plain)


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
    names = list(TEMPLATES)
    joined = {"primaryKeyId": keys[2]["keyId"], "key": keys}
    key = folder / "joined.json"
    key.write_text(json.dumps(joined))
    key.chmod(0o600)
    files = {name: tink_seals(primitive_of(text), b"text", b"") for name, text in written.items()}
    opened = evener.open(key, files, b"")
    for name in TEMPLATES:
        tally.check(f"a keyset of all opens {name}", opened.get(name) == b"text")
    sealed = evener.seal(key, {"x": b"text"}, b"").get("x", b"")
    primary = primitive_of(written[names[2]])
    tally.check("the primary key seals", tink_opens(primary, sealed, b"") == b"text")
    tally.check("tink opens it with the keyset", tink_opens(primitive_of(json.dumps(joined)), sealed, b"") == b"text")
    keys[0]["status"] = "DISABLED"
    key.write_text(json.dumps(joined))
    opened = evener.open(key, files, b"")
    tally.check("a disabled key opens nothing", set(opened) == set(names[1:]))


def forms(text):
    """A JSON keyset in every form that proto3's mapping allows, by name."""
    key = json.loads(text)
    entry = key["key"][0]
    data = entry["keyData"]
    numbers = {"ENABLED": 1, "SYMMETRIC": 1, "RAW": 3}
    snake = {
        "primary_key_id": key["primaryKeyId"],
        "key": [
            {
                "key_data": {
                    "type_url": data["typeUrl"],
                    "value": data["value"],
                    "key_material_type": data["keyMaterialType"],
                },
                "status": entry["status"],
                "key_id": entry["keyId"],
                "output_prefix_type": entry["outputPrefixType"],
            }
        ],
    }
    number = {
        "primaryKeyId": str(key["primaryKeyId"]),
        "encryptedKeyset": None,
        "key": [
            {
                "keyData": {
                    "typeUrl": data["typeUrl"],
                    "value": data["value"].replace("+", "-").replace("/", "_").rstrip("="),
                    "keyMaterialType": 1,
                },
                "status": numbers[entry["status"]],
                "keyId": f"{entry['keyId']}.0",
                "outputPrefixType": numbers[entry["outputPrefixType"]],
                "comment": {"unknown": [1, None]},
            }
        ],
    }
    return {
        "as Tink writes it": text.encode(),
        "names with underscores": json.dumps(snake).encode(),
        "numbers for names, text for numbers": json.dumps(number).encode(),
        "a byte order mark": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        "UTF-16": text.encode("utf-16"),
    }


def every_form(tally, evener, folder):
    """JSON in every form, and binary: all are the same key."""
    handle = tink.new_keyset_handle(TEMPLATES["AES128_CTR_HMAC_SHA256_4KB"])
    text = json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN)
    cases = forms(text)
    cases["binary"] = proto_keyset_format.serialize(handle, secret_key_access.TOKEN)
    files = {"x": tink_seals(primitive_of(text), b"text", b"")}
    for case, content in cases.items():
        key = folder / "form"
        key.write_bytes(content)
        key.chmod(0o600)
        tally.check(f"a keyset is read: {case}", evener.open(key, files, b"") == {"x": b"text"})


def encrypted_keysets(tally, evener, folder):
    """A keyset that Tink has encrypted is opened, and one that Evener has encrypted is opened by Tink."""
    for name in KEY_ENCRYPTION:
        kek_handle = tink.new_keyset_handle(getattr(aead.aead_key_templates, name))
        kek = folder / f"{name}.kek"
        kek.write_text(json_proto_keyset_format.serialize(kek_handle, secret_key_access.TOKEN))
        kek.chmod(0o600)
        seals = kek_handle.primitive(aead.Aead)
        handle = tink.new_keyset_handle(TEMPLATES["AES256_GCM_HKDF_4KB"])
        primitive = handle.primitive(streaming_aead.StreamingAead)
        files = {"x": tink_seals(primitive, b"text", b"")}
        for form, written in (
            ("JSON", json_proto_keyset_format.serialize_encrypted(handle, seals, b"").encode()),
            ("binary", proto_keyset_format.serialize_encrypted(handle, seals, b"")),
        ):
            key = folder / f"{name}.{form}"
            key.write_bytes(written)
            key.chmod(0o600)
            options = ["--key-encryption", kek]
            opened = evener.open(key, files, b"", *options)
            tally.check(f"a keyset that {name} encrypts is opened, {form}", opened == {"x": b"text"})
            added = evener.keyset("add", key, "--template", "AES128_CTR_HMAC_SHA256_1MB", *options)
            tally.check(f"a key is added to it, {form}", added is not None)
            tally.check(f"and made the primary one, {form}", evener.keyset("promote", key, added.strip(), *options) == "")
            sealed = evener.seal(key, {"x": b"text"}, b"", *options).get("x", b"")
            content = key.read_bytes()
            if form == "JSON":
                parsed = json_proto_keyset_format.parse_encrypted(content.decode(), seals, b"")
            else:
                parsed = proto_keyset_format.parse_encrypted(content, seals, b"")
            opened = tink_opens(parsed.primitive(streaming_aead.StreamingAead), sealed, b"")
            tally.check(f"tink reads the changed keyset and what it sealed, {form}", opened == b"text")


def rotation(tally, evener, folder):
    """A key is added, promoted, the old one disabled; Tink follows each step."""
    key = folder / "rotated.json"
    evener._run("keygen", key, "--template", "AES256_GCM_HKDF_4KB")
    old = evener.seal(key, {"x": b"old"}, b"")["x"]
    added = evener.keyset("add", key).strip()
    sealed = evener.seal(key, {"x": b"still"}, b"")["x"]
    first = json.loads(key.read_text())["key"][0]["keyId"]
    tally.check("the old key seals until another is promoted", json.loads(key.read_text())["primaryKeyId"] == first)
    tally.check("tink opens it", tink_opens(primitive_of(key.read_text()), sealed, b"") == b"still")
    tally.check("the primary key is not disabled", evener.keyset("disable", key, first) is None)
    evener.keyset("promote", key, added)
    new = evener.seal(key, {"x": b"new"}, b"")["x"]
    primitive = primitive_of(key.read_text())
    tally.check("tink opens both", [tink_opens(primitive, x, b"") for x in (old, new)] == [b"old", b"new"])
    evener.keyset("disable", key, first)
    primitive = primitive_of(key.read_text())
    tally.check("tink opens the new one only", [tink_opens(primitive, x, b"") for x in (old, new)] == [None, b"new"])
    tally.check("and so does evener", evener.open(key, {"old": old, "new": new}, b"") == {"new": b"new"})
    tally.check("a key that is not there is refused", evener.keyset("promote", key, 1) is None)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    streaming_aead.register()
    aead.register()
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        evener = Evener(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        for template in TEMPLATES:
            key = evener.keygen(template)
            primitive = primitive_of(key.read_text())
            both_ways(tally, evener, template, key, primitive)
            both_ways_alone(tally, evener, template, key, primitive)
            refused_by_both(tally, evener, template, key, primitive)
        several_keys(tally, evener, folder)
        every_form(tally, evener, folder)
        encrypted_keysets(tally, evener, folder)
        rotation(tally, evener, folder)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
