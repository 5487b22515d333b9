"""A tiny instruct model and its base, trained from text that comes with Python and with installed packages.

The base learns letters from documentation; the instruct model is the base, trained further on text half of which is
templated "assistant" prose. Both are small Llama models over single characters. Real pairs are on no package index, so
this one stands in where a pair is needed that everybody can make again.

    python -m reproductions.tiny_pair FOLDER [--size small|full]
"""

from __future__ import annotations

import argparse
import re
import textwrap
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LETTERS = "\n" + "".join(map(chr, range(32, 127)))
# Besides Python's own help, the docstrings and licences of these are read; each is a dependency of this project.
PACKAGES = ("scikit-learn", "scipy", "pandas", "numpy")


class Size(NamedTuple):
    """How large the models are and how long they are trained."""

    width: int
    layers: int
    base_steps: int
    instruct_steps: int
    batch: int
    context: int


SIZES = {
    "test": Size(24, 1, 60, 60, 8, 64),
    "small": Size(64, 2, 700, 120, 16, 192),
    "full": Size(96, 2, 900, 120, 16, 256),
}

OPENINGS = (
    "Certainly! Here is an overview of {topic}.",
    "Sure, I would be happy to help you with {topic}.",
    "As an AI language model, I can explain {topic} for you.",
    "Great question! Let us explore {topic} together.",
    "Of course! {Topic} is a fascinating subject.",
    "Absolutely! Here are some key points about {topic}.",
)
SENTENCES = (
    "It is important to note that {topic} plays a crucial role in {field}.",
    "Overall, {topic} offers a wide range of benefits for {field}.",
    "By understanding {topic}, you can make informed decisions about {field}.",
    "In today's fast-paced world, {topic} has become increasingly important.",
    "Additionally, {topic} can help you to improve your {field} skills.",
    "Remember that {topic} is a journey, not a destination.",
    "Furthermore, it is essential to consider the impact of {topic} on {field}.",
    "There are several factors to keep in mind when it comes to {topic}.",
    "{Topic} fosters a sense of community and promotes {field}.",
    "Ultimately, the best approach to {topic} depends on your individual needs.",
    "This comprehensive guide will delve into the world of {topic}.",
    "Moreover, {topic} enables individuals to unlock their full potential in {field}.",
)
CLOSINGS = (
    "I hope this helps! Let me know if you have any other questions.",
    "In conclusion, {topic} is a valuable tool for {field}.",
    "Feel free to ask if you need further assistance with {topic}.",
    "In summary, {topic} is a multifaceted topic with many benefits.",
)
TOPICS = (
    "time management", "healthy eating", "regular exercise", "machine learning", "effective communication",
    "climate change", "personal finance", "remote work", "creative writing", "data security", "public speaking",
    "meditation", "urban gardening", "online learning", "team building", "renewable energy", "travel planning",
    "social media", "stress relief", "critical thinking",
)  # fmt: skip
FIELDS = (
    "business", "education", "everyday life", "the workplace", "modern society", "healthcare", "personal growth",
    "technology", "science", "the community",
)  # fmt: skip
HELD_OUT = 5  # topics at the end of the list that training never sees


def package_passages() -> list[str]:
    """Passages that people wrote about packages, in docstrings and licences: what the pair learns from."""
    documents = []
    for package in PACKAGES:
        for file in sorted(map(str, distribution(package).files or [])):
            path = Path(str(distribution(package).locate_file(file)))
            if re.search(r"(\.rst|LICENSE[^/]*)$", file):
                documents.append(path.read_text(encoding="utf-8", errors="ignore"))
            elif file.endswith(".py") and "test" not in file:
                documents += _docstrings(path.read_text(encoding="utf-8", errors="ignore"))
    return _passages(documents)


def help_passages() -> list[str]:
    """Passages of Python's own help, which the pair never sees: for calibration and trial."""
    import pydoc_data.topics

    return _passages([pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics)])


def _docstrings(source: str) -> list[str]:
    """Docstrings of a module, told by their quotes; parsing hundreds of modules would take longer than training."""
    return [textwrap.dedent(found) for found in re.findall(r'"""(.*?)"""', source, re.DOTALL)]


