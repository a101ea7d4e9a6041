# SPDX-License-Identifier: Apache-2.0
"""Models that the installed transformers lacks, by their published definitions, small and with random weights."""

import json
import os

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional


def attention(q, k, v, bias=0.0):
    """[tokens, heads, head_dim] each; bias: [heads, tokens, tokens]."""
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + bias
    return (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)


class NomicBert(nn.Module):
    """github.com/nomic-ai/contrastors; the states of every layer."""

    ACTIVATIONS = {"swiglu": functional.silu, "geglu": functional.gelu, "gelu": functional.gelu}

    def __init__(self, config):
        super().__init__()
        self.config = c = config
        width, multiple = c["n_embd"], c.get("pad_vocab_size_multiple", 1)
        words = -(-c["vocab_size"] // multiple) * multiple
        self.gated = c["activation_function"] != "gelu"
        inner = c.get("n_inner") or (8 * width // 3 if self.gated else 4 * width)
        inner = -(-inner // 256) * 256 if self.gated else inner
        self.embeddings = nn.ModuleDict(
            {"word_embeddings": nn.Embedding(words, width), "token_type_embeddings": nn.Embedding(2, width)}
        )
        self.emb_ln = self.norm()
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(self.layer(width, inner) for _ in range(c["n_layer"]))})

    def norm(self):
        return nn.LayerNorm(self.config["n_embd"], eps=self.config["layer_norm_epsilon"])

    def layer(self, width, inner):
        c = self.config
        qkv, one, two = (c.get(key, True) for key in ("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"))
        first = {name: nn.Linear(width, inner, bias=one) for name in (("fc11", "fc12") if self.gated else ("fc1",))}
        maps = {"Wqkv": nn.Linear(width, 3 * width, bias=qkv), "out_proj": nn.Linear(width, width, bias=qkv)}
        return nn.ModuleDict(
            {
                "attn": nn.ModuleDict(maps),
                "mlp": nn.ModuleDict({**first, "fc2": nn.Linear(inner, width, bias=two)}),
                "norm1": self.norm(),
                "norm2": self.norm(),
            }
        )

    def turn(self, x):
        c, tokens = self.config, len(x)
        columns = int(x.shape[-1] * c["rotary_emb_fraction"])
        base, factor, most = c.get("rotary_emb_base", 10000), c.get("rotary_scaling_factor"), c.get("max_trained_positions", 2048)
        if factor and tokens > most:
            base *= (factor * tokens / most - (factor - 1)) ** (columns / (columns - 2))
        angles = torch.outer(torch.arange(tokens), 1.0 / base ** (torch.arange(0, columns, 2) / columns))
        cos, sin = angles.cos()[:, None].to(x.dtype), angles.sin()[:, None].to(x.dtype)
        y = x.clone()
        if c.get("rotary_emb_interleaved"):
            a, b = slice(0, columns, 2), slice(1, columns, 2)
        else:
            a, b = slice(0, columns // 2), slice(columns // 2, columns)
        y[..., a] = x[..., a] * cos - x[..., b] * sin
        y[..., b] = x[..., b] * cos + x[..., a] * sin
        return y

    def forward(self, ids, types=None):
        types = torch.zeros_like(ids) if types is None else types
        e, activation = self.embeddings, self.ACTIVATIONS[self.config["activation_function"]]
        h = self.emb_ln(e["word_embeddings"](ids) + e["token_type_embeddings"](types))
        states = [h]
        for layer in self.encoder["layers"]:
            maps, mlp = layer["attn"], layer["mlp"]
            q, k, v = maps["Wqkv"](h).view(len(ids), 3, self.config["n_head"], -1).unbind(1)
            h = layer["norm1"](h + maps["out_proj"](attention(self.turn(q), self.turn(k), v)))
            inner = mlp["fc11"](h) * activation(mlp["fc12"](h)) if self.gated else activation(mlp["fc1"](h))
            h = layer["norm2"](h + mlp["fc2"](inner))
            states.append(h)
        return states


class Filling(nn.Module):
    """BERT's head that fills masks; logits by the word table."""

    def __init__(self, words, width):
        super().__init__()
        self.transform = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": nn.LayerNorm(width, eps=1e-12)})
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, h, words):
        return self.transform["LayerNorm"](functional.gelu(self.transform["dense"](h))) @ words.T + self.bias


class JinaBert(nn.Module):
    """huggingface.co/jinaai/jina-bert-implementation; the states of every layer."""

    def __init__(self, config):
        super().__init__()
        self.config = c = config
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(c["vocab_size"], width),
                "token_type_embeddings": nn.Embedding(2, width),
                "LayerNorm": self.norm(),
            }
        )
        self.encoder = nn.ModuleDict(
            {"layer": nn.ModuleList(self.layer(width, inner) for _ in range(c["num_hidden_layers"]))}
        )
        if "architectures" in c:
            self.cls = nn.ModuleDict({"predictions": Filling(c["vocab_size"], width)})

    def logits(self, h):
        return self.cls["predictions"](h, self.embeddings["word_embeddings"].weight)

    def norm(self):
        return nn.LayerNorm(self.config["hidden_size"], eps=1e-12)

    def layer(self, width, inner):
        maps = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")})
        output = nn.ModuleDict({"dense": nn.Linear(width, width), "LayerNorm": self.norm()})
        mlp = {"gated_layers": nn.Linear(width, 2 * inner, bias=False), "wo": nn.Linear(inner, width), "layernorm": self.norm()}
        return nn.ModuleDict({"attention": nn.ModuleDict({"self": maps, "output": output}), "mlp": nn.ModuleDict(mlp)})

    def slopes(self, heads):
        power = 2 ** (heads.bit_length() - 1)
        first = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
        return first + ([] if heads == power else self.slopes(2 * power)[0::2][: heads - power])

    def forward(self, ids, types=None):
        types = torch.zeros_like(ids) if types is None else types
        e, heads = self.embeddings, self.config["num_attention_heads"]
        activation = functional.gelu if self.config["feed_forward_type"] == "geglu" else functional.relu
        h = e["LayerNorm"](e["word_embeddings"](ids) + e["token_type_embeddings"](types))
        places = torch.arange(len(ids), dtype=h.dtype)
        bias = -torch.tensor(self.slopes(heads), dtype=h.dtype)[:, None, None] * (places[:, None] - places).abs()
        states = [h]
        for layer in self.encoder["layer"]:
            parts, output, mlp = layer["attention"]["self"], layer["attention"]["output"], layer["mlp"]
            q, k, v = (parts[name](h).view(len(ids), heads, -1) for name in ("query", "key", "value"))
            h = output["LayerNorm"](output["dense"](attention(q, k, v, bias)) + h)
            gated, plain = mlp["gated_layers"](h).chunk(2, -1)
            h = mlp["layernorm"](mlp["wo"](activation(gated) * plain) + h)
            states.append(h)
        return states


