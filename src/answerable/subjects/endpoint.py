"""A model behind an OpenAI-compatible server: questions go in, replies come out, nothing else is known of it.

The client is the ``openai`` package. Requests run side by side up to a bound; what a server refuses for the moment
(429, 5xx, a time-out, a lost connection) is asked again after a growing wait with jitter, and so is a reply without
text. Each reply is handed on as it comes, so that whoever keeps them loses none.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from answerable.errors import BadInput, CannotRead, missing_extra
from answerable.secrets import redacted

Message = Mapping[str, str]

LONGEST_REPLY = 20_000  # characters that are kept
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds before a request is tried again


@dataclass(frozen=True)
class Endpoint:
    """Where a model is served, and how it is asked.

    Parameters
    ----------
    url : base of the server's interface, such as ``http://127.0.0.1:8000/v1``
    model : the model's name there
    key : name of the environment variable that holds the key; servers without one take any
    at_once : requests under way at most
    tries : of one request, before it is given up
    timeout : seconds that a server may take for one reply
    max_tokens : of one reply
    temperature : 0 by default; many servers still answer differently from time to time
    """

    url: str
    model: str
    key: str = "OPENAI_API_KEY"
    at_once: int = 8
    tries: int = 8
    timeout: float = 60.0
    max_tokens: int = 32
    temperature: float = 0.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput("this is no web address", where=redacted(self.url)[:80], mend="write http://HOST:PORT/v1")
        if parts.username or parts.password:
            raise BadInput("the address holds a password", where=parts.hostname, mend=f"put the key into {self.key}")
        if not self.model:
            raise BadInput("no model is named", where=self.url, mend="say which model the server should ask")

    def replies(self, asked: Mapping[str, Sequence[Message]], told: Callable[[str, str], None]) -> dict[str, str]:
        """Ask everything once, several at a time.

        Parameters
        ----------
        asked : messages (``{"role": ..., "content": ...}``) by a name of the caller's
        told : called with the name and the reply as soon as it is there, one call at a time

        Returns
        -------
        by name, why a request was given up; empty where every reply came

        Raises
        ------
        CannotRead : the server cannot be reached at all, or refuses the key or the model
        MissingExtra : the client is not installed
        """
        return asyncio.run(self._all(asked, told))

    async def _all(self, asked: Mapping[str, Sequence[Message]], told: Callable[[str, str], None]) -> dict[str, str]:
        client = self._client()
        given_up: dict[str, str] = {}
        waiting = iter(asked.items())

        async def work() -> None:
            for name, messages in waiting:
                try:
                    reply = await self._one(client, messages)
                except _GivenUp as failure:
                    given_up[name] = str(failure)
                else:
                    told(name, reply)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.at_once, max(len(asked), 1))):
                    group.create_task(work())
        except BaseExceptionGroup as failures:  # several tasks may fail at once; one is enough to say
            raise _first_of(failures) from None
        finally:
            await client.close()
        return given_up

    def _client(self) -> Any:
        try:
            import openai
        except ImportError:
            raise missing_extra("openai", "endpoint") from None
        # Tries are counted here, where a reply without text counts as one too.
        key = os.environ.get(self.key) or "none"
        return openai.AsyncOpenAI(base_url=self.url, api_key=key, max_retries=0, timeout=self.timeout)

    async def _one(self, client: Any, messages: Sequence[Message]) -> str:
        import openai

        reason = ""
        for attempt in range(self.tries):
            try:
                given = await client.chat.completions.create(
                    model=self.model, messages=list(messages), temperature=self.temperature, max_tokens=self.max_tokens
                )
                return _text_of(given)
            except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as failure:
                mend = f"check the model's name, and the key in {self.key}"
                raise CannotRead(_said(failure), where=self.url, mend=mend) from None
            except openai.APIStatusError as failure:
                reason = _said(failure)
                if failure.status_code < 500 and failure.status_code not in (408, 409, 425, 429):
                    raise _GivenUp(reason) from None
                wait = _asked_to_wait(failure)
            except (openai.APIError, ValueError, TypeError, KeyError, IndexError, AttributeError) as failure:
                reason, wait = _said(failure), None  # no connection, no time, or a reply that is none
            await asyncio.sleep(_wait(attempt, wait))
        if reason.startswith("Connection error"):
            raise CannotRead("the server cannot be reached", where=self.url, mend="start it, or check the address")
        raise _GivenUp(f"after {self.tries} tries: {reason}")


class _GivenUp(Exception):
    """A request that is not tried again."""


def _first_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failures.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first


def _text_of(given: Any) -> str:
    text = given.choices[0].message.content
    if not isinstance(text, str):
        raise ValueError("the reply holds no text")
    return text[:LONGEST_REPLY]


def _wait(attempt: int, asked: float | None) -> float:
    """Seconds before the next try: what the server asked for, else a random part of a bound that doubles each time."""
    if asked is not None:
        return min(asked, LONGEST_WAIT) + random.uniform(0, FIRST_WAIT)
    return random.uniform(0.5, 1.0) * min(FIRST_WAIT * 2**attempt, LONGEST_WAIT)


def _asked_to_wait(failure: Any) -> float | None:
    try:
        return max(0.0, float(failure.response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _said(failure: Exception) -> str:
    """The failure in a line; with what the server wrote, where the client leaves that out."""
    words = str(failure)
    response = getattr(failure, "response", None)
    if response is not None and words.startswith("Error code") and " - " not in words:
        words = f"{words} - {response.text}"
    return redacted(" ".join(words.split()))[:200] or type(failure).__name__


def digest(value: object) -> None:
    """None: what a server would answer cannot be told from its address."""
    return
