#!/usr/bin/env python3
"""Figures of the package beside others', both sides of a ratio in turns.

usage: figures.py [--folder FOLDER] [--command EVENER] [--library LIBEVENER] [--gib N] [--rounds N]

Needs the package itself, cryptography and pyrage. FOLDER is where files are made: one in memory, such as /dev/shm. EVENER is the command to
compare with, LIBEVENER the library for C (libevener.so.0), called from as many threads over the same memory. Each row is the median of rounds, with the least and the greatest ratio of a round.
"""

import argparse
import ctypes
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import evener

COUNT, SIZE, THREADS = 4096, 4096, 2


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def row(name, unit, amount, sides, rounds):
    """Runs all sides in turns, another one first in each round; the first of them is ours."""
    for work in sides.values():
        work()
    times, order = {side: [] for side in sides}, list(sides.items())
    for _ in range(rounds):
        for side, work in order:
            times[side].append(timed(work))
        order.append(order.pop(0))
    ours = next(iter(sides))
    print(f"{name}")
    for side, taken in times.items():
        text = f"  {side:28} {amount / statistics.median(taken):10.2f} {unit}"
        if side != ours:
            ratios = [other / own for other, own in zip(taken, times[ours])]
            text += f"   ours {statistics.median(ratios):5.2f} x of it ({min(ratios):.2f} to {max(ratios):.2f})"
        print(text, flush=True)


class CJob(ctypes.Structure):
    """struct evener_job of evener.h."""

    _fields_ = [
        ("session", ctypes.c_void_p), ("src", ctypes.c_void_p), ("src_len", ctypes.c_size_t),
        ("dst", ctypes.c_void_p), ("dst_space", ctypes.c_size_t), ("aad", ctypes.c_void_p), ("aad_len", ctypes.c_size_t),
        ("iv", ctypes.c_ubyte * 16), ("tag", ctypes.c_ubyte * 64), ("user_data", ctypes.c_uint64),
        ("written", ctypes.c_size_t), ("status", ctypes.c_int32), ("reserved0", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64 * 4),
    ]


