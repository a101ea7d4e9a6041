# SPDX-License-Identifier: Apache-2.0
"""Hidden states of every layer by `locus run` against transformers, in float32.

compare.py FOLDER    random weights of every architecture, small sizes; trained ones: trained.py

One line per model: PASSED, FAILED or SKIPPED, its name, what was found."""

import json
import os
import re
import subprocess
import sys

import numpy
import torch
import transformers

import published
from library import Model, top
from safetensors.numpy import load_file
from safetensors.torch import save_file

LOCUS = os.environ["LOCUS"]
TOLERANCE = 2e-5  # of the largest element of the layer
LENGTHS = (33,) if os.environ.get("LOCUS_TEST_SAMPLE") else (1, 2, 17, 60)

SMALL = dict(hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=100, vocab_size=200)
DISENTANGLED = dict(
    SMALL,
    relative_attention=True,
    position_buckets=16,
    max_relative_positions=-1,
    share_att_key=True,
    pos_att_type=["p2c", "c2p"],
    norm_rel_ebd="layer_norm",
    position_biased_input=False,
    type_vocab_size=0,
    max_position_embeddings=64,
)

MODERN = dict(SMALL, max_position_embeddings=64, pad_token_id=0, cls_token_id=1, sep_token_id=2, reference_compile=False)

# name: family of transformers, configuration
RANDOM = {
    "bert": ("Bert", dict(SMALL, max_position_embeddings=64)),
    "bert-relative-key": ("Bert", dict(SMALL, max_position_embeddings=64, position_embedding_type="relative_key")),
    "bert-relative-key-query": (
        "Bert",
        dict(SMALL, max_position_embeddings=64, position_embedding_type="relative_key_query"),
    ),
    "bert-gelu-new": ("Bert", dict(SMALL, max_position_embeddings=64, hidden_act="gelu_new")),
    "roberta": ("Roberta", dict(SMALL, max_position_embeddings=66, type_vocab_size=1)),
    "xlm-roberta": ("XLMRoberta", dict(SMALL, max_position_embeddings=66, type_vocab_size=1)),
    "distilbert": (
        "DistilBert",
        dict(dim=48, n_layers=3, n_heads=4, hidden_dim=100, vocab_size=200, max_position_embeddings=64),
    ),
    "electra": ("Electra", dict(SMALL, embedding_size=24, max_position_embeddings=64)),
    "electra-wide": ("Electra", dict(SMALL, embedding_size=48, max_position_embeddings=64)),
    "albert": ("Albert", dict(SMALL, embedding_size=24, max_position_embeddings=64)),
    "mpnet": ("MPNet", dict(SMALL, max_position_embeddings=66)),
    "modernbert": ("ModernBert", dict(MODERN, local_attention=8, global_attn_every_n_layers=2)),
    "modernbert-biased": (
        "ModernBert",
        dict(MODERN, norm_bias=True, attention_bias=True, mlp_bias=True, local_rope_theta=None, hidden_activation="silu"),
    ),
    "deberta-v3": ("DebertaV2", DISENTANGLED),
    "deberta-v2-convolution": ("DebertaV2", dict(DISENTANGLED, conv_kernel_size=3, conv_act="gelu")),
    "deberta-v2-few-positions": ("DebertaV2", dict(DISENTANGLED, position_buckets=256)),
    "deberta-v2-own-maps": (
        "DebertaV2",
        dict(
            DISENTANGLED,
            share_att_key=False,
            pos_att_type="c2p",
            position_buckets=-1,
            max_relative_positions=20,
            norm_rel_ebd="none",
            position_biased_input=True,
            type_vocab_size=2,
            conv_kernel_size=3,
            conv_groups=4,
        ),
    ),
}

T5 = dict(d_model=48, num_layers=3, num_heads=4, d_kv=10, d_ff=100, vocab_size=200)
RANDOM.update(
    {
        "deberta": ("Deberta", dict(DISENTANGLED, position_buckets=None, norm_rel_ebd=None, share_att_key=None)),
        "deberta-positions": (
            "Deberta",
            dict(
                SMALL,
                relative_attention=True,
                max_relative_positions=20,
                pos_att_type="c2p|p2c",
                position_biased_input=True,
                type_vocab_size=2,
                max_position_embeddings=64,
            ),
        ),
        "roformer": ("RoFormer", dict(SMALL, max_position_embeddings=64, embedding_size=24)),
        "t5": ("T5Encoder", dict(T5)),
        "t5-gated": ("T5Encoder", dict(T5, feed_forward_proj="gated-gelu")),
        "mt5": ("MT5Encoder", dict(T5)),
        "umt5": ("UMT5Encoder", dict(T5, relative_attention_num_buckets=16, relative_attention_max_distance=40)),
    }
)

