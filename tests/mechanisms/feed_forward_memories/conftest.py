"""Answers without their pictures, for tests that look at numbers: drawing takes most of a tiny model's ask."""

import pytest

from answerable.mechanisms.feed_forward_memories.question import FeedForwardMemories


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture is drawn."""
    monkeypatch.setattr(FeedForwardMemories, "_figures", lambda *_: {})
