# SPDX-License-Identifier: Apache-2.0
"""Decoders by `locus run` against transformers, in float32: hidden states and logits of every
architecture with small random weights, greedy and beam search with its settings. Trained models: trained.py.

generate.py FOLDER [NAME...]

One line per model: PASSED, FAILED or SKIPPED, its name, what was found."""

import json
import os
import subprocess
import sys

import numpy
import torch
import transformers
from safetensors.numpy import load_file
from safetensors.torch import save_file

LOCUS = os.environ["LOCUS"]
STATES, LOGITS = 2e-5, 1e-4  # of the largest element of a layer; absolute
FULL = bool(os.environ.get("LOCUS_TEST_FULL"))  # every setting for every model, else they take turns
LENGTHS = (1, 2, 9, 23) if FULL else (9,)
LENGTH = 18  # of what is generated
torch.set_num_threads(1)  # these models are too small for more
VOCABULARY = 90

LLAMA = dict(
    hidden_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, intermediate_size=100,
    vocab_size=VOCABULARY, max_position_embeddings=64, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
LLAMA3 = dict(
    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16
)

# name: model of transformers, configuration
RANDOM = {
    "llama": ("Llama", LLAMA),
    "llama-tied-wide": ("Llama", dict(LLAMA, head_dim=16, tie_word_embeddings=True, num_key_value_heads=4)),
    "llama-linear": ("Llama", dict(LLAMA, rope_scaling=dict(rope_type="linear", factor=4.0))),
    "llama-dynamic": (
        "Llama",
        dict(LLAMA, max_position_embeddings=16, rope_scaling=dict(rope_type="dynamic", factor=2.0)),
    ),
    "llama3": ("Llama", dict(LLAMA, rope_theta=500000.0, rope_scaling=LLAMA3)),
}

SPECIAL = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2)
NEOX = dict(
    SPECIAL, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=100,
    max_position_embeddings=64, rotary_pct=0.34,
)  # fmt: skip
FALCON = dict(SPECIAL, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=16)
RANDOM.update(
    {
        "qwen2": ("Qwen2", LLAMA),
        "qwen2-yarn": (
            "Qwen2",
            dict(LLAMA, head_dim=12, rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
        ),
        "llama-yarn": (
            "Llama",
            dict(
                LLAMA, head_dim=24,
                rope_scaling=dict(
                    rope_type="yarn", factor=8.0, original_max_position_embeddings=8, beta_fast=4.0, beta_slow=0.5,
                    mscale=0.7, mscale_all_dim=1.1, truncate=False,
                ),
            ),
        ),
        "llama-biases": ("Llama", dict(LLAMA, attention_bias=True, mlp_bias=True)),
        "mistral": ("Mistral", dict(LLAMA, sliding_window=4)),
        "mistral-wide": ("Mistral", dict(LLAMA, sliding_window=None, head_dim=20)),
        "qwen3": ("Qwen3", dict(LLAMA, head_dim=16)),
        "qwen3-window": (
            "Qwen3",
            dict(
                LLAMA, head_dim=10, attention_bias=True, use_sliding_window=True, sliding_window=5, max_window_layers=1,
                tie_word_embeddings=True,
            ),
        ),
        "phi3": ("Phi3", dict(LLAMA, pad_token_id=0, sliding_window=6)),
        "phi3-long": (
            "Phi3",
            dict(
                LLAMA, pad_token_id=0, max_position_embeddings=64, original_max_position_embeddings=12,
                rope_scaling=dict(
                    type="longrope", short_factor=[1.0, 1.1, 1.2, 1.5, 2.0, 2.5],
                    long_factor=[1.0, 2.0, 4.0, 8.0, 9.5, 10.0],
                ),
            ),
        ),
        "phi3-part": (
            "Phi3",
            dict(
                LLAMA, pad_token_id=0, max_position_embeddings=64, original_max_position_embeddings=12,
                partial_rotary_factor=0.5, tie_word_embeddings=True,
                rope_scaling=dict(type="longrope", short_factor=[1.0, 1.1, 2.0], long_factor=[1.0, 4.0, 9.5]),
            ),
        ),
        "gpt-neox": ("GPTNeoX", NEOX),
        "gpt-neox-serial": (
            "GPTNeoX",
            dict(
                NEOX, rotary_pct=0.5, use_parallel_residual=False, attention_bias=False, tie_word_embeddings=True,
                rope_scaling=dict(rope_type="linear", factor=2.0), rotary_emb_base=500, hidden_act="gelu_new",
            ),
        ),
        "gptj": ("GPTJ", dict(SPECIAL, n_embd=48, n_layer=3, n_head=4, n_positions=64, rotary_dim=8)),
        "gptj-inner": (
            "GPTJ",
            dict(SPECIAL, n_embd=48, n_layer=3, n_head=4, n_positions=64, rotary_dim=12, n_inner=70, activation_function="relu"),
        ),
        "falcon": ("Falcon", FALCON),
        "falcon-groups": (
            "Falcon",
            dict(FALCON, new_decoder_architecture=True, num_kv_heads=2, bias=True, tie_word_embeddings=False),
        ),
        "falcon-one-norm": (
            "Falcon",
            dict(FALCON, new_decoder_architecture=True, num_kv_heads=1, num_ln_in_parallel_attn=1, ffn_hidden_size=70),
        ),
        "falcon-serial": (
            "Falcon",
            dict(FALCON, multi_query=False, parallel_attn=False, rope_scaling=dict(rope_type="dynamic", factor=2.0), activation="relu"),
        ),
        "gemma": ("Gemma", dict(LLAMA, head_dim=16)),
        "gemma2": ("Gemma2", dict(LLAMA, head_dim=16, sliding_window=4, query_pre_attn_scalar=20, attn_logit_softcapping=2.0, final_logit_softcapping=5.0)),
        "gemma2-layers": (
            "Gemma2",
            dict(
                LLAMA, head_dim=10, sliding_window=3, final_logit_softcapping=None, attn_logit_softcapping=None,
                attention_bias=True, hidden_activation="silu", tie_word_embeddings=False,
                layer_types=["full_attention", "sliding_attention", "sliding_attention"],
            ),
        ),
        "gemma3": ("Gemma3Text", dict(LLAMA, head_dim=16, sliding_window=4, sliding_window_pattern=2, rope_local_base_freq=500.0)),
        "gemma3-linear": (
            "Gemma3Text",
            dict(
                LLAMA, head_dim=16, sliding_window=4, attn_logit_softcapping=2.0, final_logit_softcapping=1.5,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                rope_scaling=dict(rope_type="linear", factor=8.0),
            ),
        ),
        "qwen2-window": (
            "Qwen2",
            dict(LLAMA, use_sliding_window=True, sliding_window=5, max_window_layers=1, tie_word_embeddings=True),
        ),
        "qwen2-layers": (
            "Qwen2",
            dict(
                LLAMA, use_sliding_window=True, sliding_window=3,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            ),
        ),
    }
)  # fmt: skip

GPT2 = dict(SPECIAL, n_embd=48, n_layer=3, n_head=4, n_positions=64)
OPT = dict(
    SPECIAL, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, ffn_dim=100, max_position_embeddings=64,
    word_embed_proj_dim=48,
)  # fmt: skip
DECODER = dict(
    SPECIAL, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=100,
    max_position_embeddings=64, is_decoder=True,
)  # fmt: skip
T5 = dict(
    d_model=48, num_layers=3, num_heads=4, d_kv=10, d_ff=100, vocab_size=VOCABULARY,
    decoder_start_token_id=0, relative_attention_num_buckets=16, relative_attention_max_distance=20, eos_token_id=2,
)  # fmt: skip
MARIAN = dict(
    d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=3,
    encoder_ffn_dim=100, decoder_ffn_dim=80, vocab_size=VOCABULARY, decoder_vocab_size=VOCABULARY,
    max_position_embeddings=64, activation_function="swish", scale_embedding=True, decoder_start_token_id=89,
    pad_token_id=89, eos_token_id=2, forced_eos_token_id=2,
)  # fmt: skip
BART = dict(
    d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=3,
    encoder_ffn_dim=100, decoder_ffn_dim=80, vocab_size=VOCABULARY, max_position_embeddings=64, decoder_start_token_id=2,
    pad_token_id=1, bos_token_id=0, eos_token_id=2, forced_eos_token_id=2,
)  # fmt: skip
RANDOM.update(
    {
        "gpt2": ("GPT2", GPT2),
        "gpt2-inner": ("GPT2", dict(GPT2, n_inner=70, activation_function="relu", tie_word_embeddings=False)),
        "opt": ("OPT", OPT),
        "opt-narrow": ("OPT", dict(OPT, word_embed_proj_dim=32)),
        "opt-norm-after": ("OPT", dict(OPT, do_layer_norm_before=False)),
        "bert": ("Bert", DECODER),
        "bert-own-table": ("Bert", dict(DECODER, tie_word_embeddings=False, hidden_act="gelu_new")),
        "electra": ("Electra", dict(DECODER, embedding_size=24)),
        "roformer": ("RoFormer", dict(DECODER, embedding_size=24)),
        "bloom": ("Bloom", dict(SPECIAL, hidden_size=48, n_layer=3, n_head=6)),
        "mpt": ("Mpt", dict(SPECIAL, d_model=48, n_layers=3, n_heads=4, max_seq_len=64)),
        "t5": ("T5", T5),
        "t5-v1.1": ("T5", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
        "mt5": ("MT5", T5),
        "umt5": ("UMT5", T5),
        "marian": ("Marian", MARIAN),
        "bart": ("Bart", BART),
        "bart-scaled": ("Bart", dict(BART, scale_embedding=True, activation_function="relu")),
        "mbart": ("MBart", BART),
        "m2m_100": ("M2M100", dict(BART, scale_embedding=True)),
        "m2m_100-padded": ("M2M100", dict(BART, pad_token_id=5)),
        "mbart-scaled": ("MBart", dict(BART, scale_embedding=True)),
        "pegasus": ("Pegasus", dict(BART, forced_eos_token_id=None)),
        "pegasus-scaled": ("Pegasus", dict(BART, scale_embedding=True, activation_function="relu")),
        "marian-two-tables": (
            "Marian",
            dict(MARIAN, share_encoder_decoder_embeddings=False, scale_embedding=False),
        ),
    }
)

# settings of generate: (transformers, locus)
SETTINGS = (
    (dict(), ()),
    (dict(num_beams=4), ("--beams", "4")),
    (dict(num_beams=3, length_penalty=-1.5, min_length=12), ("--beams", "3", "--length-penalty", "-1.5", "--min-length", "12")),
    (dict(num_beams=2, length_penalty=2.0, no_repeat_ngram_size=2), ("--beams", "2", "--length-penalty", "2", "--no-repeat-ngram", "2")),
    (dict(no_repeat_ngram_size=3, min_length=20), ("--no-repeat-ngram", "3", "--min-length", "20")),
)  # fmt: skip
# what generation_config.json may say
CONFIGURED = (
    dict(num_beams=4, early_stopping=True, eos_token_id=[2, 5, 7]),
    dict(num_beams=3, early_stopping="never", length_penalty=0.5, bad_words_ids=[[11], [4, 9]], forced_eos_token_id=2),
    dict(forced_bos_token_id=8, repetition_penalty=1.3, suppress_tokens=[3, 12]),
    dict(num_beams=2, max_new_tokens=9, min_new_tokens=4),
    dict(num_beams=4, renormalize_logits=True, bad_words_ids=[[1], [11], [4, 9]], forced_eos_token_id=2, length_penalty=0.3),
)


def make_random(folder, kind, settings):
    torch.manual_seed(1)
    config = getattr(transformers, kind + "Config")(**settings)
    model = getattr(transformers, class_of(kind))(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            middle = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
            if "embed_positions" not in name or kind in ("OPT", "Bart", "MBart"):  # elsewhere a sinusoid
                parameter.normal_(middle, 0.1 if parameter.dim() == 1 or "T5" in kind else 0.2)
    model.save_pretrained(folder)


def class_of(kind):
    seq2seq = ("T5", "MT5", "UMT5", "Bart", "MBart", "M2M100", "Pegasus")
    ends = {**dict.fromkeys(seq2seq, "ForConditionalGeneration"), "Marian": "MTModel", "GPT2": "LMHeadModel", "Bert": "LMHeadModel"}
    return kind.replace("Gemma3Text", "Gemma3") + ends.get(kind, "ForCausalLM")


def run_locus(folder, ids, *arguments):
    command = [LOCUS, "run", folder, "--threads", "1", "--ids", ",".join(map(str, ids)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def random_ids(model, length, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, min(model.config.vocab_size, 80), (1, length), generator=generator)


def away(got, want):
    want = want.numpy()
    assert got.shape == want.shape, (got.shape, want.shape)
    return float(numpy.abs(got - want).max() / numpy.abs(want).max())


def compare_states(folder, model, length):
    """The largest distances of a layer and of the logits."""
    both = model.config.is_encoder_decoder
    ids = random_ids(model, length, length)
    more = random_ids(model, length + 2, length + 1) if both else None
    with torch.no_grad():
        extra = dict(decoder_input_ids=more) if both else {}
        want = model(input_ids=ids, output_hidden_states=True, **extra)
    output = os.path.join(folder, "states.safetensors")
    arguments = ("--decoder-ids", ",".join(map(str, more[0].tolist()))) if both else ()
    run_locus(folder, ids[0].tolist(), "--task", "hidden", "-o", output, *arguments)
    got = load_file(output)
    os.remove(output)
    layers = want.encoder_hidden_states if both else want.hidden_states
    names = {"hidden.%d" % i: state for i, state in enumerate(layers)}
    if both:
        names.update({"decoder.hidden.%d" % i: s for i, s in enumerate(want.decoder_hidden_states)})
    assert sorted(got) == sorted([*names, "logits"]), sorted(got)
    states = max(away(got[name], state) for name, state in names.items())
    return states, float(numpy.abs(got["logits"] - want.logits.numpy()).max())


def generate(folder, model, ids, settings, arguments, length):
    """What is different, or None."""
    # its cache is made anew where frequencies change, under a mask that hides nothing
    settings = dict(settings, use_cache=False) if model.config.model_type == "phi3" else settings
    more = {} if "max_new_tokens" in settings or model.generation_config.max_new_tokens else dict(max_length=length)
    with torch.no_grad():
        want = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, return_dict_in_generate=True,
            output_scores=True, **more, **settings,
        )  # fmt: skip
    if more:
        arguments = (*arguments, "--max-length", str(length))
    got = json.loads(run_locus(folder, ids[0].tolist(), "--task", "generate", "--json", *arguments))
    if got["generated_ids"] != want.sequences[0].tolist():
        return "%s: %s, expected %s" % (settings, got["generated_ids"], want.sequences[0].tolist())
    if "sequences_scores" in want and want.sequences_scores is not None:
        if abs(got["score"] - float(want.sequences_scores[0])) > 1e-3 * max(1, abs(got["score"])):
            return "%s: score %s, expected %s" % (settings, got["score"], float(want.sequences_scores[0]))
    return None


def turns(all_of_them, number):
    """What a model is tried with."""
    return all_of_them if FULL else [all_of_them[number % len(all_of_them)]]


def compare_configured(folder, model, number):
    """generation_config.json decides."""
    path = os.path.join(folder, "generation_config.json")
    with open(path) as file:
        before = file.read()
    found = None
    for settings in turns(CONFIGURED, number):
        with open(path, "w") as file:
            json.dump(dict(json.loads(before), **settings), file)
        again = type(model).from_pretrained(folder, attn_implementation="eager").eval()
        found = found or generate(folder, again, random_ids(model, 7, 5), {}, (), LENGTH)
    with open(path, "w") as file:
        file.write(before)
    return found


def compare(name, folder, number=0):
    try:
        with open(os.path.join(folder, "config.json")) as file:
            architecture, *_ = json.load(file)["architectures"]
        model = getattr(transformers, architecture).from_pretrained(folder, attn_implementation="eager").eval()
        found = [compare_states(folder, model, length) for length in LENGTHS]
        states, logits = max(f[0] for f in found), max(f[1] for f in found)
        different = None
        for settings, arguments in [SETTINGS[0], *turns(SETTINGS[1:], number)]:
            different = different or generate(folder, model, random_ids(model, 6, 3), settings, arguments, LENGTH)
        different = different or compare_configured(folder, model, number)
    except Exception as problem:  # whatever it is, the model failed
        print("FAILED", name, type(problem).__name__, " ".join(str(problem).split()), flush=True)
        return
    passed = states <= STATES and logits <= LOGITS and different is None
    print(
        "PASSED" if passed else "FAILED",
        name,
        "states %.1e, logits %.1e" % (states, logits),
        different or "",
        flush=True,
    )


def compare_two_kinds(folder):
    """Marian's encoder, norms behind, before Pegasus' decoder, whose norms are before: keys of our own say so."""
    from transformers.models.pegasus.modeling_pegasus import PegasusDecoder

    config = transformers.MarianConfig(**MARIAN)
    own = {"decoder_activation_function": "relu", "decoder_scale_embedding": False}
    model = transformers.MarianMTModel._from_config(config, attn_implementation="eager")
    kind = transformers.PegasusConfig(**dict(MARIAN, activation_function="relu", scale_embedding=False))
    kind._attn_implementation = "eager"
    model.model.decoder = PegasusDecoder(kind)
    model.model.decoder.embed_tokens = model.model.shared
    model.eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0, 0.1)
    os.makedirs(folder, exist_ok=True)
    tensors = {name: value.clone() for name, value in model.state_dict().items() if "embed_tokens" not in name}
    tensors.pop("lm_head.weight")
    save_file(tensors, os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as file:
        settings = dict(MARIAN, model_type="marian", architectures=["MarianMTModel"], **own)
        json.dump(dict(settings, decoder_normalize_before=True, decoder_add_final_layer_norm=True), file)
    states, logits = compare_states(folder, model, 9)
    good = states <= STATES and logits <= LOGITS
    print("PASSED" if good else "FAILED", "marian-two-kinds states %.1e, logits %.1e" % (states, logits), flush=True)


def main(folder, *names):
    os.makedirs(folder, exist_ok=True)
    if not names or "marian-two-kinds" in names:
        compare_two_kinds(os.path.join(folder, "marian-two-kinds"))
    for number, (name, (kind, settings)) in enumerate(RANDOM.items()):
        if names and name not in names or os.environ.get("LOCUS_TEST_SAMPLE") and number % 4 != 0:
            continue
        path = os.path.join(folder, name)
        make_random(path, kind, settings)
        compare(name, path, number)


if __name__ == "__main__":
    main(*sys.argv[1:])
