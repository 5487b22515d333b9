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
    content = (folder / "manifest.json").read_bytes()
    manifest = json.loads(content)
    named = manifest["sha256"]
    if "answer.json" not in named:
        raise ValueError("it lists no answer.json")
    if manifest.keys() != {"schema", "sha256"} or content != (json.dumps(manifest, indent=1) + "\n").encode("ascii"):
        raise ValueError("it is not as it was written")
    paths = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    here = {path.relative_to(folder).as_posix(): path for path in paths}
    lines = []
    for name in sorted({*named, *here} - {"manifest.json"}):
        if name not in here:
            lines.append(f"{name} is missing")
        elif name not in named:
            lines.append(f"{name} was added")
        elif not here[name].is_file() or hashlib.sha256(here[name].read_bytes()).hexdigest() != named[name]:
            lines.append(f"{name} was changed")
    return lines


def shown(text: str) -> str:
    """A file's name on one line, nothing in it obeyed by the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def main() -> int:
    """What was found, on the screen; the exit code."""
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
    sys.stdout.reconfigure(errors="backslashreplace")
    if not (folder / "manifest.json").is_file():
        print(f"{shown(str(folder))}: there is no answer here", file=sys.stderr)
        return 2
    try:
        found = differences(folder)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = ["manifest.json is damaged"]
    print("\n".join(map(shown, found) if found else ["every file is the one that was written"]))
    print(f"manifest.json: sha256 {hashlib.sha256((folder / 'manifest.json').read_bytes()).hexdigest()}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
