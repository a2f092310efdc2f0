"""Shards on a cluster of Ray's: several raylets on this machine, each with workers of its own. Judges are pyrage, Tink and the original trees."""

import json
import os
import pathlib
import shutil
import signal
import tempfile
import threading
import time

import pytest

ray = pytest.importorskip("ray", reason="needs Ray: VENV/bin/pip install ray")
if shutil.which("evener") is None:
    pytest.skip(
        "needs evener on the PATH: cargo build -p evener-cli -p evener-objects, PATH=target/debug:$PATH", allow_module_level=True
    )

from ray.cluster_utils import Cluster

import evener.ray
from evener import ObjectsError

from conftest import noise, shown_and_printed

#: How often the test kills a node.
KILLS = int(os.environ.get("EVENER_TEST_KILLS", "2"))


@pytest.fixture(scope="module")
def nodes():
    """A head that works on nothing, and two nodes of one task each. What dies is missed soon."""
    # Ray's sockets lie below it, and their names may have 107 bytes.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="er-", dir="/tmp"))
    soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 6}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray takes a machine's own address for loopback, unless it is told that clusters of several machines are not meant.
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": soon}
        cluster = Cluster(initialize_head=True, head_node_args={**head, **ALL_NODES})
        nodes = Nodes(cluster, folder)
        try:
            nodes.add()
            nodes.add()
            ray.init(address=cluster.address, _node_ip_address="127.0.0.1", log_to_driver=False)
            yield nodes
        finally:
            ray.shutdown()
            cluster.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


ALL_NODES = {"object_store_memory": 80 << 20, "node_ip_address": "127.0.0.1"}


class Nodes:
    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        self.all = []

    def add(self):
        self.all.append(self.cluster.add_node(num_cpus=1, **ALL_NODES))

    def raylets(self):
        """Numbers of the processes that are raylets of nodes and the head."""
        infos = [node.all_processes["raylet"] for node in [self.cluster.head_node, *self.all]]
        return [info[0].process.pid for info in infos]

    def kill_one(self):
        """Ends the oldest node as if its plug were pulled: the raylet, its workers, and what they started."""
        node = self.all.pop(0)
        doomed = with_children(node.all_processes["raylet"][0].process.pid)
        for process in doomed:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.cluster.remove_node(node, allow_graceful=False)


def with_children(process):
    """A process of ours and all below it."""
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents.setdefault(int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]), []).append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def grown(folder, count, seed=1):
    """A tree of objects, one of them in parts."""
    tree = {f"year={2000 + number % 7}/part-{number:04}": noise(number * 97 % 60_000, seed * 1000 + number) for number in range(count)}
    tree["large"] = noise(9_000_000, seed)
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
    return tree


