"""What a worker does for a shard, and what it is told, without Ray: references to keys, plans of one shard, the command's words and ends."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from evener import ObjectsError, _shards
from evener._shards import AGAIN, DONE, NEVER, Plan, ShardsReport

from conftest import noise

IDENTITY = "AGE-SECRET-KEY-1QQPQ9VKN0DYLRZ8KFRWF3KCTP7S3J3VYJ8ZP9Q9QWJ4XPDQJ3LKQXKQJHN"
KEYSET = '{"primaryKeyId":1,"key":[{"keyData":{"value":"c2VjcmV0"}}]}'

needs_command = pytest.mark.skipif(
    shutil.which("evener") is None, reason="needs evener on the PATH: cargo build -p evener-cli -p evener-objects, PATH=target/debug:$PATH"
)


def test_references_to_keys_become_words_of_the_command():
    words = _shards.key_words({"key": "/keys/k.json", "identity": ["a", "b"], "key_env": "KEY", "key_command": "kms decrypt k", "associated_data": b"t 7"})
    assert words == [
        "--key=/keys/k.json", "--identity=a", "--identity=b", "--key-env=KEY", "--key-command=kms decrypt k", "--associated-data=t 7",
    ]
    assert _shards.key_words({"recipient": "age1x", "key": None, "recipients_file": "r"}) == ["--recipient=age1x", "--recipients-file=r"]
    for none in ({}, {"key": None}, {"associated_data": b"x"}):
        with pytest.raises(ValueError, match="a key is needed"):
            _shards.key_words(none)
    for other in (7, [1], bytearray(b"x")):
        with pytest.raises(TypeError, match="associated_data"):
            _shards.key_words({"key": "k", "associated_data": other})
    with pytest.raises(TypeError, match="passphrase"):
        _shards.key_words({"passphrase": "p"})


@pytest.mark.parametrize(
    "given",
    [
        {"key": KEYSET.encode()},
        {"key": KEYSET},
        {"key": bytearray(KEYSET.encode())},
        {"identity": IDENTITY},
        {"identity": ["file", IDENTITY.lower()]},
        {"recipient": IDENTITY},
        {"recipients_file": f"# made\n{IDENTITY}\n"},
        {"key_env": KEYSET},
        {"key_env": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0cw=="},
        {"key_command": f"echo {IDENTITY}"},
        {"key_command": f"echo '{KEYSET}'"},
    ],
)
def test_a_key_itself_is_refused_and_not_repeated(given):
    with pytest.raises((TypeError, ValueError)) as refused:
        _shards.key_words(given)
    text = str(refused.value).lower()
    assert "wire" in text and not any(secret in text for secret in (IDENTITY.lower(), "c2vjcmv0"))


def written(shards, **more):
    facts = {"evener-plan": 1, "direction": "encrypt", "source": "file:///a", "destination": "file:///b", "salt": "00" * 16, "shards": shards}
    return json.dumps({**facts, **more}).encode()


def test_a_plan_of_one_shard_does_not_grow_and_heavy_shards_go_first():
    shards = [["", 3, 100], ["b", 1, 900_000], ["c/é", 2, 5000], ["d", 40, 5000]]
    plan = Plan(written(shards, ordered=False, suffix=".age"))
    assert (plan.byte_count, plan.by_weight()) == (910_100, [3, 1, 0, 2])
    for number, (before, expected) in enumerate([(0, [0, 1]), (1, [1, 2]), (1, [2, 3]), (1, [3])]):
        text, place = plan.only(number)
        facts = json.loads(text)
        assert place == before
        assert [row[0] for row in facts["shards"]] == [""] * before + [shards[one][0] for one in expected]
        assert facts["shards"][place] == shards[number]
        assert (facts["ordered"], facts["suffix"], facts["salt"]) == (False, ".age", "00" * 16)
    many = Plan(written([["" if at == 0 else f"{at:07}", 1, 1] for at in range(100_000)]))
    assert len(many.only(70_000)[0]) < 400
    for nonsense in (b"", b"{}", b"[]", written([["", "x", 0]]), written([], **{"evener-plan": 3}), written([], ranges=[["a", 1]])):
        with pytest.raises(ValueError):
            Plan(nonsense)


def test_a_plan_of_one_range_has_its_object_alone_and_names_leave_out_what_is_cut_among_them():
    ranges = [["a", 900_000, '"1"', 3], ["c", 500_001, '"2"', 2], ["d", 10, '"3"', 2]]
    plan = Plan(written([["", 3, 1000], ["b", 1, 800_000]], ranges=ranges, **{"evener-plan": 2}))
    assert (len(plan), plan.byte_count, sum(plan.sizes)) == (9, 900_000 + 500_001 + 10 + 801_000, plan.byte_count)
    # Of ranges a third or half of the object counts.
    assert plan.by_weight() == [1, 2, 3, 4, 5, 6, 0, 7, 8]
    places = []
    for number in range(len(plan)):
        text, place = plan.only(number)
        alone = json.loads(text)
        places.append((alone.get("ranges", []), len(alone["shards"]), place))
        assert alone["evener-plan"] == 2 and len(text) < 400
    one, two, three = [[row] for row in ranges]
    assert places == [(one, 2, 0), (two + three, 2, 1), (one, 0, 0), (one, 0, 1), (one, 0, 2), (two, 0, 0), (two, 0, 1), (three, 0, 0), (three, 0, 1)]
    with pytest.raises(IndexError):
        plan.only(9)


def test_a_plan_of_the_same_places_keeps_its_random_number():
    earlier = Plan(written([["", 1, 1]], salt="11" * 16))
    for source, salt in [("file:///a", "11" * 16), ("file:///c", "22" * 16)]:
        plan = Plan(written([["", 1, 1]], source=source, salt="22" * 16))
        plan.keep_salt(earlier)
        assert json.loads(plan.text)["salt"] == salt


def test_a_plan_is_written_over_a_plan_of_the_same_places_alone(tmp_path):
    file, link = tmp_path / "plan.json", tmp_path / "link"
    link.symlink_to("plan.json")
    shards = [["", 1, 1]]
    _shards.keep_plan(Plan(written(shards, salt="11" * 16)), str(file))
    # By other names of the places, and by a link, which stays one.
    for source, name in [("file:///a/", file), ("file:///x/../a", link)]:
        _shards.keep_plan(Plan(written(shards, source=source, salt="22" * 16)), str(name))
        assert json.loads(file.read_bytes())["salt"] == "11" * 16
    assert link.is_symlink()
    for text in (b"AGE-SECRET-KEY-", written(shards, source="file:///c"), written(shards, **{"evener-plan": 9}), b"{}"):
        file.write_bytes(text)
        with pytest.raises(FileExistsError, match="not written over"):
            _shards.keep_plan(Plan(written(shards)), str(file))
        with pytest.raises(FileExistsError):
            _shards.earlier_plan(str(file), "/a", "file:///b")
        assert file.read_bytes() == text
    file.write_bytes(b"")
    _shards.keep_plan(Plan(written(shards)), str(file))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "plan.json"], "no draft is left"
    (tmp_path / "usual").write_bytes(b"")
    assert file.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_place_with_credentials_is_refused_before_it_goes_over_the_wire_and_not_repeated():
    for text in (
        "s3://user:secret@b/run", "s3://secret@b/run", "az://c:secret@b/run", "az://?secret", "az://c/run?sig=secret", "s3://b/run#3secret",
        "s3://AKIA:secret/cd@b/run", "s3://AKIA:se/secret@x@b/run", "https://AKIA:secret/cd@b.s3.eu-central-1.amazonaws.com/run",
        "https://user:secret@b.s3.amazonaws.com/run",
    ):
        with pytest.raises(ValueError) as refused:
            _shards.place(text)
        assert "secret" not in str(refused.value)
    for text in ("s3://b/run%233", "s3://b/me@home:1/x", "az://c@account.blob.core.windows.net/x", "https://127.0.0.1:9000/b/x", "/data"):
        assert _shards.place(text) == text
    assert _shards.place("data") == os.path.abspath("data")


def script(folder, text):
    path = folder / "command"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_how_a_shard_ends_is_what_its_report_and_status_say(tmp_path):
    def ended(text):
        return _shards.run_shard(script(tmp_path, text), written([["", 1, 1]]), 0, ["--key=k"])

    totals = '{"shard":0,"objects":2,"done":1,"failed":1,"exit_status":%d}'
    failed = '{"object":"a \\"outcome\\" b","outcome":"failed","error":"damaged","try_again":false}'
    done = '{"object":"{\\"shard\\"","outcome":"done"}'
    for status in (AGAIN, NEVER):
        one = ended(f"printf '%s\\n' '{done}' '{failed}' '{totals % status}'; exit {status}")
        assert (one.status, one.failed, one.totals["done"], one.reason) == (status, {'a "outcome" b': "damaged"}, 1, "")
    # Where no report came: what it said, or how it ended, and nothing of what others said there.
    for text, status, reason in [
        ("echo kms: secret >&2; echo evener: no such plan >&2; exit 2", NEVER, "no such plan"),
        ("echo 'error: unexpected argument' >&2; exit 2", NEVER, "unexpected argument"),
        ("exit 1", AGAIN, "the command ended with 1 and did not say why"),
        ("exit 101", AGAIN, "the command ended with 101 and did not say why"),
        ("kill -9 $$", AGAIN, "the command ended by signal 9 and did not say why"),
        ("exit 0", AGAIN, "the command ended with 0 and did not say why"),
    ]:
        assert ended(text) == (status, {}, {}, reason)
    # Who is killed while it writes its report has none, and is tried again; what it said of objects before is said.
    for cut in (totals % 0, failed):
        one = ended(f"printf '%s\\n' '{failed}'; printf %s '{cut[:25]}'; kill -9 $$")
        assert one == (AGAIN, {}, {'a "outcome" b': "damaged"}, "the command ended by signal 9 and did not say why")
    one = ended(f"printf %s '{failed[:-9]}'; exit 1")
    assert one == (AGAIN, {}, {}, "the command ended with 1 and did not say why")
    # More than pipes hold goes into both of them.
    one = ended(f"head -c 1000000 /dev/zero | tr '\\0' '\\n' >&2; head -c 1000000 /dev/zero | tr '\\0' '\\n'; echo '{totals % 0}'")
    assert one.status == DONE
    absent = _shards.run_shard(str(tmp_path / "absent"), b"", 0, [])
    assert absent.status == NEVER and "absent is no program on" in absent.reason
    assert _shards.make_plan(str(tmp_path / "absent"), []).status == NEVER
    said = ended('echo "evener: $*" >&2; cat >&2; exit 2').reason
    assert said == "run-shard /dev/stdin 0 --json=- --quiet --with-parent --key=k"


@needs_command
def test_shards_by_themselves_are_those_of_the_whole_plan(tmp_path, age_keys, identity):
    import pyrage

    tree = {f"{'abc'[number % 3]}/{number:03}": noise(number * 37, number) for number in range(60)}
    for name, text in tree.items():
        (tmp_path / "plain" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plain" / name).write_bytes(text)
    planned = _shards.make_plan(None, ["--shards=7", "--", str(tmp_path / "plain"), str(tmp_path / "sealed")])
    assert (planned.status, planned.reason) == (DONE, "")
    plan = Plan(planned.text)
    assert len(plan.shards) == 7
    for number, (_, objects, _) in enumerate(plan.shards):
        one = _shards.run_shard(None, *plan.only(number), [f"--recipient={age_keys[0]['recipient']}"])
        assert (one.status, one.totals["done"]) == (DONE, objects)
    # The whole plan finds each of them done: they carry its marks.
    (tmp_path / "plan.json").write_bytes(plan.text)
    for number, (_, objects, _) in enumerate(plan.shards):
        words = ["evener", "run-shard", "plan.json", str(number), "--json", "-", "-q", "-r", age_keys[0]["recipient"]]
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
        assert json.loads(ran.stdout.splitlines()[-1])["already_done"] == objects
    for name, text in tree.items():
        assert pyrage.decrypt((tmp_path / "sealed" / name).read_bytes(), [identity]) == text
    refused = _shards.make_plan(None, ["--shards=7", "--", str(tmp_path / "none"), str(tmp_path / "sealed")])
    assert refused.status == NEVER and "none" in refused.reason


def test_the_error_of_a_run_goes_to_other_processes():
    import pickle

    report = ShardsReport(2, 1, 0, {"a": "damaged"}, {4: "no key"}, 10, 20, 5, 5, 0.1, b"{}")
    error = pickle.loads(pickle.dumps(ObjectsError("one", report)))
    assert (str(error), error.failed, error.failed_shards) == ("one", {"a": "damaged"}, {4: "no key"})


def test_without_ray_the_module_says_how_it_is_had():
    script = "import sys; sys.modules['ray'] = None\ntry:\n    import evener.ray\nexcept ImportError as error:\n    print(error)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ))
    assert ran.stdout == "evener.ray needs Ray: pip install 'evener[ray]', or ray beside the package\n", ran.stderr
