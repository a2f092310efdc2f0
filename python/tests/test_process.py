"""The process around it: forks, threads, other interpreters, memory, keys, asyncio."""

import asyncio
import base64
import concurrent.futures
import gc
import json
import os
import subprocess
import sys
import threading

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import evener

from conftest import noise


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


def test_a_forked_child_is_told_so_and_the_parent_goes_on():
    script = """
import os, evener
session = evener.Session("AES-128-CBC", bytes(range(16)))
before = evener.crypt_many(session, [bytes(4096)] * 200, bytes(3200)).outputs
child = os.fork()
if child == 0:
    status = 0
    for call in (
        lambda: evener.crypt_many(session, [bytes(4096)] * 200, bytes(3200)),
        lambda: evener.Session("AES-128-CBC", bytes(16)),
        lambda: evener.encrypt("/dev/null", passphrase="p"),
        lambda: evener.statistics(),
    ):
        try:
            call()
            status = 1
        except RuntimeError as error:
            status |= 0 if "forked" in str(error) else 2
    del session
    os._exit(status)
assert os.waitpid(child, 0)[1] == 0
assert evener.crypt_many(session, [bytes(4096)] * 200, bytes(3200)).outputs == before
"""
    assert run(script).returncode == 0, run(script).stderr


def test_a_child_whose_parent_had_not_used_it_uses_it():
    script = """
import os, evener
child = os.fork()
if child == 0:
    os._exit(0 if evener.hash_many("SHA-256", [b"x"] * 99)[0][:1] == b"\\x2d" else 1)
raise SystemExit(os.waitpid(child, 0)[1])
"""
    assert run(script).returncode == 0


def test_subinterpreters_are_refused_clearly():
    script = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
other = interpreters.create()
try:
    print(interpreters.run_string(other, "import evener"))
except Exception as error:
    print(error)
import evener
"""
    ran = run(script)
    assert ran.returncode == 0 and "subinterpreter" in ran.stdout, (ran.stdout, ran.stderr)


def test_other_threads_run_while_a_burst_does():
    ticks, ended = 0, threading.Event()

    def tick():
        nonlocal ticks
        while not ended.wait(0.001):
            ticks += 1

    space, interval = bytearray(64 << 20), sys.getswitchinterval()
    session, ivs = evener.Session("AES-256-CBC", noise(32)), bytes(16 * 1024)
    ticking = threading.Thread(target=tick)
    # None runs unless the one before lets go by itself.
    sys.setswitchinterval(60)
    try:
        ticking.start()
        before = ticks
        evener.crypt_many(session, space, ivs, size=64 << 10, in_place=True)
        after = ticks
    finally:
        sys.setswitchinterval(interval)
        ended.set()
    ticking.join()
    assert after > before


def test_threads_share_a_session():
    key = noise(32)
    session, judge = evener.Session("AES-256-GCM", key), AESGCM(key)

    def work(number):
        texts = [noise(20_000, number * 100 + at) for at in range(40)]
        ivs = [(number * 100 + at).to_bytes(12, "big") for at in range(40)]
        for _ in range(5):
            done = evener.crypt_many(session, texts, ivs)
            sealed = [out + done.tags[at * 16 : at * 16 + 16] for at, out in enumerate(done.outputs)]
            assert sealed == [judge.encrypt(iv, text, None) for iv, text in zip(ivs, texts)]

    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))


def test_memory_stays_flat_over_many_calls():
    # Calls are many and small; test-full has a million of them.
    calls = int(os.environ.get("EVENER_TEST_CALLS", "20000"))
    session = evener.Session("AES-128-CBC", noise(16))
    spaces, ivs = [bytearray(64), bytearray(4096)], bytes(32)

    def burst(count):
        for _ in range(count):
            evener.crypt_many(session, spaces, ivs, in_place=True)
            evener.Session("AES-128-GCM", ivs[:16])
            try:
                evener.crypt_many(session, [b"short"], ivs[:16])
            except ValueError:
                pass

    burst(2000)
    gc.collect()
    before = resident()
    burst(calls)
    gc.collect()
    assert resident() - before < 4 << 20
    assert sys.getrefcount(session) < 5 and sys.getrefcount(spaces[0]) < 5


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_key_is_gone_from_memory_with_its_session():
    # What is searched for is made there by an operation that leaves no other copy, and the searcher is another process.
    script = """
import os, sys, evener
def key():
    space = bytearray(32)
    for at in range(32):
        space[at] = (at * 37 + 101) & 255
    return space
def wipe(space):
    for at in range(len(space)):
        space[at] = 0
space = key()
session = evener.Session("AES-256-GCM", space)
wipe(space)
evener.crypt_many(session, [bytes(4096)] * 200, bytes(2400))
print("held", flush=True); sys.stdin.readline()
del session
# What is compiled for tests leaves words on a worker's stack, which later bursts write over.
for _ in range(20):
    evener.crypt_many(evener.Session("AES-256-GCM", bytes(32)), [bytes(4096)] * 2000, bytes(24000))
