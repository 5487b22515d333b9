"""Asking a server that refuses, stays silent and answers nonsense: every reply comes, once, a bounded number at a time."""

import pytest

from answerable import subjects
from answerable.errors import BadInput, CannotRead
from answerable.subjects import endpoint as module
from answerable.subjects.endpoint import Endpoint
from tests.subjects.faulty_server import Faults, serving


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.1)


def messages(n):
    return {f"q{i}": [{"role": "user", "content": f"text {i}"}] for i in range(n)}


def test_a_faulty_server_loses_nothing_and_is_asked_no_answered_question_again(seed):
    faults, found = Faults(refused=0.05, silent=0.02, malformed=0.10, seed=seed, silence=2.5), {}
    with serving(faults) as url:
        asked = Endpoint(url, "m", at_once=6, timeout=2.0, tries=12)
        assert asked.replies(messages(150), found.__setitem__) == {}
    assert found == {f"q{i}": f"TEXT {i}" for i in range(150)}
    assert set(faults.answered.values()) == {1}
    assert faults.most_at_once <= 6 + faults.asked.total() - 150  # those it fell silent on may still be asleep
    assert faults.asked.total() > 150


def test_no_more_than_the_bound_is_under_way():
    faults = Faults()
    with serving(faults) as url:
        Endpoint(url, "m", at_once=3).replies(messages(40), lambda name, reply: None)
    assert faults.most_at_once <= 3


def test_what_is_refused_for_good_is_given_up_with_its_reason():
    with serving(Faults(), status=400) as url:
        given_up = Endpoint(url, "m").replies(messages(2), lambda name, reply: None)
    assert set(given_up) == {"q0", "q1"}
    assert "no such model" in given_up["q0"]


def test_the_reason_is_the_server_s_own_in_whatever_form_it_gives_it():
    with serving(Faults(), status=422, refusal={"detail": "the model's name is another"}) as url:
        given_up = Endpoint(url, "m").replies(messages(1), lambda name, reply: None)
    assert "the model's name is another" in given_up["q0"]


def test_a_server_that_never_answers_rightly_is_given_up_after_its_tries():
    faults = Faults(malformed=1.0)
    with serving(faults) as url:
        given_up = Endpoint(url, "m", tries=3).replies(messages(1), lambda name, reply: None)
    assert faults.asked.total() == 3
    assert given_up["q0"].startswith("after 3 tries: ")


def test_an_unknown_model_and_an_absent_server_are_one_line():
    with (
        serving(Faults(), status=404) as url,
        pytest.raises(CannotRead, match=r"no such model.*; check the model's name, and the key in OPENAI_API_KEY"),
    ):
        Endpoint(url, "m").replies(messages(1), lambda name, reply: None)
    with pytest.raises(CannotRead, match="the server cannot be reached; start it, or check the address"):
        Endpoint("http://127.0.0.1:9/v1", "m", tries=2).replies(messages(1), lambda name, reply: None)


def test_the_key_reaches_the_server_and_no_error(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-secret")
    with serving(Faults(), status=400) as url:
        given_up = Endpoint(url, "m").replies(messages(1), lambda name, reply: None)
    assert "planted" not in str(given_up)


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("ftp://host/v1", "ftp://host/v1: this is no web address; write http://HOST:PORT/v1"),
        ("http://me:secret@host/v1", "host: the address holds a password; put the key into OPENAI_API_KEY"),
        ("nonsense", "nonsense: this is no web address"),
    ],
)
def test_an_address_that_is_none_is_refused(url, line):
    with pytest.raises(BadInput) as raised:
        Endpoint(url, "m")
    assert str(raised.value).startswith(line)


def test_what_a_server_would_say_has_no_digest():
    assert subjects.digest("endpoint", "http://127.0.0.1:8000/v1") is None