ROTARY = dict(SMALL, num_key_value_heads=2, head_dim=16, max_position_embeddings=64)
RANDOM.update(
    {
        "qwen3": ("Qwen3", ROTARY),
        "gemma3-both-ways": (
            "Gemma3Text",
            dict(ROTARY, sliding_window=9, sliding_window_pattern=2, use_bidirectional_attention=True),
        ),
    }
)

XLNET = dict(d_model=48, n_layer=3, n_head=4, d_inner=100, vocab_size=200)
RANDOM.update(
    {
        "xlnet": ("XLNet", XLNET),
        "xlnet-clamp": ("XLNet", dict(XLNET, clamp_len=7, ff_activation="relu", untie_r=True)),
    }
)

HEADS = {}  # the families with heads, as they stand above
for name, kind in (
    ("bert", "Bert"),
    ("roberta", "Roberta"),
    ("xlm-roberta", "XLMRoberta"),
    ("distilbert", "DistilBert"),
    ("electra", "Electra"),
    ("albert", "Albert"),
    ("mpnet", "MPNet"),
    ("deberta-v3", "DebertaV2"),
    ("deberta-positions", "Deberta"),
    ("roformer", "RoFormer"),
):
    HEADS[name + "-classify"] = (kind + "ForSequenceClassification", dict(RANDOM[name][1], num_labels=3))
    HEADS[name + "-tokens"] = (kind + "ForTokenClassification", dict(RANDOM[name][1], num_labels=5))

for name, kind in (("qwen3", "Qwen3"), ("mistral", "Mistral"), ("gpt-neox", "GPTNeoX")):
    HEADS[name + "-classify"] = (kind + "ForSequenceClassification", dict(ROTARY, num_labels=3, pad_token_id=0, rotary_pct=0.5, head_dim=12))

FILLS = {  # heads that fill masks; the third is what decides about their weights
    name: (kind + "ForMaskedLM", dict(RANDOM[name][1], **more))
    for name, kind, more in (
        ("bert", "Bert", {}),
        ("bert-gelu-new", "Bert", dict(tie_word_embeddings=False)),
        ("roberta", "Roberta", {}),
        ("xlm-roberta", "XLMRoberta", {}),
        ("distilbert", "DistilBert", {}),
        ("electra", "Electra", {}),
        ("albert", "Albert", {}),
        ("mpnet", "MPNet", dict(hidden_act="relu")),
        ("deberta-v3", "DebertaV2", {}),
        ("deberta-v2-convolution", "DebertaV2", dict(legacy=False, tie_word_embeddings=False)),
        ("deberta", "Deberta", {}),
        ("deberta-positions", "Deberta", dict(legacy=False, tie_word_embeddings=False)),
        ("roformer", "RoFormer", {}),
    )
}
FILLS["xlnet"] = ("XLNetLMHeadModel", XLNET)


def make_random(folder, family, settings):
    torch.manual_seed(1)
    base = re.sub("Encoder$|For(Sequence|Token)Classification$|ForMaskedLM$|LMHeadModel$", "", family)
    architecture = family if re.search("Classification$|ForMaskedLM$|LMHeadModel$", family) else family + "Model"
    model = getattr(transformers, architecture)(getattr(transformers, base + "Config")(**settings))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            middle = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
            if "embed_positions" not in name:  # a sinusoid
                parameter.normal_(middle, 0.1)
        for name, buffer in model.named_buffers():
            if "running" in name:
                buffer.uniform_(0.5, 2.0)
    model.save_pretrained(folder)
    if settings.get("legacy") is False:  # transformers leaves out the word table
        tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
        save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})


