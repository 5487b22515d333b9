"""A hundred thousand mutations of a GGUF file: none takes long, none says more than a line."""

import pytest

from tests.subjects.gguf_files import survive


@pytest.mark.soak
def test_a_hundred_thousand_mutations_end_in_one_line(seed: int) -> None:
    refused, longest = survive(100_000, seed)
    assert refused > 50_000
    assert longest < 1
