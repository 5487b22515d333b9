"""``python -m answerable`` is the command ``answerable``."""

from answerable.cli import main

main()