def run_locus(folder, ids, *arguments):
    command = [LOCUS, "run", folder, "--ids", ",".join(map(str, ids)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def distances(folder, model, length):
    """The largest distance of a layer, and that of the embedding."""
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(0, model.config.vocab_size, (1, length), generator=generator)
    with torch.no_grad():
        found = model(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
    states = (*found.hidden_states[:-1], found.last_hidden_state)  # ModernBERT lists the last before its norm
    output = os.path.join(folder, "hidden.safetensors")
    run_locus(folder, ids[0].tolist(), "--task", "hidden", "-o", output)
    got = load_file(output)
    os.remove(output)
    assert sorted(got) == sorted("hidden.%d" % i for i in range(len(states))), sorted(got)
    worst = 0.0
    for i, state in enumerate(states):
        want = state.numpy()
        assert got["hidden.%d" % i].shape == want.shape
        worst = max(worst, float(numpy.abs(got["hidden.%d" % i] - want).max() / numpy.abs(want).max()))
    embedding = numpy.array(json.loads(run_locus(folder, ids[0].tolist(), "--task", "embed", "--json"))["embedding"])
    want = states[-1][0].numpy().mean(axis=0)
    if os.path.exists(os.path.join(folder, "modules.json")):
        want = want / numpy.linalg.norm(want)
    return worst, float(numpy.abs(embedding - want).max() / numpy.abs(want).max())


def compare_head(name, folder):
    """Logits, and the tags or probabilities made of them."""
    with open(os.path.join(folder, "config.json")) as file:
        (architecture,) = json.load(file)["architectures"]
    model = getattr(transformers, architecture).from_pretrained(folder, attn_implementation="eager").eval()
    worst = 0.0
    for length in LENGTHS:
        ids = torch.randint(0, 200, (1, length), generator=torch.Generator().manual_seed(length))
        with torch.no_grad():
            want = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
        got = json.loads(run_locus(folder, ids[0].tolist(), "--json"))
        worst = max(worst, float(numpy.abs(numpy.array(got["logits"]) - want.numpy()).max()))
        if "tags" in got:
            right = got["tags"] == [model.config.id2label[i] for i in want.argmax(dim=-1).tolist()]
        else:
            values = numpy.array([got["labels"][model.config.id2label[i]] for i in range(len(want))])
            right = numpy.abs(values - torch.softmax(want, 0).numpy()).max() < 1e-5
        if not right:
            print("FAILED", name, "other labels at length", length)
            return
    print("PASSED" if worst <= 1e-4 else "FAILED", name, "logits %.1e away" % worst, flush=True)


def compare_fill(name, folder):
    """Logits of all tokens and of some, the best tokens and their probabilities."""
    with open(os.path.join(folder, "config.json")) as file:
        (architecture,) = json.load(file)["architectures"]
    model = getattr(transformers, architecture).from_pretrained(folder, attn_implementation="eager").eval()
    mine, worst = Model(folder), 0.0
    for length in LENGTHS:
        most = min(200, model.config.vocab_size)
        ids = torch.randint(0, most, (1, length), generator=torch.Generator().manual_seed(length))
        with torch.no_grad():
            want = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
        got = mine.fill(ids[0])
        if name == "xlnet":  # a term for tokens of two types
            types = torch.tensor([[0] * (length // 2) + [1] * (length - length // 2)])
            types[0, -1] = 2
            with torch.no_grad():
                typed = model(input_ids=ids, token_type_ids=types).logits[0]
            worst = max(worst, float(numpy.abs(mine.fill(ids[0], types=types[0]) - typed.numpy()).max()))
            if length > 2 and (typed - want).abs().max() < 1e-3:
                print("FAILED", name + "-fill", "types change nothing")
                return
        rows = [length - 1, 0] if length > 1 else [0]
        if not numpy.array_equal(mine.fill(ids[0], rows), got[rows]):
            print("FAILED", name + "-fill", "rows alone differ at length", length)
            return
        best, share = top(got[0])
        values, places = torch.softmax(want[0].double(), 0).topk(5)
        if best.tolist() != places.tolist() or numpy.abs(share - values.numpy()).max() > 1e-6:
            print("FAILED", name + "-fill", "other tokens at length", length)
            return
        worst = max(worst, float(numpy.abs(got - want.numpy()).max()))
    print("PASSED" if worst <= 1e-4 else "FAILED", name + "-fill", "logits %.1e away" % worst, flush=True)


SOUND = dict(SMALL, vocab_size=None, conv_depthwise_kernel_size=5, hidden_act="gelu")
SOUNDS = {
    "wav2vec2-bert": ("Wav2Vec2Bert", dict(SOUND, left_max_position_embeddings=6, right_max_position_embeddings=3)),
    "wav2vec2-bert-relative": ("Wav2Vec2Bert", dict(SOUND, position_embeddings_type="relative")),
    "wav2vec2-bert-rotary": ("Wav2Vec2Bert", dict(SOUND, position_embeddings_type="rotary")),
    "wav2vec2-conformer": ("Wav2Vec2Conformer", dict(SOUND, vocab_size=32, layer_norm_eps=1e-3)),
    "wav2vec2-conformer-rotary": (
        "Wav2Vec2Conformer",
        dict(SOUND, vocab_size=32, position_embeddings_type="rotary", rotary_embedding_base=500),
    ),
}


XL = dict(d_model=48, n_layer=3, n_head=4, d_head=10, d_inner=100, vocab_size=200, d_embed=32, cutoffs=[20, 90])
MEMORIES = {
    "transfo-xl": dict(XL, div_val=2, mem_len=24, clamp_len=30),
    "transfo-xl-plain": dict(XL, div_val=1, mem_len=70, clamp_len=-1, same_length=False, untie_r=False),
    "transfo-xl-empty": dict(XL, div_val=4, mem_len=0, clamp_len=9, same_length=False),
}


def transfo_xl():
    """The module of transformers; it calls type_as(dtype=...), which torch does not have."""
    from transformers.models.deprecated import transfo_xl

    torch.Tensor.type_as = lambda self, other=None, dtype=None: self.to(dtype if other is None else other.dtype)
    return transfo_xl


def make_memory(folder, settings):
    torch.manual_seed(1)
    module = transfo_xl()
    model = module.modeling_transfo_xl.TransfoXLModel(
        module.configuration_transfo_xl.TransfoXLConfig(**settings)
    ).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm.weight" in parameter_name else 0.0, 0.1)
    os.makedirs(folder, exist_ok=True)
    tensors = {"transformer." + key: value.clone() for key, value in model.state_dict().items()}
    save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(dict(settings, model_type="transfo-xl"), file)
    return model


def compare_memory(name, folder, settings):
    """The first segment, which sees a memory of zeros, and a second one, which sees what went before."""
    model = make_memory(folder, settings)
    mine, worst = Model(folder), 0.0
    for length in LENGTHS:
        generator = torch.Generator().manual_seed(length)
        mems = memory = None
        for segment in range(2):
            ids = torch.randint(0, 200, (1, length), generator=generator)
            with torch.no_grad():
                found = model(ids, mems=mems, output_hidden_states=True)
            states = mine.states(ids[0], memory=memory)
            for got, want in zip(states, found.hidden_states, strict=True):
                worst = max(worst, float(numpy.abs(got - want[0].numpy()).max() / want.abs().max()))
            mems = found.mems
            if settings["mem_len"] > 0:
                before = memory or [numpy.zeros((settings["mem_len"], 48), "f4")] * 3
                memory = [numpy.concatenate([a, b])[-settings["mem_len"] :] for a, b in zip(before, states)]
    print("PASSED" if worst <= TOLERANCE else "FAILED", name, "%.1e of the largest element" % worst, flush=True)


def hidden_file(folder, *arguments):
    """What `locus run --task hidden` writes."""
    output = os.path.join(folder, "hidden.safetensors")
    subprocess.run([LOCUS, "run", folder, "--task", "hidden", *arguments, "-o", output], check=True)
    found = load_file(output)
    os.remove(output)
    return found


def compare_sound(name, folder):
    """From features on: their projection and the encoder."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    mine, worst = Model(folder), 0.0
    for length in LENGTHS:
        width = model.feature_projection.layer_norm.normalized_shape[0]
        features = torch.randn(1, length, width, generator=torch.Generator().manual_seed(length))
        with torch.no_grad():
            states = model.feature_projection(features)[0]
            states = model.encoder(states, output_hidden_states=True).hidden_states
        for got, want in zip(mine.states(features[0].numpy()), states, strict=True):
            worst = max(worst, float(numpy.abs(got - want[0].numpy()).max() / want.abs().max()))
        path = os.path.join(folder, "features.npy")
        numpy.save(path, features.numpy())
        written = hidden_file(folder, "--features", path)
        if not numpy.array_equal(written["hidden.3"][0], got):
            print("FAILED", name, "locus run --features gives something else")
            return
    print("PASSED" if worst <= TOLERANCE else "FAILED", name, "%.1e of the largest element" % worst, flush=True)


VITS = dict(hidden_size=48, num_hidden_layers=3, num_attention_heads=2, ffn_dim=100, vocab_size=200, flow_size=20)
VOICES = {"vits": VITS, "vits-other": dict(VITS, window_size=7, ffn_kernel_size=4, use_bias=False, hidden_act="gelu")}


def vits_encoder(config):
    from transformers.models.vits.modeling_vits import VitsTextEncoder

    return VitsTextEncoder(transformers.VitsConfig(**config)).eval()


def make_vits(folder, settings):
    torch.manual_seed(1)
    encoder = vits_encoder(settings)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.1)
    os.makedirs(folder, exist_ok=True)
    tensors = {"text_encoder." + name: value.contiguous() for name, value in encoder.state_dict().items()}
    save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(dict(settings, model_type="vits", architectures=["VitsModel"]), file)


def compare_vits(name, folder):
    """The text encoder alone: states and the prior."""
    with open(os.path.join(folder, "config.json")) as file:
        encoder = vits_encoder(json.load(file))
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    state = {key[len("text_encoder.") :]: torch.tensor(value) for key, value in tensors.items()}
    encoder.load_state_dict(state)
    mine, worst = Model(folder), 0.0
    for length in LENGTHS:
        ids = torch.randint(0, encoder.config.vocab_size, (1, length), generator=torch.Generator().manual_seed(length))
        mask = torch.ones(1, length, 1)
        with torch.no_grad():
            want = encoder(ids, mask, mask[:, :, 0], output_hidden_states=True, return_dict=True)
        got = mine.labels(ids[0], 2 * encoder.config.flow_size)
        written = hidden_file(folder, "--ids", ",".join(map(str, ids[0].tolist())))
        if not numpy.array_equal(written["prior_means"][0], got[:, : encoder.config.flow_size]):
            print("FAILED", name, "locus run writes other means")
            return
        prior = torch.cat([want.prior_means, want.prior_log_variances], dim=2)[0]
        pairs = list(zip(mine.states(ids[0]), (state[0] for state in want.hidden_states))) + [(got, prior)]
        for mine_state, theirs in pairs:
            worst = max(worst, float(numpy.abs(mine_state - theirs.numpy()).max() / theirs.abs().max()))
    print("PASSED" if worst <= TOLERANCE else "FAILED", name, "%.1e of the largest element" % worst, flush=True)


def compare_published(name, folder, kind, config):
    """With tokens of two types; logits where there is a head."""
    model = published.make(folder, kind, config)
    mine, worst = Model(folder), 0.0
    for length in LENGTHS:
        ids = torch.randint(0, config["vocab_size"], (length,), generator=torch.Generator().manual_seed(length))
        types = torch.arange(length) // 4 % 2
        with torch.no_grad():
            pairs = list(zip(mine.states(ids, types=types), model(ids, types), strict=True))
            if "architectures" in config:
                pairs.append((mine.fill(ids, types=types), model.logits(pairs[-1][1])))
        for got, want in pairs:
            worst = max(worst, float(numpy.abs(got - want.numpy()).max() / want.abs().max()))
    print("PASSED" if worst <= TOLERANCE else "FAILED", name, "%.1e of the largest element" % worst, flush=True)


def compare(name, folder):
    try:
        with open(os.path.join(folder, "config.json")) as file:
            architecture, *_ = json.load(file)["architectures"]
        kind = getattr(transformers, architecture) if "Encoder" in architecture else transformers.AutoModel
        model = kind.from_pretrained(folder, attn_implementation="eager").eval().float()
        found = [distances(folder, model, length) for length in LENGTHS]
    except Exception as problem:  # whatever it is, the model failed
        print("FAILED", name, " ".join(str(problem).split()))
        return
    worst = max(max(pair) for pair in found)
    print("PASSED" if worst <= TOLERANCE else "FAILED", name, "%.1e of the largest element" % worst, flush=True)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, (family, settings) in RANDOM.items():
        path = os.path.join(folder, name)
        make_random(path, family, settings)
        compare(name, path)
    sample = ("bert-classify", "electra-classify", "deberta-v3-tokens")
    for name in sample if os.environ.get("LOCUS_TEST_SAMPLE") else HEADS:
        family, settings = HEADS[name]
        path = os.path.join(folder, name)
        make_random(path, family, settings)
        compare_head(name, path)
    for name, settings in MEMORIES.items():
        compare_memory(name, os.path.join(folder, name), settings)
    for name, (family, settings) in SOUNDS.items():
        path = os.path.join(folder, name)
        make_random(path, family, settings)
        compare_sound(name, path)
    for name, settings in VOICES.items():
        path = os.path.join(folder, name)
        make_vits(path, settings)
        compare_vits(name, path)
    for name, settings in published.MODELS.items():
        compare_published(name, os.path.join(folder, name), *settings)
    for name in ("bert", "electra", "deberta-v3") if os.environ.get("LOCUS_TEST_SAMPLE") else FILLS:
        family, settings = FILLS[name]
        path = os.path.join(folder, name + "-fill")
        make_random(path, family, settings)
        compare_fill(name, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
