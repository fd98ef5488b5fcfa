"""Write the type stubs of the public modules from the one list of public names: python docs/make_stubs.py"""

from __future__ import annotations

from pathlib import Path

from calibrant.public_names import MODULES, OWN_NAMES, PUBLIC, all_homes, homes

ROOT = Path(__file__).parents[1] / "src" / "calibrant"
HEAD = "# Written by docs/make_stubs.py from src/calibrant/public_names.py.\n"


def stub(
    names: dict[str, tuple[str, str]], modules: tuple[str, ...] = (), whole: tuple[str, ...] = ()
) -> str:
    """Return the text of a stub that re-exports `names`, `modules`, and all names of the modules `whole`."""
    lines = [f"from calibrant import {name} as {name}" for name in sorted(modules)]
    by_file = sorted((file, defined, name) for name, (file, defined) in names.items())
    imports = [(file, f"{defined} as {defined}") for file, defined, _ in by_file]
    imports = sorted([*imports, *((module, "*") for module in whole)], key=lambda pair: pair[0])
    lines += [f"from calibrant.{file} import {defined}" for file, defined in imports]
    renamed = [f"{name} = {defined}" for _, defined, name in by_file if name != defined]
    return HEAD + "\n".join([*lines, *([""] if renamed else []), *renamed, ""])


def stubs() -> dict[Path, str]:
    """Return the text of every stub by its path."""
    found = {}
    for module in PUBLIC:
        if module == "errors":  # a plain file: its names are defined there
            continue
        folder = ROOT / module
        path = folder / "__init__.pyi" if folder.is_dir() else ROOT / f"{module}.pyi"
        found[path] = stub(homes(module))
    loaded = tuple(name for name in MODULES if name != "losses")
    whole = tuple(sorted(module for module in PUBLIC if module not in ("", "errors", *OWN_NAMES)))
    elsewhere = {name for module in whole for name in homes(module)}
    names = {name: home for name, home in all_homes().items() if name not in elsewhere}
    found[ROOT / "__init__.pyi"] = stub(names, loaded, whole) + "\n__version__: str\n"
    return found


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
