"""The pytest recipe, run as a user would: limits are kept, and the audit finds the planted fault."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "pytest.md"


def test_the_recipe_fails_only_where_the_demo_is_wrong(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^AssertionError: (.*), \.\.\.$", text, re.MULTILINE)
    (tmp_path / "test_calibration.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_calibration.py"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert "1 failed, 5 passed" in done.stdout, done.stdout
    assert "FAILED test_calibration.py::test_no_group_is_wrong" in done.stdout
    assert f"AssertionError: {shown}" in done.stdout
