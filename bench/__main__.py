"""``python -m bench NAME [--quick] [--only WORDS] [--json FILE]``: race a question's solver against its peers.

NAME may be ``all``.

Exits with 1 if the results of a race differ, with 2 if it could not be run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
VENV = HERE.parent / ".venv-bench"


def main() -> int:
    arguments = _arguments()
    if Path(sys.prefix).resolve() != VENV.resolve():
        return _in_the_peers_environment()
    from bench import racing

    names = _questions() if arguments.name == "all" else [arguments.name]
    documents, failed = [], []
    for name in names:
        races = importlib.import_module(f"bench.{name.replace('-', '_')}").races(quick=arguments.quick)
        rows = []
        for race in races:
            if arguments.only not in f"{race.work}, {race.peer}":
                continue
            print(f"{name}: {race.work}, {race.peer}", file=sys.stderr, flush=True)
            rows.append(racing.run(race, quick=arguments.quick))
            print(f"  {racing.in_short(rows[-1])}", file=sys.stderr, flush=True)
        failed += [failure for row in rows for failure in racing.failures(row)]
        documents.append({"question": name, "machine": racing.machine(), "quick": arguments.quick, "races": rows})
        print("\n".join([f"{name}{' (quick)' if arguments.quick else ''}", *racing.table(rows), ""]))
    if arguments.json:
        document = documents[0] if len(documents) == 1 else documents
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Race solvers against their peers.")
    parser.add_argument("name", choices=[*_questions(), "all"], help="the question")
    parser.add_argument("--quick", action="store_true", help="smaller samples and fewer pairs")
    parser.add_argument("--only", default="", metavar="WORDS", help="only races that are called so in part")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    return parser.parse_args()


def _questions() -> list[str]:
    return sorted(
        path.stem.replace("_", "-") for path in HERE.glob("*.py") if path.stem not in ("__init__", "__main__", "racing")
    )


def _in_the_peers_environment() -> int:
    """Start again with the interpreter that has the peers."""
    python = VENV / "bin" / "python"
    if not python.exists():
        print(f"{VENV.name} is missing; make it with: make bench-setup", file=sys.stderr)
        return 2
    os.execv(python, [str(python), "-m", "bench", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
