"""Check a saved answer without answerable: is every file the one that its manifest names?

python docs/verify.py FOLDER    exit code 0: all are, 1: some were changed, removed or added, 2: there is no answer

Needs Python alone and reads nothing but the folder. The manifest names the SHA-256 of every file; who could also have
rewritten the manifest is found out by comparing the SHA-256 of manifest.json, printed on the last line, with a copy of
it kept elsewhere.
"""

import hashlib
import json
import sys
from pathlib import Path


def differences(folder: Path) -> list[str]:
    """One line for each file that is not the one that was written."""
    named = json.loads((folder / "manifest.json").read_bytes())["sha256"]
    if "answer.json" not in named:
        raise ValueError("it lists no answer.json")
    here = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    lines = []
    for name in sorted({*named, *here} - {"manifest.json"}):
        if name not in here:
            lines.append(f"{name} is missing")
        elif name not in named:
            lines.append(f"{name} was added")
        elif hashlib.sha256(here[name].read_bytes()).hexdigest() != named[name]:
            lines.append(f"{name} was changed")
    return lines


def main() -> int:
    """What was found, on the screen; the exit code."""
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
    if not (folder / "manifest.json").is_file():
        print(f"{folder}: there is no answer here", file=sys.stderr)
        return 2
    try:
        found = differences(folder)
    except (ValueError, KeyError, TypeError):
        found = ["manifest.json is damaged"]
    print("\n".join(found or ["every file is the one that was written"]))
    print(f"manifest.json: sha256 {hashlib.sha256((folder / 'manifest.json').read_bytes()).hexdigest()}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