JINA = dict(
    model_type="bert", position_embedding_type="alibi", hidden_size=48, num_hidden_layers=3, intermediate_size=100,
    vocab_size=200, max_position_embeddings=64,
)  # fmt: skip
NOMIC = dict(model_type="nomic_bert", n_embd=48, n_layer=3, n_head=4, vocab_size=198, layer_norm_epsilon=1e-12)
BARE = dict(qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False)
MODELS = {
    "jina-bert": (JinaBert, dict(JINA, num_attention_heads=4, feed_forward_type="geglu")),
    "jina-bert-fill": (
        JinaBert,
        dict(JINA, num_attention_heads=4, feed_forward_type="geglu", architectures=["JinaBertForMaskedLM"]),
    ),
    "jina-bert-six-heads": (JinaBert, dict(JINA, num_attention_heads=6, feed_forward_type="reglu")),
    "nomic-bert": (
        NomicBert,
        dict(
            NOMIC, **BARE, activation_function="swiglu", rotary_emb_fraction=1.0, rotary_emb_base=1000, n_inner=256,
            pad_vocab_size_multiple=8,
        ),
    ),
    "nomic-bert-geglu": (
        NomicBert,
        dict(NOMIC, activation_function="geglu", rotary_emb_fraction=1.0, mlp_fc2_bias=False, rotary_emb_interleaved=True),
    ),
    "nomic-bert-part": (
        NomicBert,
        dict(
            NOMIC, activation_function="gelu", rotary_emb_fraction=0.5, rotary_scaling_factor=2.0, max_trained_positions=16,
            qkv_proj_bias=False,
        ),
    ),
}  # fmt: skip


def make(folder, kind, config):
    """The model, as it lies in the folder."""
    torch.manual_seed(1)
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    os.makedirs(folder, exist_ok=True)
    tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    return model
