"""Capture and intervention: what is seen is what was there, what is changed goes on, and nothing stays behind."""

from typing import Any

import pytest
import torch

from answerable.errors import BadInput, UnknownName
from answerable.subjects.language_model import capture, intervene
from tests.subjects.tiny_models import LAYERS, WORDS, ids, tiny

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FAMILIES = ["llama", "gpt2", "gpt_neox", "opt", "phi3", "bert"]
SITES = ["embedding", "final", "logits"] + [
    f"{name}.1" for name in ("stream", "attention", "feed_forward", "heads", "queries", "keys", "values", "memories")
]


def hooks_on(model: Any) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def logits(lm: Any) -> Any:
    with torch.no_grad():
        return lm.model(ids()).logits


@pytest.mark.parametrize("name", FAMILIES)
def test_the_model_is_as_it_was_to_the_bit(name: str) -> None:
    lm = tiny(name)
    before, there = logits(lm), hooks_on(lm.model)  # the first pass may leave hooks of transformers' own
    weights = {key: value.clone() for key, value in lm.model.state_dict().items()}
    with capture(lm, SITES):
        assert hooks_on(lm.model) > there
        assert torch.equal(logits(lm), before)
    with intervene(lm, dict.fromkeys(SITES, torch.zeros_like)):
        assert not torch.equal(logits(lm), before)
    assert hooks_on(lm.model) == there
    assert torch.equal(logits(lm), before)
    assert all(torch.equal(weights[key], value) for key, value in lm.model.state_dict().items())


@pytest.mark.parametrize("opened", [capture, intervene])
def test_hooks_are_gone_when_the_body_raises(opened: Any) -> None:
    lm = tiny("llama")
    there = hooks_on(lm.model)
    sites = ["heads.0", "stream.2"] if opened is capture else {"heads.0": torch.zeros_like}

    def body() -> None:
        with opened(lm, sites):
            logits(lm)
            raise RuntimeError("in the body")

    with pytest.raises(RuntimeError, match="in the body"):
        body()
    assert hooks_on(lm.model) == there


def test_hooks_are_gone_when_the_function_raises() -> None:
    lm = tiny("llama")
    there = hooks_on(lm.model)

    def fail(tensor: Any) -> Any:
        raise RuntimeError("in the function")

    with pytest.raises(RuntimeError, match="in the function"), intervene(lm, {"heads.1": fail}):
        logits(lm)
    assert hooks_on(lm.model) == there


def test_nothing_is_hooked_when_a_later_site_is_wrong() -> None:
    lm = tiny("llama")
    there = hooks_on(lm.model)
    with pytest.raises(BadInput, match="layer 9 is not from 0 to 2"), capture(lm, ["heads.0", "heads.9"]):
        pass
    assert hooks_on(lm.model) == there


def test_hooks_of_others_are_left() -> None:
    lm = tiny("llama")
    there = hooks_on(lm.model)
    handle = lm.model.register_forward_hook(lambda module, args, output: None)
    with capture(lm, SITES):
        pass
    assert hooks_on(lm.model) == there + 1
    handle.remove()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("site", [site for site in SITES if site != "logits"])
def test_putting_back_what_was_captured_changes_nothing(name: str, site: str) -> None:
    lm = tiny(name)
    with capture(lm, [site]) as found:
        before = logits(lm)
    with intervene(lm, {site: lambda _: found[site]}):
        assert torch.equal(logits(lm), before)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_put_in_is_what_a_later_capture_sees(name: str) -> None:
    lm = tiny(name)
    for site in SITES:
        with capture(lm, [site]) as found:
            logits(lm)
        wanted = torch.randn_like(found[site])
        with intervene(lm, {site: lambda _, wanted=wanted: wanted}), capture(lm, [site]) as seen:
            logits(lm)
        # Where a site is an input, the later hook sees what the earlier one put there; likewise for an output.
        assert torch.equal(seen[site], wanted), site


def test_a_patched_head_is_the_only_change() -> None:
    """Replacing one head's output moves attention by the difference times that head's output weights."""
    from answerable.subjects.language_model import head_weights

    lm = tiny("phi3")
    with capture(lm, ["heads.1", "attention.1"]) as before:
        logits(lm)

    def silence(heads: Any) -> Any:
        changed = heads.clone()
        changed[:, :, 2] = 0
        return changed

    with intervene(lm, {"heads.1": silence}), capture(lm, ["attention.1"]) as after:
        logits(lm)
    expected = before["heads.1"][:, :, 2] @ head_weights(lm, 1).output[2]
    torch.testing.assert_close(before["attention.1"] - after["attention.1"], expected, rtol=1e-4, atol=1e-5)


def test_none_leaves_a_site_as_it_is_and_other_shapes_are_told() -> None:
    lm = tiny("gpt2")
    before = logits(lm)
    with intervene(lm, {"memories.0": lambda tensor: None}):
        assert torch.equal(logits(lm), before)
    with (
        pytest.raises(BadInput, match=r"heads.0: the function returned \(2, 6\), not \(2, 6, 4, 6\); keep the shape"),
        intervene(lm, {"heads.0": lambda tensor: tensor[:, :, 0, 0]}),
    ):
        logits(lm)


def test_gradients_flow_through_what_is_captured_on_wish() -> None:
    lm = tiny("llama")
    with capture(lm, ["heads.2"], detach=False) as found:
        output = lm.model(ids()).logits
    (gradient,) = torch.autograd.grad(output[0, -1, 5], found["heads.2"])
    assert gradient.shape == found["heads.2"].shape
    assert gradient[0].abs().sum() > 0
    assert gradient[1].abs().sum() == 0  # the other text of the batch


@pytest.mark.parametrize(
    ("site", "line"),
    [
        ("head.0", "there is no site 'head.0'; did you mean 'heads.0'"),
        ("heads", "needs the number of a layer"),
        ("", "no site"),
    ],
)
def test_unknown_sites_are_told(site: str, line: str) -> None:
    with pytest.raises((UnknownName, BadInput), match=line), capture(tiny("llama"), [site]):
        pass


def test_shapes_are_those_of_the_table() -> None:
    with capture(tiny("phi3"), [*SITES, f"stream.{LAYERS}"]) as found:
        logits(tiny("phi3"))
    shapes = {site: tuple(tensor.shape) for site, tensor in found.items()}
    assert shapes["heads.1"] == shapes["queries.1"] == (2, 6, 4, 6)
    assert shapes["keys.1"] == shapes["values.1"] == (2, 6, 2, 6)
    assert shapes["logits"] == (2, 6, WORDS)
    assert shapes["memories.1"] == (2, 6, 20)
    assert shapes["stream.3"] == shapes["final"] == shapes["attention.1"] == (2, 6, 24)