def read(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def inodes(folder):
    return {str(path): path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def key_file(tmp_path, keyset):
    path = tmp_path / "key.json"
    path.write_bytes(keyset[1])
    path.chmod(0o600)
    return path


@pytest.fixture
def opens(tink_streaming, keyset):
    """What Tink makes of an object."""
    import io

    primitive = keyset[0].primitive(tink_streaming.StreamingAead)

    def opened(sealed):
        with primitive.new_decrypting_stream(io.BytesIO(sealed), b"") as stream:
            return stream.read()

    return opened


def script(folder, text):
    path = folder / "command"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def counted(folder, nodes, text, shards, **more):
    """Runs a plan of so many shards of one object by a script; how often it was started for each."""
    starts = folder / "starts"
    starts.mkdir()
    # The shard's name, which is where it begins, stands in the plan of it alone.
    head = f"""name=$(sed -n 's/.*\\["\\(s[0-9]*\\)", 1, 1\\].*/\\1/p'); name=${{name:-first}}
echo >>{starts}/$name; tries=$(grep -c '' {starts}/$name)
report() {{ printf '{{"object":"%s/x","outcome":"%s","error":"why"}}\\n' $name $1
printf '{{"shard":1,"objects":1,"done":%d,"already_done":0,"failed":%d,"bytes_in":%d,"bytes_out":0,"exit_status":%d}}\\n' $2 $3 $2 $4; exit $4; }}
"""
    cuts = [["", 1, 1], *([f"s{number}", 1, 1] for number in range(11, 10 + shards))]
    plan = {"evener-plan": 1, "direction": "encrypt", "source": "file:///a", "destination": "file:///b", "salt": "0" * 32, "shards": cuts}
    try:
        return evener.ray.run(json.dumps(plan).encode(), command=script(folder, head + text), key="k", **more), starts
    except ObjectsError as error:
        return error, starts


def test_a_tree_goes_there_and_back_and_the_same_call_finds_it_done(nodes, tmp_path, age_keys, identity):
    import pyrage

    tree = grown(tmp_path / "plain", 80)
    (tmp_path / "id").write_text(str(identity))
    told = []
    call = dict(plan=tmp_path / "plan.json", shards=6, suffix=".age", recipient=age_keys[0]["recipient"])
    report = evener.ray.encrypt(tmp_path / "plain", tmp_path / "sealed", progress=lambda *all: told.append(all), **call)
    assert (report.objects, report.done, report.already_done, report.failed) == (81, 81, 0, {})
    assert (report.shards, report.starts, report.bytes_in) == (6, 6, sum(map(len, tree.values())))
    assert told == sorted(told) and told[0] == (0, 0, report.bytes_in) and told[-1] == (81, report.bytes_in, report.bytes_in)
    sealed = read(tmp_path / "sealed")
    assert sorted(sealed) == sorted(f"{name}.age" for name in tree)
    assert all(pyrage.decrypt(sealed[f"{name}.age"], [identity]) == text for name, text in tree.items())
    before = inodes(tmp_path / "sealed")
    again = evener.ray.encrypt(tmp_path / "plain", tmp_path / "sealed", **call)
    once_more = evener.ray.run(report.plan, recipient=age_keys[0]["recipient"])
    assert [(one.done, one.already_done) for one in (again, once_more)] == [(0, 81)] * 2
    assert inodes(tmp_path / "sealed") == before
    back = evener.ray.decrypt(tmp_path / "sealed", tmp_path / "back", suffix=".age", identity=tmp_path / "id")
    assert back.done == 81 and read(tmp_path / "back") == tree
    # Both nodes have worked, eight shards for each.
    assert back.shards == 16


def files_with(needles, nodes):
    """Files of the session in which one of these bytes stands."""
    files = [path for path in nodes.folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(needle in path.read_bytes() for needle in needles)]


def places_of(needles, nodes):
    """Where one of these bytes stands: files of the session (logs among them), the shared memory of object stores, and the memory of every
    process of Ray's but this one.
    """
    found = files_with(needles, nodes)
    head = nodes.cluster.head_node.all_processes
    processes = {head["gcs_server"][0].process.pid}.union(*(with_children(raylet) for raylet in nodes.raylets()))
    for process in processes:
        try:
            maps = pathlib.Path(f"/proc/{process}/maps").read_text().splitlines()
            with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
                for line in maps:
                    span, mode, _, _, _, *name = line.split()
                    # Code of libraries is not theirs to write; plasma is, and is shared.
                    if "w" not in mode or name[:1] == ["[vvar]"]:
                        continue
                    start, end = (int(place, 16) for place in span.split("-"))
                    memory.seek(start)
                    held = b""
                    while start < end:
                        try:
                            part = memory.read(min(16 << 20, end - start))
                        except OSError:
                            break
                        if not part:
                            break
                        if any(needle in held + part for needle in needles):
                            found.append(f"memory of {process}: {line}")
                            break
                        held, start = part[-128:], start + len(part)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def test_no_key_is_in_what_ray_keeps_whether_from_a_file_a_variable_or_a_command(nodes, tmp_path, key_file, keyset, opens):
    import base64

    text = json.loads(keyset[1])["key"][0]["keyData"]["value"]
    raw = base64.b64decode(text)[-32:]
    forms = [text.encode(), raw, raw.hex().encode(), base64.b64encode(raw)[:40]]
    tree = grown(tmp_path / "plain", 20)
    # In a wrapper, for a variable that a raylet has stands in the memory of its workers, rightly.
    wrapped = script(tmp_path, f'export PLANTED="$(cat {key_file})"; exec evener "$@"')
    for number, (keys, command) in enumerate(
        [({"key": key_file}, None), ({"key_command": f"cat {key_file}; echo a secret word >&2"}, None), ({"key_env": "PLANTED"}, wrapped)]
    ):
        sealed = tmp_path / f"sealed-{number}"
        report = evener.ray.encrypt(tmp_path / "plain", sealed, shards=3, command=command, **keys)
        assert report.done == 21 and opens(read(sealed)["large"]) == tree["large"]
    # One that fails by its key, so that errors are kept too.
    (tmp_path / "bad.json").write_bytes(keyset[1][:-20])
    with pytest.raises(ObjectsError) as failed:
        evener.ray.run(report.plan, key=tmp_path / "bad.json")
    assert not any(form.decode(errors="ignore") in str(failed.value) for form in forms[::2])
    assert places_of(forms, nodes) == []
    # What a key's command says beside the key passes through the memory of a worker, and stays nowhere.
    assert files_with([b"a secret word"], nodes) == [] and "a secret word" not in str(failed.value)

    # The search finds what does pass: an object that Ray keeps, a line that a task prints, and its argument.
    kept = b"that is kept by Ray "
    reference = ray.put(kept * 20_000)
    assert any("memory of" in place for place in places_of([kept * 5], nodes))
    del reference

    @ray.remote(num_cpus=1)
    def task(word):
        print("printed " + word, flush=True)
        time.sleep(1)

    running = task.remote("by-a-task-of-ours")
    time.sleep(0.8)
    assert any(place.startswith("memory of") for place in places_of([b"by-a-task-of-ours"], nodes))
    ray.get(running)
    assert any("logs" in place for place in places_of([b"printed by-a-task-of-ours"], nodes))


def test_a_key_in_a_runtime_environment_is_refused(nodes, tmp_path, keyset):
    for variables, keys in [({"KEY": "x"}, {"key_env": "KEY"}), ({"OTHER": keyset[1].decode()}, {"key": "k"})]:
        with pytest.raises(ValueError, match="runtime_env"):
            evener.ray.run(b"{}", ray_options={"runtime_env": {"env_vars": variables}}, **keys)


def test_objects_that_fail_are_named_all_others_are_done_and_nothing_is_tried_for_nothing(nodes, tmp_path, key_file):
    tree = grown(tmp_path / "plain", 40)
    evener.ray.encrypt(tmp_path / "plain", tmp_path / "sealed", shards=4, key=key_file)
    bad = ["large", "year=2001/part-0001", "year=2003/part-0010"]
    for name in bad:
        path = tmp_path / "sealed" / name
        sealed = bytearray(path.read_bytes())
        sealed[-1] ^= 1
        path.write_bytes(sealed)
    with pytest.raises(ObjectsError) as failed:
        evener.ray.decrypt(tmp_path / "sealed", tmp_path / "back", shards=4, key=key_file)
    error = failed.value
    assert sorted(error.failed) == bad and all(name in str(error) for name in bad)
    assert str(error).startswith("3 of 41 objects failed:")
    assert (error.report.done, error.report.starts, error.failed_shards) == (38, 4, {})
    assert read(tmp_path / "back") == {name: text for name, text in tree.items() if name not in bad}
    told = evener.ray.run(error.report.plan, key=key_file, check=False)
    assert (sorted(told.failed), told.already_done) == (bad, 38)


def test_a_shard_is_tried_again_where_that_helps_and_only_there(nodes, tmp_path, monkeypatch):
    monkeypatch.setattr(evener.ray, "_PAUSE_S", 0.05)
    text = """case $name-$tries in
s11-1) report failed 0 1 1 ;;
s12-1) exit 1 ;;
s13-1) kill -9 $$ ;;
s14-1) kill -9 $PPID; sleep 1; exit 9 ;;
s15-*) report failed 0 1 1 ;;
s16-*) report failed 0 1 2 ;;
s17-*) echo evener: no such key >&2; exit 2 ;;
*) report done 1 0 0 ;;
esac"""
    error, starts = counted(tmp_path, nodes, text, 8, retries=2)
    tries = {path.name: len(path.read_text()) for path in starts.iterdir()}
    assert tries == {"first": 1, "s11": 2, "s12": 2, "s13": 2, "s14": 2, "s15": 3, "s16": 1, "s17": 1}
    assert error.failed == {"s15/x": "why", "s16/x": "why"} and error.failed_shards == {7: "no such key"}
    assert (error.report.done, error.report.objects, error.report.bytes_in) == (5, 7, 5)
    # Ray starts one whose worker died by itself, beside what is counted here.
    assert error.report.starts == sum(tries.values()) - 1


def test_a_worker_that_dies_at_every_try_is_named_in_the_end(nodes, tmp_path):
    error, starts = counted(tmp_path, nodes, "[ $name = s11 ] || report done 1 0 0; kill -9 $PPID; sleep 1", 3, retries=1)
    assert list(error.failed_shards) == [1] and "its worker did not end it" in error.failed_shards[1]
    assert (error.report.done, (starts / "s11").read_text()) == (2, "\n\n")


def test_no_more_tasks_are_with_ray_than_may_be(nodes, tmp_path, monkeypatch):
    flying, wait = [], ray.wait
    monkeypatch.setattr(evener.ray._ray, "wait", lambda tasks, **how: (flying.append(len(tasks)), wait(tasks, **how))[1])
    report, starts = counted(tmp_path, nodes, "report done 1 0 0", 30, in_flight=3)
    assert (report.done, max(flying)) == (30, 3)
    # Unless told otherwise two for each that can run.
    flying.clear()
    shutil.rmtree(starts)
    report, _ = counted(tmp_path, nodes, "report done 1 0 0", 30)
    assert (report.done, max(flying)) == (30, 4)


def test_what_the_callback_raises_stops_all_shards(nodes, tmp_path):
    def stop(*_):
        if (tmp_path / "runs").exists():
            raise InterruptedError("enough")

    text = f"echo $$ >>{tmp_path}/runs; exec sleep 600"
    with pytest.raises(InterruptedError, match="enough"):
        counted(tmp_path, nodes, text, 6, progress=stop)
    for process in map(int, (tmp_path / "runs").read_text().split()):
        until(lambda: not pathlib.Path(f"/proc/{process}/cmdline").exists() or b"600" not in pathlib.Path(f"/proc/{process}/cmdline").read_bytes())


def until(is_so, seconds=60):
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() - start < seconds, "it never was"
        time.sleep(0.01)


def test_without_a_terminal_a_line_tells_how_far_it_is(nodes, tmp_path, capsys):
    counted(tmp_path, nodes, "report done 1 0 0", 3, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["evener: 0 objects, 0.00 of 0.00 GB,   0%", "evener: 3 objects, 0.00 of 0.00 GB, 100%"]


@pytest.mark.parametrize("number", range(KILLS))
def test_a_node_that_is_killed_in_mid_run_leaves_the_tree_as_one_machine_makes_it(nodes, tmp_path, key_file, opens, number):
    tree = grown(tmp_path / "plain", 120, seed=number)
    source, call = tmp_path / "plain", evener.ray.encrypt
    if number % 2:
        # What is decrypted is byte for byte what one machine makes; what is encrypted has random values in it.
        evener.encrypt(tmp_path / "plain", tmp_path / "between", key=key_file)
        source, call = tmp_path / "between", evener.ray.decrypt
    made = tmp_path / "made"
    # A shard takes a moment, so that a node is in the middle of one; and what was killed is not known before.
    slow = script(tmp_path, '[ "$1" = plan ] || sleep 0.2; exec evener "$@"')
    killed = {}

    def kill():
        until(lambda: made.exists() and sum(1 for path in made.rglob("*") if path.is_file()) > 20 + number)
        nodes.kill_one()
        killed["at"] = sum(1 for path in made.rglob("*") if path.is_file())

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        report = call(source, made, shards=24, command=slow, transfers=1, key=key_file)
    finally:
        killer.join()
        # Ray starts one in a main thread only.
        nodes.add()
    assert killed["at"] < len(tree), "it came too late"
    assert (report.objects, report.done + report.already_done, report.failed) == (121, 121, {})
    files = read(made)
    assert sorted(files) == sorted(tree)
    assert {name: text if number % 2 else opens(text) for name, text in files.items()} == tree
    # Each once: there is nothing left to do, and nothing is made again.
    before = inodes(made)
    again = evener.ray.run(report.plan, key=key_file)
    assert (again.already_done, inodes(made)) == (121, before)


def test_examples_of_the_guide_print_what_stands_below_them(nodes, tmp_path, monkeypatch, key_file):
    monkeypatch.chdir(tmp_path)
    grown(tmp_path / "plain", 20)
    page = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "ray.md"
    assert shown_and_printed(page.read_text().replace("/keys/key.json", str(key_file))) == 2