def by_c(library, algorithm, key, space, ivs):
    """The same burst by evener_crypt, 64 jobs a call, from THREADS threads with a queue each; what is reported."""
    c = ctypes.CDLL(library)
    here, iv_bytes = ctypes.addressof(ctypes.c_char.from_buffer(space)), len(ivs) // COUNT
    runtime, session = ctypes.c_void_p(), ctypes.c_void_p()
    answers = [c.evener_runtime_open(ctypes.byref(runtime), None)]
    answers.append(c.evener_session_open(runtime, ctypes.byref(session), algorithm.encode(), 0, 0, key, len(key)))
    jobs, queues = (CJob * COUNT)(), [ctypes.c_void_p() for _ in range(THREADS)]
    answers += [c.evener_queue_open(runtime, ctypes.byref(queue), 64) for queue in queues]
    assert not any(answers), answers
    for number, job in enumerate(jobs):
        job.session, job.src, job.dst = session, here + number * SIZE, here + number * SIZE
        job.src_len, job.dst_space = SIZE, SIZE
        ctypes.memmove(job.iv, ivs[number * iv_bytes :], iv_bytes)
    places = (ctypes.c_void_p * COUNT)(*(ctypes.addressof(job) for job in jobs))
    step, pool = ctypes.sizeof(ctypes.c_void_p), ThreadPoolExecutor(THREADS)

    def part(number):
        first, many = number * COUNT // THREADS, 64
        for at in range(first, first + COUNT // THREADS, many):
            c.evener_crypt(queues[number], ctypes.byref(places, at * step), many)

    def run():
        list(pool.map(part, range(THREADS)))

    run()
    assert not any(job.status for job in jobs)
    # They live as long as what names them.
    run.jobs = jobs
    return run


def bursts(rounds, library):
    key = os.urandom(16)
    space, iv = bytearray(COUNT * SIZE), os.urandom(16)
    ivs, nonces = iv * COUNT, os.urandom(12 * COUNT)
    cbc, gcm = evener.Session("AES-128-CBC", key), evener.Session("AES-128-GCM", key)
    table = [memoryview(space)[at : at + SIZE] for at in range(0, len(space), SIZE)]
    pages = [bytes(page) for page in table]
    out = bytearray(COUNT * (SIZE + 16))
    outs = [memoryview(out)[at : at + SIZE + 15] for at in range(0, len(out), SIZE + 16)]
    pool = ThreadPoolExecutor(THREADS)

    def halves(work):
        return lambda: list(pool.map(work, [range(part, COUNT, THREADS) for part in range(THREADS)]))

    def cipher_of(numbers):
        for number in numbers:
            encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
            encryptor.update_into(table[number], outs[number])
            encryptor.finalize()

    def aead_of(numbers):
        judge = AESGCM(key)
        return [judge.encrypt(nonces[number * 12 : number * 12 + 12], pages[number], None) for number in numbers]

    in_c = {name: {} for name in ("AES-128-CBC", "AES-128-GCM")}
    if library:
        for name, values in (("AES-128-CBC", ivs), ("AES-128-GCM", nonces)):
            in_c[name] = {f"evener_crypt, {THREADS} threads": by_c(library, name, key, space, values)}
    gigabytes = COUNT * SIZE / 1e9
    row("4096 x 4 KiB AES-128-CBC, encryption", "GB/s", gigabytes, {
        "evener, one buffer in place": lambda: evener.crypt_many(cbc, space, ivs, size=SIZE, in_place=True),
        "evener, a list in place": lambda: evener.crypt_many(cbc, table, ivs, in_place=True),
        "evener, new bytes": lambda: evener.crypt_many(cbc, pages, ivs),
        f"cryptography, {THREADS} threads": halves(cipher_of),
        **in_c["AES-128-CBC"],
    }, rounds)
    row("4096 x 4 KiB AES-128-GCM, encryption", "GB/s", gigabytes, {
        "evener, one buffer in place": lambda: evener.crypt_many(gcm, space, nonces, size=SIZE, in_place=True),
        "evener, a list in place": lambda: evener.crypt_many(gcm, table, nonces, in_place=True),
        "evener, new bytes": lambda: evener.crypt_many(gcm, pages, nonces),
        f"cryptography, {THREADS} threads": halves(aead_of),
        **in_c["AES-128-GCM"],
    }, rounds)


def files(folder, command, gib, rounds):
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    recipient = identity.to_public()
    plain, sealed, theirs, back, copied = (folder / name for name in ["plain", "sealed", "theirs", "back", "copied"])
    (folder / "id").write_text(str(identity))
    (folder / "id").chmod(0o600)
    with open(plain, "wb") as file:
        for _ in range(gib * 1024):
            file.write(os.urandom(1 << 20))
    size = plain.stat().st_size / 1e9
    seal = {
        "evener": lambda: evener.encrypt(plain, sealed, recipient=str(recipient), force=True),
        "pyrage": lambda: pyrage.encrypt_file(str(plain), str(theirs), [recipient]),
    }
    unseal = {
        "evener": lambda: evener.decrypt(sealed, back, identity=folder / "id", force=True),
        "pyrage": lambda: pyrage.decrypt_file(str(theirs), str(back), [identity]),
    }
    # What writing the same bytes takes without any cipher: the bound of both.
    seal["a copy"] = unseal["a copy"] = lambda: shutil.copyfile(plain, copied)
    if command:
        run = lambda *words: subprocess.run([command, *map(str, words)], check=True, capture_output=True)
        seal["the command"] = lambda: run("encrypt", "--force", "-r", recipient, "-o", sealed, plain)
        unseal["the command"] = lambda: run("decrypt", "--force", "-i", folder / "id", "-o", back, sealed)
    row(f"{gib} GiB to age", "GB/s", size, seal, rounds)
    row(f"{gib} GiB from age", "GB/s", size, unseal, rounds)
    reads("age, segments of 64 KiB", sealed.read_bytes(), {"identity": folder / "id"}, rounds)


def reads(name, sealed, keys, rounds):
    """Random reads of 4 KiB from memory."""
    with evener.open(sealed, buffering=0, **keys) as file:
        draw, space = random.Random(1), bytearray(4096)
        places, before = [draw.randrange(file.size - 4096) for _ in range(2000)], file.bytes_read
        each = []
        for _ in range(rounds):
            def some():
                for place in places:
                    file.seek(place)
                    file.readinto(space)
            each.append(len(places) / timed(some))
        opened = (file.bytes_read - before) / rounds / len(places)
        print(f"4 KiB at random places, {name}: {statistics.median(each):.0f} a second, {opened:.0f} bytes opened for each", flush=True)


def tink_reads(folder, command, gib, rounds):
    for template, segment in [("AES256_GCM_HKDF_4KB", "4 KiB"), ("AES256_GCM_HKDF_1MB", "1 MiB")]:
        key = folder / f"{template}.json"
        subprocess.run([command, "keygen", "--template", template, str(key)], check=True, capture_output=True)
        evener.encrypt(folder / "plain", folder / "sealed", key=key, force=True)
        reads(f"Tink, segments of {segment}", (folder / "sealed").read_bytes(), {"key": key}, rounds)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--folder", default="/dev/shm")
    arguments.add_argument("--command")
    arguments.add_argument("--library")
    arguments.add_argument("--gib", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=9)
    given = arguments.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}, evener {evener.__version__}")
    bursts(given.rounds, given.library)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        files(pathlib.Path(folder), given.command, given.gib, max(3, given.rounds // 3))
        if given.command:
            tink_reads(pathlib.Path(folder), given.command, given.gib, 3)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
