"""Every Python block of the guide does what stands there, and shows it."""

import contextlib
import io
import pathlib
import re

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "python.md"


def test_examples_of_the_guide_print_what_stands_below_them(tmp_path, monkeypatch, keyset):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.json").write_bytes(keyset[1])
    (tmp_path / "key.json").chmod(0o600)
    blocks = re.findall(r"```python\n(.*?)```\n(?:```output\n(.*?)```\n)?", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for script, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(script, names)
        pattern = ".*".join(map(re.escape, shown.split("…")))
        assert re.fullmatch(pattern, printed.getvalue()), (script, printed.getvalue())
