"""Every public name is in the reference, once, and the pages are those the script writes."""

from __future__ import annotations

import runpy
from pathlib import Path

from calibrant.public_names import all_homes

DOCS = Path(__file__).parents[2] / "docs"


def test_every_public_name_is_in_the_reference_once_and_pages_are_up_to_date(tmp_path):
    script = runpy.run_path(str(DOCS / "make_reference.py"))
    listed = [name for _, _, names in script["PAGES"].values() for name in names.split()]
    found, public = sorted(name for name in listed if "." not in name), set(all_homes()) - {"online"}
    astray = sorted(public ^ set(found))
    assert found == sorted(public), f"{astray}: PAGES of docs/make_reference.py names each of __all__ once"
    script["write"](tmp_path)
    for written in tmp_path.iterdir():
        assert written.read_text() == (DOCS / "reference" / written.name).read_text(), (
            f"docs/reference/{written.name} is made from PAGES of docs/make_reference.py, which has changed: "
            "run .venv/bin/python docs/make_reference.py"
        )
