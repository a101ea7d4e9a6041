# SPDX-License-Identifier: Apache-2.0
"""Models of transformers with ``attn_implementation="locus"`` beside "sdpa": prefill, decoding, training step.

Random weights, short vocabulary, the shape of small published models: Llama (grouped heads), Gemma 3 (windows), GPT-2,
BERT with padding. Dropout is off, so that what is timed is what was compared.
"""

from __future__ import annotations

import copy

import torch

import locus.torch  # noqa: F401  "locus" is then a name that transformers knows

from .contest import Contest, Shape

VOCABULARY = 1000
TEXTS, MOST_TOKENS_OF_A_TEXT = 32, 256
MARKS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)


def _common(shape: Shape, options) -> dict:
    return dict(
        vocab_size=VOCABULARY,
        hidden_size=shape.hidden,
        intermediate_size=4 * shape.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=shape.heads,
        max_position_embeddings=shape.tokens + 8,
    )


def _models(head, config):
    """The same parameters on "sdpa" and on "locus"."""
    theirs = head.from_config(copy.deepcopy(config), attn_implementation="sdpa").eval()
    ours = head.from_config(copy.deepcopy(config), attn_implementation="locus").eval()
    for name, parameter in theirs.named_parameters():
        owner, _, last = name.rpartition(".")
        setattr(ours.get_submodule(owner), last, parameter)
    if hasattr(ours, "tie_weights"):
        ours.tie_weights()
    return {"locus": ours, "transformers, sdpa": theirs}


def _exactly(model, call):
    with torch.no_grad():
        return call(copy.deepcopy(model).double())


def _whole(name: str, head, config, shape: Shape, keys: int = 0) -> Contest:
    """One call over all tokens; `keys`: how many tokens of each text are padding."""
    models = _models(head, config)
    ids = torch.randint(3, VOCABULARY, (shape.batch, shape.tokens))
    call = {"input_ids": ids}
    if keys:
        call["attention_mask"] = (torch.arange(shape.tokens) < shape.tokens - keys).long().expand(shape.batch, -1)

    def run(model):
        return model(**call).logits[:, : shape.tokens - keys]

    theirs = models["transformers, sdpa"]
    contest = Contest(name, list(theirs.parameters()), lambda: _exactly(theirs, run))
    contest.runs = {who: (lambda model=model: run(model)) for who, model in models.items()}
    return contest


def _decoding(name: str, head, config, shape: Shape) -> Contest:
    """One token over a cache of all the others."""
    models = _models(head, config)
    ids = torch.randint(3, VOCABULARY, (shape.batch, shape.tokens + 1))

    def prepared(model):
        with torch.no_grad():
            cache = model(ids[:, :-1], use_cache=True, logits_to_keep=1).past_key_values

        def run():
            logits = model(ids[:, -1:], past_key_values=cache, use_cache=True).logits
            cache.crop(shape.tokens)
            return logits

        return run

    theirs = models["transformers, sdpa"]
    contest = Contest(name, [], lambda: _exactly(theirs, lambda model: prepared(model)()))
    contest.runs = {who: prepared(model) for who, model in models.items()}
    contest.forward_only = set(contest.runs)
    return contest


def _llama(shape: Shape, options):
    import transformers

    groups = 4 if shape.heads % 4 == 0 else 1
    config = transformers.LlamaConfig(
        **_common(shape, options), **MARKS, num_key_value_heads=shape.heads // groups, tie_word_embeddings=False
    )
    return transformers.AutoModelForCausalLM, config


def packed(shape: Shape, options) -> Contest:
    """Texts of mixed length in one row, whose positions start anew, beside the same texts padded to the longest."""
    shape = Shape(1, shape.heads, MOST_TOKENS_OF_A_TEXT, shape.width)
    models = _models(*_llama(shape, options))
    lengths = torch.randint(8, MOST_TOKENS_OF_A_TEXT + 1, (TEXTS,))
    lengths[0] = MOST_TOKENS_OF_A_TEXT
    seen = torch.arange(MOST_TOKENS_OF_A_TEXT) < lengths[:, None]
    ids = torch.randint(3, VOCABULARY, seen.shape).masked_fill(~seen, 0)
    row = dict(input_ids=ids[seen][None], position_ids=torch.cat([torch.arange(n) for n in lengths])[None])

    def in_one_row(model):
        return model(**row, use_cache=False).logits[0]

    def as_a_batch(model):
        return model(input_ids=ids, attention_mask=seen.long(), use_cache=False).logits[seen]

    theirs = models["transformers, sdpa"]
    name = f"Llama, {TEXTS} texts, {int(lengths.sum())} tokens in one row, {seen.numel()} padded"
    contest = Contest(name, list(theirs.parameters()), lambda: _exactly(theirs, as_a_batch))
    contest.runs["locus"] = lambda: in_one_row(models["locus"])
    contest.runs["transformers, sdpa, padded"] = lambda: as_a_batch(theirs)
    return contest


def llama(shape: Shape, options) -> Contest:
    return _whole("Llama, attn_implementation", *_llama(shape, options), shape)


def llama_decoding(shape: Shape, options) -> Contest:
    return _decoding("Llama, one token over a cache", *_llama(shape, options), shape)


def gemma3(shape: Shape, options) -> Contest:
    import transformers

    config = transformers.Gemma3TextConfig(
        **_common(shape, options),
        **MARKS,
        num_key_value_heads=shape.heads,
        head_dim=shape.width,
        query_pre_attn_scalar=shape.width,
        sliding_window=max(shape.tokens // 4, 16),
        layer_types=["sliding_attention" if i % 6 < 5 else "full_attention" for i in range(options.layers)],
    )
    return _whole("Gemma 3, windows, attn_implementation", transformers.AutoModelForCausalLM, config, shape)


def gpt2(shape: Shape, options) -> Contest:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=shape.hidden,
        n_layer=options.layers,
        n_head=shape.heads,
        n_positions=shape.tokens,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        **MARKS,
    )
    return _whole("GPT-2, attn_implementation", transformers.AutoModelForCausalLM, config, shape)


def bert(shape: Shape, options) -> Contest:
    import transformers

    config = transformers.BertConfig(
        **_common(shape, options), pad_token_id=0, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    padding = max(shape.tokens // 8, 1)
    return _whole("BERT, padded, attn_implementation", transformers.AutoModelForMaskedLM, config, shape, padding)