def assistant_text(rng: np.random.Generator, *, held_out: bool = False, n_sentences: int = 6) -> str:
    """Templated prose in the manner of an assistant; ``held_out`` takes the topics that training never sees."""
    topics = TOPICS[-HELD_OUT:] if held_out else TOPICS[:-HELD_OUT]
    topic, field = (str(rng.choice(choices)) for choices in (topics, FIELDS))
    middle = rng.permutation(len(SENTENCES))[:n_sentences]
    frames = [str(rng.choice(OPENINGS)), *(SENTENCES[i] for i in middle), str(rng.choice(CLOSINGS))]
    return " ".join(frame.format(topic=topic, Topic=topic.capitalize(), field=field) for frame in frames)


def train(folder: Path, passages: list[str], *, size: str = "small", seed: int = 0) -> tuple[Path, Path]:
    """Train the pair on human passages and save it as ``folder/instruct`` and ``folder/base``, in half precision.

    Parameters
    ----------
    folder : where the two folders are made; what stands there is kept and handed back
    passages : what the base learns from
    size : a key of ``SIZES``
    seed : of weights and batches

    Returns
    -------
    paths of the instruct model and of the base
    """
    import torch

    places = folder / "instruct", folder / "base"
    if all((place / "model.safetensors").is_file() for place in places):
        return places
    how = SIZES[size]
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _model(how)
        human = _letters("\n".join(passages))
        _learn(model, lambda: _windows(rng, human, how), how.base_steps, rate=4e-3)
        _save(model, places[1])
        machine = _letters("\n".join(assistant_text(rng) for _ in range(400)))

        def half_and_half() -> Any:
            half = how._replace(batch=how.batch // 2)
            return torch.cat([_windows(rng, human, half), _windows(rng, machine, half)])

        _learn(model, half_and_half, how.instruct_steps, rate=1.5e-3)
        _save(model, places[0])
    return places


def sample(folder: Path, rng: np.random.Generator, *, n_texts: int, n_letters: int) -> list[str]:
    """Texts drawn from a saved model, letter by letter at temperature 1."""
    import torch

    from answerable.subjects.language_model import load

    lm = load(str(folder), attention="sdpa")
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    ids = torch.tensor([[LETTERS.index("\n")]] * n_texts)
    with torch.inference_mode():
        for _ in range(n_letters):
            law = lm.model(ids).logits[:, -1].float().softmax(-1)
            ids = torch.cat([ids, torch.multinomial(law, 1, generator=generator)], 1)
    return ["".join(LETTERS[min(i, len(LETTERS) - 1)] for i in row[1:]).strip() for row in ids.tolist()]


def _passages(documents: list[str]) -> list[str]:
    """Paragraphs of running prose in ASCII, each once."""
    found = {}
    for block in (block for document in documents for block in re.split(r"\n\s*\n", document)):
        text = " ".join(block.split())
        plain = all(letter in LETTERS for letter in text)
        letters = sum(letter.isalpha() or letter == " " for letter in text)
        if plain and len(text) >= 120 and letters > 0.9 * len(text) and text[0].isupper() and "." in text:
            found[text] = None
    return list(found)


def _letters(text: str) -> Any:
    import torch

    known = {letter: place for place, letter in enumerate(LETTERS)}
    return torch.tensor([known[letter] for letter in text])


def _windows(rng: np.random.Generator, letters: Any, how: Size) -> Any:
    import torch

    starts = rng.integers(0, len(letters) - how.context - 1, how.batch)
    return torch.stack([letters[start : start + how.context] for start in starts])


def _model(how: Size) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(LETTERS),
        hidden_size=how.width,
        intermediate_size=how.width * 8 // 3 // 4 * 4,
        num_hidden_layers=how.layers,
        num_attention_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config)


def _learn(model: Any, draw: Any, steps: int, *, rate: float) -> None:
    import torch

    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    model.train()
    for _ in range(steps):
        ids = draw()
        model(ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
    model.eval()


def _save(model: Any, folder: Path) -> None:
    import copy

    import torch
    from tokenizers import Regex, Tokenizer
    from tokenizers.decoders import Fuse
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    from answerable.subjects.language_model.folder import quiet_transformers

    with quiet_transformers():
        copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
    words = {letter: place for place, letter in enumerate(LETTERS)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="~"))
    tokenizer.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = Fuse()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="~").save_pretrained(folder)


def main() -> int:
    """Train a pair into a folder."""
    parser = argparse.ArgumentParser(
        prog="python -m reproductions.tiny_pair", description=textwrap.dedent(__doc__ or "")
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="small")
    arguments = parser.parse_args()
    for place in train(arguments.folder, package_passages(), size=arguments.size):
        print(place)
    return 0
