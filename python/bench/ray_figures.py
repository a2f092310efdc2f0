#!/usr/bin/env python3
"""Figures of shards on Ray: beside `xargs -P`, and over many nodes whose stores are slow.

usage: ray_figures.py [--folder FOLDER] [--gib N] [--objects N] [--rounds N] [--nodes 1,4,16,64] [--seconds N] [beside-xargs] [scale] [plan]

Needs the package, Ray, and `evener` on the PATH. FOLDER is where trees are made: one in memory, such as /dev/shm.

beside-xargs: the shards of one plan by Ray, with two workers, and by `xargs -P2`, in turns; Ray has been started and its workers have worked before.
scale: so many raylets of one task each, up to 16, and more tasks on each beyond; a shard takes its bytes over the rate of a store, whatever the
machine is: the true command does it, then waits. Each task more has as many objects more, so that time would be the same if nothing were lost.
plan: what a plan takes.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# Before Ray is loaded: a machine's own address would stand for loopback, where it has one.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

import ray
from ray.cluster_utils import Cluster

import evener.ray

TRANSFERS = 4


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def tree(folder, sizes, seed=1):
    draw = random.Random(seed)
    text = draw.randbytes(max(sizes))
    for number, size in enumerate(sizes):
        path = folder / f"part={number % 50:02}" / f"{number:06}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text[:size])


def cluster(raylets, cpus):
    """Raylets of so many tasks each, and a head that works on nothing; all workers have been started."""
    all_nodes = {"object_store_memory": 80 << 20, "node_ip_address": "127.0.0.1"}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **all_nodes})
    for _ in range(raylets):
        made.add_node(num_cpus=cpus, **all_nodes)
    ray.init(address=made.address, _node_ip_address="127.0.0.1", log_to_driver=False)

    @ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
    def begin():
        import evener._shards

        time.sleep(3)
        return os.getpid()

    workers = set()
    while len(workers) < raylets * cpus:
        workers |= set(ray.get([begin.remote() for _ in range(raylets * cpus)]))
    return made


def end(made):
    ray.shutdown()
    made.shutdown()


def beside_xargs(folder, given, key):
    size = (given.gib << 30) // given.objects
    tree(folder / "plain", [size] * given.objects)
    planned = subprocess.run(
        ["evener", "plan", "-q", "--shards", "16", "-o", "-", folder / "plain", folder / "sealed"], check=True, capture_output=True
    ).stdout
    (folder / "plan.json").write_bytes(planned)
    words = ["seq 0 15 | xargs -P2 -I{} evener run-shard plan.json {} -q --transfers", str(TRANSFERS), "--key", str(key)]
    sides = {
        "ray": lambda: evener.ray.run(planned, key=key, transfers=TRANSFERS),
        "xargs -P2": lambda: subprocess.run(["sh", "-c", " ".join(words)], cwd=folder, check=True),
    }
    made = cluster(2, 1)
    times = {side: [] for side in sides}
    for round in range(given.rounds + 1):
        for side, work in sides.items():
            shutil.rmtree(folder / "sealed", ignore_errors=True)
            taken = timed(work)
            count = sum(1 for path in (folder / "sealed").rglob("*") if path.is_file())
            assert count == given.objects, f"{side} made {count}"
            # The first round fetches programs and memory.
            if round:
                times[side].append(taken)
                print(f"  {side:10} {taken:7.2f} s", flush=True)
    end(made)
    ratios = [one / other for one, other in zip(times["ray"], times["xargs -P2"])]
    print(f"{given.gib} GiB in {given.objects} objects, 16 shards, 2 workers: ray over xargs -P2, time: ", end="")
    print(f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) of {given.rounds} rounds", flush=True)


SLOW = """#!/bin/sh
# The command, at a store of RATE bytes a second.
[ "$1" = run-shard ] || exec evener "$@"
report=$(evener "$@"); status=$?
printf '%s\\n' "$report"
read_bytes=$(printf '%s' "$report" | tail -n 1 | sed 's/.*"bytes_in":\\([0-9]*\\).*/\\1/')
ms=$((read_bytes * 1000 / RATE))
sleep $((ms / 1000)).$(printf %03d $((ms % 1000)))
exit $status
"""


def scale(folder, given, key):
    base = None
    for nodes in map(int, given.nodes.split(",")):
        draw = random.Random(nodes)
        sizes = [min(200_000, int(draw.lognormvariate(8.7, 0.8))) for _ in range(200 * nodes)]
        tree(folder / f"plain-{nodes}", sizes)
        rate = sum(sizes) // nodes // given.seconds
        command = folder / f"slow-{nodes}"
        command.write_text(SLOW.replace("RATE", str(rate)))
        command.chmod(0o755)
        raylets = min(16, nodes)
        made = cluster(raylets, nodes // raylets)
        report = evener.ray.encrypt(folder / f"plain-{nodes}", folder / f"sealed-{nodes}", command=str(command), key=key)
        end(made)
        assert report.done == len(sizes) and not report.failed
        # The store's own part: what one task would take if it had nothing to do but wait for bytes.
        floor = report.bytes_in / rate / nodes
        base = base or report.seconds
        size = len(report.plan) * 1000 / report.objects
        print(
            f"{nodes:3} tasks at once on {raylets} raylets: {report.objects} objects, {report.shards} shards, {report.seconds:.1f} s, "
            f"{floor / report.seconds:.3f} of the stores' rate, {base / report.seconds:.3f} of linear from the first row; "
            f"plan {len(report.plan)} bytes, {size:.0f} for 1000 objects; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def plan_bytes(folder):
    """A plan of many objects, without the objects: their names stand in a directory of empty files."""
    for number in range(100_000):
        path = folder / "many" / f"year={2000 + number % 20}" / f"day={number // 20 % 365:03}"
        path.mkdir(parents=True, exist_ok=True)
        (path / f"part-{number:08}.parquet").touch()
    for shards in (64, 512, 4096):
        words = ["evener", "plan", "-q", "--shards", str(shards), "-o", "-", folder / "many", folder / "sealed-many"]
        text = subprocess.run(words, check=True, capture_output=True).stdout
        assert len(json.loads(text)["shards"]) == shards
        print(f"plan of 100000 objects in {shards} shards: {len(text)} bytes, {len(text) / 100:.0f} for 1000 objects", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", nargs="*", default=["beside-xargs", "scale", "plan"])
    arguments.add_argument("--folder", default="/dev/shm")
    arguments.add_argument("--gib", type=int, default=2)
    arguments.add_argument("--objects", type=int, default=2000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--nodes", default="1,4,16,64")
    arguments.add_argument("--seconds", type=int, default=40)
    given = arguments.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}, Ray {ray.__version__}, evener {evener.__version__}")
    for what in given.what:
        with tempfile.TemporaryDirectory(dir=given.folder) as name:
            folder = pathlib.Path(name)
            key = folder / "key.json"
            subprocess.run(["evener", "keygen", key], check=True, capture_output=True)
            if what == "beside-xargs":
                beside_xargs(folder, given, key)
            elif what == "scale":
                scale(folder, given, key)
            elif what == "plan":
                plan_bytes(folder)
            else:
                arguments.error(f"there is no figure {what!r}")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
