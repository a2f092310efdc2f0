"""Annotations hold together, and the stubs of the native half are what is there."""

import pathlib
import shutil
import subprocess
import sys

import evener

PACKAGE = pathlib.Path(evener.__file__).parent


def run(folder, *words):
    ran = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_annotations_pass_the_strict_checker(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "evener")
    run(tmp_path, "-m", "mypy", "--strict", "--no-incremental", "evener")


def test_the_stubs_are_those_of_the_native_half(tmp_path):
    run(tmp_path, "-m", "mypy.stubtest", "evener._evener")
