"""A tokenizer of single letters for the tiny models."""

from answerable.subjects.language_model import LanguageModel

LETTERS = "abcdefgh"


def spelled(lm: LanguageModel, *, letters: str = LETTERS, begin: bool = False, end: bool = False) -> LanguageModel:
    """The model with a tokenizer whose letters are ids from 4 on; what it does not know is id 1, the begin token 2."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    words = {"[P]": 0, "[U]": 1, "[B]": 2, "[E]": 3} | {letter: 4 + place for place, letter in enumerate(letters)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[U]"))
    tokenizer.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    if begin or end:
        template = ("[B] " if begin else "") + "$A" + (" [E]" if end else "")
        tokenizer.post_processor = TemplateProcessing(single=template, special_tokens=[("[B]", 2), ("[E]", 3)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[U]", pad_token="[P]", bos_token="[B]", eos_token="[E]"
    )
    return LanguageModel(lm.model, fast, lm.name, None, map=lm.map)