print("gone", flush=True); sys.stdin.readline()
"""
    key = bytes((at * 37 + 101) & 255 for at in range(32))
    found = searched(script, key)
    assert found["held"] > 0, "the search finds nothing where there is something"
    assert found["gone"] == 0


def test_idle_threads_ways_keep_no_key_of_a_session_that_has_gone():
    # Nothing runs after it that would have them look for sessions that have ended.
    script = """
import sys, evener
space = bytearray(32)
for at in range(32):
    space[at] = (at * 37 + 101) & 255
evener.configure(threads=4)
session = evener.Session("AES-256-GCM", space)
for at in range(32):
    space[at] = 0
evener.crypt_many(session, [bytes(65536)] * 400, bytes(4800))
print("held", flush=True); sys.stdin.readline()
del session
print("gone", flush=True); sys.stdin.readline()
"""
    found = searched(script, bytes((at * 37 + 101) & 255 for at in range(32)))
    # A session's own copy, and that of each way.
    assert found["held"] > 1 and found["gone"] == 0, found


@pytest.mark.parametrize("mode", ["rb", "wb"])
def test_a_closed_file_leaves_no_key_in_memory(tmp_path, keyset, mode):
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    handle, text = keyset
    (tmp_path / "key").write_bytes(text)
    with evener.open(tmp_path / "file", "wb", key=text) as file:
        file.write(noise(100_000))
    script = f"""
import sys, evener
file = evener.open({str(tmp_path / "file")!r}, {mode!r}, key={str(tmp_path / "key")!r})
file.write(bytes(100_000)) if file.writable() else file.read()
print("held", flush=True); sys.stdin.readline()
file.close()
print("gone", flush=True); sys.stdin.readline()
"""
    value = base64.b64decode(json.loads(text)["key"][0]["keyData"]["value"])

    def key():
        # A draft's header is written at once; the key of a file follows from its salt, as Tink has it.
        (name,) = [name for name in os.listdir(tmp_path) if name != "key" and (mode == "rb" or name != "file")] or ["file"]
        salt = (tmp_path / name).read_bytes()[1:33]
        return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=b"").derive(value[-32:])

    found = searched(script, key)
    assert found["held"] > 0 and found["gone"] == 0, found


def searched(script, key):
    """How often a key is in the memory of a process at each of two lines that it prints; the searcher is another process."""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        found = {}
        for _ in range(2):
            state = child.stdout.readline().strip()
            key = key() if callable(key) else key
            found[state] = occurrences(child.pid, key)
            child.stdin.write("\n")
            child.stdin.flush()
    return found


def occurrences(process, key):
    count = 0
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, mode = line.split()[:2]
            if "w" not in mode or "[v" in line:
                continue
            start, end = (int(place, 16) for place in span.split("-"))
            memory.seek(start)
            try:
                count += memory.read(end - start).count(key)
            except OSError:
                pass
    return count


def test_awaited_calls_do_the_same_and_the_loop_goes_on():
    from evener import aio

    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        ticking = asyncio.create_task(tick())
        # Of one message, which no lane shortens: some 20 ms each, on a busy machine as well.
        key, texts = noise(32), [noise(16 << 20)]
        session, ivs = evener.Session("AES-256-CBC", key), bytes(16)
        bursts = [aio.crypt_many(session, texts, ivs) for _ in range(4)]
        done = await asyncio.gather(*bursts)
        ticking.cancel()
        # Those that computed on the loop would let it go round once or twice.
        assert ticks > 10
        assert all(one.outputs == evener.crypt_many(session, texts, ivs).outputs for one in done)
        with pytest.raises(ValueError):
            await aio.crypt_many(session, texts, ivs[:-1])

    asyncio.run(main())


def test_a_cancelled_await_ends_after_its_buffers_are_free():
    from evener import aio

    async def main():
        space = bytearray(64 << 20)
        task = asyncio.create_task(
            aio.crypt_many(evener.Session("AES-256-CBC", noise(32)), space, bytes(16 << 10), size=64 << 10, in_place=True)
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0)
        # Who is told twice to stop has buffers in use all the same.
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        space.append(0)

    asyncio.run(main())


def test_a_module_that_is_not_there_is_named():
    script = """
import evener
evener.configure(modules=["hosted:/no/such/socket"])
try:
    evener.Session("SHA-256")
except evener.UnsupportedError as error:
    print(error)
try:
    evener.configure(policy="nonsense"); evener.Session("SHA-256")
except ValueError as error:
    print(error)
evener.configure(threads=1)
evener.Session("SHA-256")
try:
    evener.configure(threads=2)
except RuntimeError as error:
    print(error)
