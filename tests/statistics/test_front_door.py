"""The folder opens without loading anything, and every name it lists is there."""

import subprocess
import sys

import answerable.statistics


def test_opening_the_folder_loads_nothing_heavy():
    code = (
        "import sys, answerable.statistics; "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'statsmodels', 'numba', 'torch', 'polars') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_name_is_there():
    for name in answerable.statistics.__all__:
        assert getattr(answerable.statistics, name) is not None
