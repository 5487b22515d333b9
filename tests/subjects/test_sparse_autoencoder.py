"""Autoencoders and transcoders: every activation by its formula, files as others write them, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from answerable.errors import AnswerableError, BadInput
from answerable.subjects import SparseAutoencoder, read_sparse_autoencoder
from answerable.subjects.sparse_autoencoder import digest

D, M = 4, 6
RNG = np.random.default_rng(0)
ARRAYS = {
    "W_enc": RNG.standard_normal((D, M)).astype(np.float32),
    "b_enc": RNG.standard_normal(M).astype(np.float32),
    "W_dec": RNG.standard_normal((M, D)).astype(np.float32),
    "b_dec": RNG.standard_normal(D).astype(np.float32),
}
X = RNG.standard_normal((9, D)).astype(np.float32)


def saved(folder: Path, config: dict[str, Any], arrays: dict[str, np.ndarray] | None = None) -> Path:
    """A folder as SAELens writes it."""
    folder.mkdir(exist_ok=True)
    (folder / "cfg.json").write_text(json.dumps(config))
    save_file(ARRAYS if arrays is None else arrays, folder / "sae_weights.safetensors")
    return folder


def by_hand(x: np.ndarray, kind: str, *, takes_off: bool, k: int = 0, threshold: Any = 0.0) -> np.ndarray:
    """Token by token and feature by feature."""
    found = np.zeros((len(x), M))
    for t, row in enumerate(x.astype(float)):
        z = [
            sum((row[i] - takes_off * ARRAYS["b_dec"][i]) * ARRAYS["W_enc"][i, j] for i in range(D))
            + ARRAYS["b_enc"][j]
            for j in range(M)
        ]
        best = sorted(range(M), key=lambda j: -z[j])[: k or M]
        for j in best:
            if z[j] > (threshold[j] if kind == "jumprelu" else 0):
                found[t, j] = max(z[j], 0)
    return found


@pytest.mark.parametrize(
    ("config", "takes_off", "k"),
    [
        ({"architecture": "standard"}, True, 0),
        ({"architecture": "standard", "apply_b_dec_to_input": False}, False, 0),
        ({"architecture": "standard", "activation_fn_str": "topk", "activation_fn_kwargs": {"k": 2}}, True, 2),
        ({"architecture": "topk", "k": 3, "apply_b_dec_to_input": False}, False, 3),
        ({"architecture": "transcoder", "d_in": D, "d_out": D}, False, 0),
    ],
)
def test_a_saelens_folder_encodes_and_decodes_by_its_formula(
    tmp_path: Path, config: dict[str, Any], takes_off: bool, k: int
) -> None:
    found = read_sparse_autoencoder(saved(tmp_path / "sae", config))
    assert found.is_transcoder == ("transcoder" in config["architecture"])
    activations = found.encode(X)
    assert activations == pytest.approx(by_hand(X, "relu", takes_off=takes_off, k=k), abs=1e-5)
    assert found.decode(activations) == pytest.approx(activations @ ARRAYS["W_dec"] + ARRAYS["b_dec"], abs=1e-5)


def test_a_gemma_scope_file_is_a_jumprelu(tmp_path: Path) -> None:
    threshold = np.abs(RNG.standard_normal(M)).astype(np.float32)
    np.savez(tmp_path / "params.npz", **ARRAYS, threshold=threshold)
    found = read_sparse_autoencoder(tmp_path / "params.npz")
    expected = by_hand(X, "jumprelu", takes_off=False, threshold=threshold)
    assert found.encode(X) == pytest.approx(expected, abs=1e-5)
    assert ((expected > 0) & (expected <= threshold)).sum() == 0 and (expected > 0).any()


def test_a_gated_one_is_on_where_its_gate_is(tmp_path: Path) -> None:
    arrays = {name: part for name, part in ARRAYS.items() if name != "b_enc"}
    arrays |= {name: RNG.standard_normal(M).astype(np.float32) for name in ("b_gate", "r_mag", "b_mag")}
    found = read_sparse_autoencoder(
        saved(tmp_path / "sae", {"architecture": "gated", "apply_b_dec_to_input": False}, arrays)
    )
    z = X @ arrays["W_enc"]
    expected = np.where(z + arrays["b_gate"] > 0, np.maximum(z * np.exp(arrays["r_mag"]) + arrays["b_mag"], 0), 0)
    assert found.encode(X) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["sae", "transcoder"])
def test_a_scale_of_training_is_folded_into_encoder_decoder_and_bias(tmp_path: Path, kind: str) -> None:
    architecture = "standard" if kind == "sae" else "transcoder"
    config = {"architecture": architecture, "normalize_activations": "expected_average_only_in"}
    folder = saved(tmp_path / "sae", config)
    with pytest.raises(BadInput, match=r"times a number \(expected_average_only_in\) that is not in its files; give"):
        read_sparse_autoencoder(folder)
    found = read_sparse_autoencoder(folder, scale=2.5)
    as_trained = read_sparse_autoencoder(saved(tmp_path / "plain", {"architecture": architecture}))
    # what it was trained on is x * 2.5, and what it wrote then is its output * 2.5
    assert found.encode(X) == pytest.approx(as_trained.encode(2.5 * X), abs=1e-4)
    assert found.decode(found.encode(X)) == pytest.approx(as_trained.decode(as_trained.encode(2.5 * X)) / 2.5, abs=1e-4)
    assert "2.5" in found.notes[0]
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(BadInput, match=r"the scale is .*; give a number above 0"):
            read_sparse_autoencoder(folder, scale=scale)


def test_rescaling_by_the_decoder_norm_leaves_what_is_written_alone(tmp_path: Path) -> None:
    config = {"architecture": "standard", "apply_b_dec_to_input": False}
    plain = read_sparse_autoencoder(saved(tmp_path / "a", config))
    rescaled = read_sparse_autoencoder(saved(tmp_path / "b", {**config, "rescale_acts_by_decoder_norm": True}))
    assert np.linalg.norm(rescaled.W_dec, axis=1) == pytest.approx(1, abs=1e-6)
    assert rescaled.decode(rescaled.encode(X)) == pytest.approx(plain.decode(plain.encode(X)), abs=1e-5)


def test_half_precision_is_read_as_float32(tmp_path: Path) -> None:
    half = {name: part.astype(np.float16) for name, part in ARRAYS.items()}
    found = read_sparse_autoencoder(saved(tmp_path / "sae", {"architecture": "standard"}, half))
    assert found.W_dec.dtype == np.float32
    assert found.W_dec == pytest.approx(half["W_dec"].astype(np.float32))


def test_bfloat16_is_read_as_float32(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file as save_torch

    folder = saved(tmp_path / "sae", {"architecture": "standard"})
    save_torch(
        {name: torch.from_numpy(part).bfloat16() for name, part in ARRAYS.items()}, folder / "sae_weights.safetensors"
    )
    found = read_sparse_autoencoder(folder)
    assert found.W_enc.tolist() == torch.from_numpy(ARRAYS["W_enc"]).bfloat16().float().tolist()


@pytest.mark.parametrize(
    ("config", "changed", "told"),
    [
        ({"architecture": "crosscoder"}, {}, "architecture 'crosscoder' is not read; one of standard, transcoder"),
        ({"activation_fn_str": "tanh"}, {}, "activation 'tanh' is not read; relu, topk or jumprelu"),
        ({"architecture": "topk", "k": 9}, {}, "k is '9', there are 6 features; set k in cfg.json"),
        ({"architecture": "topk"}, {}, "k is 'None', there are 6 features"),
        ({"normalize_activations": "layer_norm"}, {}, r"normed token by token \(layer_norm\), which no one number"),
        ({"d_in": 8}, {}, "d_in is 8 in cfg.json, 4 in its weights"),
        ({"d_sae": 7}, {}, "d_sae is 7 in cfg.json, 6 in its weights"),
        (
            {}, {"W_enc": np.zeros((D, 0), np.float32), "W_dec": np.zeros((0, D), np.float32)},
            "it has 0 features of 4 numbers; give a folder",
        ),
        ({}, {"b_dec": None}, "there is no b_dec, only W_dec, W_enc, b_enc; give a folder"),
        ({}, {"b_enc": np.zeros(5, np.float32)}, r"b_enc is float32 of shape \(5,\), not 6"),
        ({}, {"W_enc": np.zeros(24, np.float32)}, r"W_enc is float32 of shape \(24,\), not a matrix"),
        ({}, {"W_dec": np.full((M, D), np.nan, np.float32)}, "W_dec holds a number that is not finite"),
        (
            {}, {"W_dec": np.zeros((M, 3), np.float32), "b_dec": np.zeros(3, np.float32)},
            "it reads 4 numbers and writes 3; say that it is a transcoder",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(
    tmp_path: Path, config: dict[str, Any], changed: dict[str, Any], told: str
) -> None:
    arrays = {name: part for name, part in (ARRAYS | changed).items() if part is not None}
    folder = saved(tmp_path / "sae", {"architecture": "standard", **config}, arrays)
    with pytest.raises(BadInput, match=told) as raised:
        read_sparse_autoencoder(folder)
    assert "\n" not in str(raised.value)


def test_files_that_are_none_are_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    torn = saved(tmp_path / "torn", {})
    (torn / "cfg.json").write_text("{")
    cut = saved(tmp_path / "cut", {"architecture": "standard"})
    (cut / "sae_weights.safetensors").write_bytes((cut / "sae_weights.safetensors").read_bytes()[:60])
    pickled = tmp_path / "sae.pt"
    pickled.write_bytes(b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.")
    listed = saved(tmp_path / "listed", {})
    (listed / "cfg.json").write_text("[1]")
    for path, told in (
        (empty, "cfg.json"),
        (torn, "no valid JSON"),
        (listed, "no JSON object"),
        (cut, "sae_weights.safetensors"),
        (pickled, "sae.pt"),
        (tmp_path / "nothing", "nothing"),
    ):
        with pytest.raises(AnswerableError, match=told) as raised:
            read_sparse_autoencoder(str(path))
        assert "\n" not in str(raised.value)


def made(**more: Any) -> SparseAutoencoder:
    return SparseAutoencoder(name="mine", kind="relu", **ARRAYS, **more)


@pytest.mark.parametrize(
    ("one", "layer", "width", "told"),
    [
        (made(), 3, 8, "it reads 4 and writes 4 numbers, the layer has 8"),
        (made(hook="blocks.2.hook_mlp_out"), 3, D, "trained on layer 2 .*, layer 3 is asked about; set layer = 2"),
        (made(hook="blocks.3.hook_resid_post"), 3, D, "reads blocks.3.hook_resid_post, which is not .* output"),
        (made(hook="blocks.3.hook_mlp_out", is_transcoder=True), 3, D, "reads .* which is not .* input"),
        (
            made(hook="blocks.3.ln2.hook_normalized", hook_out="blocks.3.hook_attn_out", is_transcoder=True), 3, D,
            "it writes blocks.3.hook_attn_out",
        ),
    ],
)  # fmt: skip
def test_one_of_another_place_is_refused_with_both_named(
    one: SparseAutoencoder, layer: int, width: int, told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        one.fits(layer, width)


def test_one_of_this_place_fits(tmp_path: Path) -> None:
    made().fits(0, D)
    made(hook="blocks.3.hook_mlp_out").fits(3, D)
    config = {"architecture": "transcoder", "metadata": {
        "hook_name": "blocks.3.ln2.hook_normalized", "hook_name_out": "blocks.3.hook_mlp_out"}}  # fmt: skip
    read_sparse_autoencoder(saved(tmp_path / "sae", config)).fits(3, D)


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    config = {"architecture": "standard"}
    first, second = saved(tmp_path / "a", config), saved(tmp_path / "b", config)
    assert digest(str(first)) == digest(str(second)) is not None
    changed = saved(tmp_path / "c", config, {**ARRAYS, "b_dec": ARRAYS["b_dec"] + 1})
    assert digest(str(changed)) != digest(str(first))
    assert digest(ARRAYS) == digest(dict(ARRAYS)) != digest({**ARRAYS, "b_dec": ARRAYS["b_dec"] + 1})
