"""Every Python block of the guide does what stands there, and shows it."""

import pathlib

from conftest import shown_and_printed

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide"


def test_examples_of_the_guide_print_what_stands_below_them(tmp_path, monkeypatch, keyset):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.json").write_bytes(keyset[1])
    (tmp_path / "key.json").chmod(0o600)
    assert shown_and_printed((GUIDE / "python.md").read_text()) >= 5