"""
    ran = run(script)
    assert ran.returncode == 0, ran.stderr
    first, second, third = ran.stdout.splitlines()
    assert "/no/such/socket" in first and "nonsense" in second and "before the first" in third


def test_first_sessions_of_several_threads_look_at_the_machine_once(tmp_path):
    script = """
import ctypes, os, struct, threading, evener
libc, cache, count = ctypes.CDLL(None), os.environ["EVENER_CACHE_DIR"], 16
(costs,) = os.listdir(cache) or [None]
watch, opened, closed = libc.inotify_init1(os.O_NONBLOCK), 0x20, 0x10
# With what comes between two of a kind, which would be told as one.
libc.inotify_add_watch(watch, os.fsencode(os.path.join(cache, costs)), opened | closed)
start = threading.Barrier(count)
def first():
    start.wait()
    evener.Session("SHA-256")
threads = [threading.Thread(target=first) for _ in range(count)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(kind == opened for _, kind, _, _ in struct.iter_unpack("iIII", os.read(watch, 4096))))
"""
    cache = {"EVENER_CACHE_DIR": str(tmp_path / "cache")}
    # The costs that each runtime reads when it is opened.
    assert run("import evener; evener.Session('SHA-256')", **cache).returncode == 0
    ran = run(script, **cache)
    assert ran.stdout == "1\n", (ran.stdout, ran.stderr)


def test_a_burst_that_is_to_have_more_threads_than_there_are_queues_is_done_whole():
    script = """
import evener, hashlib
evener.configure(threads=1500)
space = bytes(range(256)) * 8192
# Each job is a part, and all threads are there before the first ends.
digests = evener.hash_many("SHA-256", space, ranges=[(0, len(space))] * 1500)
print(len(digests), set(digests) == {hashlib.sha256(space).digest()})
"""
    ran = run(script)
    assert ran.stdout == "1500 True\n", ran.stderr


@pytest.mark.parametrize("call", ["evener.encrypt({})", "asyncio.run(evener.aio.encrypt({}))"])
def test_an_interrupt_ends_a_run_and_leaves_nothing_half(tmp_path, call):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(8 << 30)
    words = f"{str(tmp_path / 'large')!r}, {str(tmp_path / 'out')!r}, recipient={RECIPIENT!r}"
    script = f"""
import asyncio, evener.aio, signal, threading, os
def interrupt():
    while len(os.listdir({str(tmp_path)!r})) == 1:
        os.sched_yield()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    {call.format(words)}
except KeyboardInterrupt:
    print("interrupted")
"""
    ran = run(script)
    assert ran.stdout == "interrupted\n", ran.stderr
    assert os.listdir(tmp_path) == ["large"]


def test_a_cancelled_run_is_stopped_and_others_hear_of_progress(tmp_path):
    from evener import aio

    async def main():
        with open(tmp_path / "large", "wb") as file:
            file.truncate(8 << 30)
        task = asyncio.create_task(aio.encrypt(tmp_path / "large", tmp_path / "out", recipient=RECIPIENT))
        while len(os.listdir(tmp_path)) == 1:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert os.listdir(tmp_path) == ["large"]
        told = []
        (tmp_path / "small").write_bytes(b"x")
        await aio.encrypt(tmp_path / "small", tmp_path / "out", recipient=RECIPIENT, progress=lambda *row: told.append(row))
        assert told[-1][:2] == (1, 1)

    asyncio.run(main())


def test_other_threads_run_while_a_key_is_read_and_the_first_session_is_made(tmp_path):
    # None runs unless the one before lets go by itself.
    script = f"""
import evener, os, sys, threading, time
sys.setswitchinterval(60)
open({str(tmp_path / "plain")!r}, "wb").close()
os.mkfifo({str(tmp_path / "key")!r})
def works(call):
    def caught():
        try:
            call()
        except evener.InvalidKeyError:
            pass
    return threading.Thread(target=caught)
for call in (
    lambda: evener.encrypt({str(tmp_path / "plain")!r}, {str(tmp_path / "out")!r}, key={str(tmp_path / "key")!r}),
    lambda: evener.open({str(tmp_path / "plain")!r}, key={str(tmp_path / "key")!r}),
    lambda: evener.open({str(tmp_path / "out")!r}, "wb", key={str(tmp_path / "key")!r}),
):
    worker = works(call)
    worker.start()
    time.sleep(0.05)
    with open({str(tmp_path / "key")!r}, "wb") as key:
        key.write(b"no keyset")
    worker.join()
ticks, is_over = 0, threading.Event()
def tick():
    global ticks
    while not is_over.wait(0.001):
        ticks += 1
ticking = threading.Thread(target=tick)
ticking.start()
before = ticks
evener.Session("AES-256-GCM", bytes(32))
after = ticks
is_over.set()
print(after > before)
"""
    ran = run(script, EVENER_CACHE_DIR=str(tmp_path / "cache"))
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


RECIPIENT = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
