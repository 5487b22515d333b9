"""A made-up model whose one circuit is known, and models of random weights: what the method must and must not find."""

from __future__ import annotations

from answerable.errors import BadInput
from answerable.mechanisms.path_patching.pairs import Pairs
from answerable.subjects.language_model import LanguageModel, load

WIDTH, HEADS, LAYERS, WORDS, FILLERS = 64, 4, 2, 40, 20
END = 0
PLANTED = (0, 1)  # layer and head that copies
TOKENS = 8


def planted(seed: int = 0) -> LanguageModel:
    """A two-layer model of GPT-2's kind in which head 1 of layer 0 alone copies the word of the prompt to its end.

    All other weights are small and random. Words have 16 dimensions of content, most of which all words share.
    """
    import torch

    lm = random_weights(seed)
    model, width = lm.model, WIDTH // HEADS
    draw = torch.Generator().manual_seed(seed)
    content = torch.nn.functional.normalize(torch.randn(WORDS, width, generator=draw), dim=-1)
    shared = torch.nn.functional.normalize(torch.randn(width, generator=draw), dim=-1)
    content = content + 2 * shared
    content -= content.mean(dim=-1, keepdim=True)  # norms shift all numbers alike: such a shift must say nothing
    content = torch.nn.functional.normalize(content, dim=-1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.02)
        for name, parameter in model.named_parameters():
            if "ln_" in name and name.endswith("weight"):
                parameter.fill_(1.0)
        words = model.transformer.wte.weight
        words[:, : width + 2] = 0
        words[:, width + 2 :] = torch.randn(len(words), WIDTH - width - 2, generator=draw) * 0.3
        words[1 : WORDS + 1, :width] = content
        words[1 : WORDS + 1, width] = 3.0  # a mark of words
        words[END, width + 1] = 3.0  # a mark of the end
        words[END, width + 2 :] *= 6  # a stream so large that the last norm hardly moves with what is copied
        model.transformer.wpe.weight.zero_()
        model.lm_head.weight.zero_()
        model.lm_head.weight[1 : WORDS + 1, :width] = content
        layer, head = PLANTED
        fused, output = model.transformer.h[layer].attn.c_attn, model.transformer.h[layer].attn.c_proj
        columns = [part * WIDTH + head * width for part in range(3)]
        for start in columns:
            fused.weight[:, start : start + width] = 0
        fused.weight[width + 1, columns[0]] = 4.0  # the end asks
        fused.weight[width, columns[1]] = 4.0  # a word answers
        fused.weight[:width, columns[2] : columns[2] + width] = torch.eye(width)
        output.weight[head * width : (head + 1) * width] = 0
        output.weight[head * width : (head + 1) * width, :width] = 4.0 * torch.eye(width)
    return load(model)


def random_weights(seed: int = 0) -> LanguageModel:
    """A model of the same shape with random weights alone."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=1 + WORDS + FILLERS, n_embd=WIDTH, n_head=HEADS, n_layer=LAYERS, n_positions=32,
        tie_word_embeddings=False, attn_implementation="eager", bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT2LMHeadModel(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter))
    return load(model)


def planted_pairs(seed: int = 0) -> Pairs:
    """A word among fillers, to be named at the end; the twin has a filler in its place."""
    import torch

    draw = torch.Generator().manual_seed(seed + 1)
    fillers = torch.randint(1 + WORDS, 1 + WORDS + FILLERS, (WORDS, TOKENS), generator=draw)
    places = torch.randint(0, TOKENS - 1, (WORDS,), generator=draw)
    fillers[:, -1] = END
    prompts = fillers.clone()
    prompts[torch.arange(WORDS), places] = torch.arange(1, WORDS + 1)
    return Pairs.from_ids(
        prompts.tolist(), fillers.tolist(), list(range(1, WORDS + 1)), behaviour="naming the planted word"
    )


def random_twin(lm: LanguageModel, seed: int = 0) -> LanguageModel:
    """The same architecture with weights drawn anew: each matrix normal, as large as it was; others as they are."""
    import copy

    import torch

    draw = torch.Generator().manual_seed(seed)
    drawn = {}  # stands in for the matrices while the rest is copied, so that none is copied to be overwritten
    for parameter in lm.model.parameters():
        if not parameter.is_floating_point():
            raise BadInput("its weights are quantised", where=lm.name, mend="load the model in float32")
        if parameter.ndim > 1:
            size = torch.linalg.vector_norm(parameter.detach().float()).item() / parameter.numel() ** 0.5
            values = torch.empty(parameter.shape).normal_(0, size, generator=draw).to(parameter)
            drawn[id(parameter)] = torch.nn.Parameter(values, requires_grad=parameter.requires_grad)
    return LanguageModel(copy.deepcopy(lm.model, drawn), lm.tokenizer, f"{lm.name}, random weights", None)
