"""Small tokenizers of each family that published models use, trained on the spot with the tokenizers library."""

import json

import text_samples
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")
GPT4_POSSESSIVE = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
                   r"|\s*[\r\n]|\s+(?!\S)|\s")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)"
         r"|\s+")
DEEPSEEK = (r"[\r\n]", r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+",
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", r"[一-龥ࠀ-一가-퟿]+")

# Content and flags; what is written in `ADDED` texts is embedded in the samples.
ADDED_TOKENS = (
    AddedToken("<|endoftext|>", special=True, normalized=False),
    AddedToken("<s>", special=True, normalized=False),
    AddedToken("<|im_start|>", special=True, normalized=False, rstrip=True),
    AddedToken("<|im_end|>", special=True, normalized=False, lstrip=True),
    AddedToken("<mask>", special=True, normalized=False, lstrip=True, rstrip=True),
    AddedToken("<tool>", special=False, normalized=False, single_word=True),
    AddedToken("<think>", special=False, normalized=False),
    AddedToken("<think>more", special=False, normalized=False),
    AddedToken("Zwölf", special=False, normalized=True),
    AddedToken("Café au lait", special=False, normalized=True, single_word=True),
    AddedToken("    ", special=False, normalized=False),
)
ADDED_TEXTS = tuple(token.content for token in ADDED_TOKENS) + ("<think", "Cafe\u0301 au lait", "<mask><mask>", "ZWÖLF")


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(pre_tokenizer, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, pre_tokenizers.ByteLevel.alphabet()


def split_byte_level(*parts, normalizer=None, **model):
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return byte_level(pre_tokenizers.Sequence([*parts, plain]), normalizer, **model)


def with_fallback(pre_tokenizer, normalizer=None, unk_token="<unk>", **model):
    """As sentencepiece models are converted: ▁ for spaces, bytes for what the vocabulary lacks."""
    tokenizer = Tokenizer(models.BPE(unk_token=unk_token, fuse_unk=True, byte_fallback=True, **model))
    tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer, ["▁"]


def plain(pre_tokenizer, normalizer=None, decoder=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    return tokenizer, []


def llama_3():
    tokenizer, alphabet = split_byte_level(split(GPT4), ignore_merges=True)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A <|endoftext|>", special_tokens=[("<s>", 2), ("<|endoftext|>", 1)])])
    return tokenizer, alphabet


def falcon():
    return byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")]))


def deepseek():
    return split_byte_level(*(split(pattern) for pattern in DEEPSEEK), pre_tokenizers.Digits(individual_digits=True))


def llama_prepend():
    return with_fallback(None, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))


FAMILIES = {
    "gpt2": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "gpt2_prefix_space": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), normalizers.NFKC()),
    "llama_3": llama_3,
    "gpt4_possessive": lambda: split_byte_level(split(GPT4_POSSESSIVE)),
    "gpt4o": lambda: split_byte_level(split(GPT4O, "removed", invert=True)),
    "qwen2": lambda: split_byte_level(split(QWEN2), normalizer=normalizers.NFC()),
    "falcon": falcon,
    "deepseek": deepseek,
    "metaspace": lambda: with_fallback(pre_tokenizers.Metaspace("▁", "first", split=True)),
    "metaspace_always": lambda: with_fallback(pre_tokenizers.Metaspace("▁", "always", split=False), normalizers.NFC(),
                                              unk_token=None),
    "llama_prepend": llama_prepend,
    "word_suffix": lambda: plain(pre_tokenizers.Whitespace(), normalizers.Sequence([normalizers.NFD(),
                                 normalizers.Lowercase(), normalizers.StripAccents()]), decoders.BPEDecoder("</w>"),
                                 unk_token="<unk>", end_of_word_suffix="</w>"),
    "word_prefix": lambda: plain(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]),
                                 normalizers.Sequence([normalizers.Strip(), normalizers.NFKD()]),
                                 unk_token="<unk>", fuse_unk=True, continuing_subword_prefix="##"),
    "replaced": lambda: with_fallback(pre_tokenizers.Metaspace("▁", "never"), normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s{2,}"), "  "), normalizers.Replace("ß", "ss"), normalizers.Strip(True, False)])),
    "split_merged": lambda: split_byte_level(split(r"\w+", "merged_with_previous"), split("[aeiou]", "merged_with_next"),
                                             split(r"\p{N}", "contiguous"), split(r"\p{Han}|\bd", "isolated")),
    "split_inverted": lambda: split_byte_level(split(r"\p{^Lu}{,4}", "merged_with_next", invert=True),
                                               split(r"[^\S\n]|\h{2}", "removed"),
                                               split(r"(?<=\p{P})x|$", "merged_with_previous", invert=True)),
}


def train(name):
    """The tokenizer of a family, with 900 tokens at most and the added tokens."""
    tokenizer, alphabet = FAMILIES[name]()
    model = json.loads(tokenizer.to_str())["model"]
    special = ["<unk>", "<|endoftext|>", "<s>"]
    if model["byte_fallback"]:
        special += [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=900, show_progress=False, initial_alphabet=alphabet, special_tokens=special, limit_alphabet=400,
        **{key: model[key] for key in ("end_of_word_suffix", "continuing_subword_prefix") if model[key]})
    corpus = [text for text in text_samples.SENTENCES for _ in range(3)]
    tokenizer.train_from_iterator(corpus, trainer)
    content = json.loads(tokenizer.to_str())
    # The bytes are plain entries of the vocabulary, not texts to look for.
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    for token in ADDED_TOKENS:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer
