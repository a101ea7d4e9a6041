# SPDX-License-Identifier: Apache-2.0
"""What `locus explain` says about the heads of small models with random weights, against transformers in float64:
attention weights of the encoder, of the decoder and of the decoder to the encoder, T5's bias, and that terms add up.

explain.py FOLDER    where the models are put

One line per model: PASSED or FAILED, its name, what was found."""

import json
import os
import shutil
import subprocess
import sys

import numpy
import torch
import transformers

LOCUS = os.environ["LOCUS"]
TOKENIZERS = "tests/data/tokenizers"
TEXT = "the cat sat on the mat and a dog looked at it"
TOLERANCE = 2e-5  # q and k are float32

T5 = dict(d_model=48, num_layers=2, num_heads=3, d_kv=10, d_ff=60, vocab_size=440, relative_attention_num_buckets=8,
          relative_attention_max_distance=9)  # fmt: skip
MARIAN = dict(d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=3,
              encoder_ffn_dim=60, decoder_ffn_dim=40, vocab_size=520, max_position_embeddings=64, pad_token_id=1,
              eos_token_id=0, decoder_start_token_id=1)  # fmt: skip
XLNET = dict(d_model=48, n_layer=2, n_head=4, d_inner=60, vocab_size=440)

# name: class of transformers, configuration, tokenizer
MODELS = {
    "t5": ("T5ForConditionalGeneration", T5, "t5"),
    "t5-gated": ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", num_decoder_layers=3), "t5"),
    "mt5": ("MT5ForConditionalGeneration", T5, "t5"),
    "umt5": ("UMT5ForConditionalGeneration", T5, "t5"),
    "marian": ("MarianMTModel", MARIAN, "marian"),
    "xlnet": ("XLNetModel", XLNET, "xlnet-files"),
    "xlnet-clamp": ("XLNetModel", dict(XLNET, clamp_len=5, untie_r=True), "xlnet-files"),
}


def run(*arguments):
    found = subprocess.run([LOCUS, *arguments], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def make(folder, kind, config, tokenizer):
    torch.manual_seed(7)
    made = getattr(transformers, kind)
    model = made(made.config_class(**config, attn_implementation="eager")).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # sinusoids stay what they are
                parameter.copy_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    for file in os.listdir(f"{TOKENIZERS}/{tokenizer}"):
        shutil.copy(f"{TOKENIZERS}/{tokenizer}/{file}", folder)
    return model.double()


class Judge:
    def __init__(self, folder, kind, config, tokenizer):
        self.folder, self.config = folder, config
        self.model = make(folder, kind, config, tokenizer)
        found = run("tokenize", folder, TEXT, "--json")
        self.ids = torch.tensor([found["ids"]])
        self.types = torch.tensor([found["type_ids"]]) if "type_ids" in found else None
        self.decoder_ids = torch.tensor([[5, 17, 3, 44, 9, 21, 8, 12, 30, 2, 7]])
        self.worst, self.heads = 0.0, 0

    def explain(self, stack, *more):
        decoder = ["--decoder-ids", ",".join(map(str, self.decoder_ids[0].tolist()))] if stack != "encoder" else []
        return run("explain", self.folder, "--text", TEXT, "--stack", stack, *decoder, *more, "--json")

    def near(self, got, want, what):
        away = float(numpy.abs(numpy.asarray(got) - numpy.asarray(want)).max())
        self.worst = max(self.worst, away)
        assert away < TOLERANCE, (what, away)

    def query(self, stack, layer, head, query, want):
        found = self.explain(stack, "--layer", str(layer), "--head", str(head), "--query", str(query))
        seen = [pair for pair in found["pairs"] if pair["visible"]]
        for pair in seen:
            assert abs(sum(pair["terms"]) - pair["score"]) <= 1e-12 * (1 + abs(pair["score"])), ("sum", pair)
        weights = [pair["weight"] if pair["visible"] else 0.0 for pair in found["pairs"]]
        self.near(weights, want[layer][0, head, query], (stack, layer, head, query))
        self.heads += 1
        return found

    def stack(self, stack, want):
        for layer in range(len(want)):
            heads, queries = want[layer].shape[1], want[layer].shape[2]
            for head in range(heads):
                found = self.query(stack, layer, head, (3 * layer + head + 1) % queries, want)
        names = [term["name"] for term in found["terms"]]
        shares = self.explain(stack)
        assert [term["name"] for term in shares["terms"]] == names and shares.get("stack", "encoder") == stack
        assert len(shares["terms"][0]["share"]) == len(want), "layers of the shares"
        if stack == "cross":
            assert len(found["tokens"]) == self.ids.shape[1] and found["pairs"][0]["distance"] is None
            assert len(found["query_tokens"]) == self.decoder_ids.shape[1] and names == ["content"]
        return names

    def bias(self, stack):
        """The bias of every head by distance, as transformers computes it; hidden distances are not there."""
        reach = 12
        drawn = run("plot", self.folder, "--what", "bias", "--stack", stack, "-n", str(reach), "--json")
        layers = getattr(self.model, stack).block
        panels = [panel for panel in drawn["panels"] if panel["kind"] == "heatmap"]
        each = self.model.config.model_type == "umt5"
        assert len(panels) == (len(layers) if each else 1), "tables"
        for layer, panel in zip(layers, panels):
            attention = layer.layer[0].SelfAttention
            bias = attention.compute_bias(reach + 1, reach + 1)[0].detach().numpy()
            before = [bias[:, reach, reach - d] for d in range(reach + 1)]
            after = [bias[:, 0, d] for d in range(reach, 0, -1)] if stack == "encoder" else []
            self.near(panel["values"], numpy.stack(after + before, axis=1), ("bias", stack))

    def judge(self):
        kind = self.model.config.model_type
        with torch.no_grad():
            if kind == "xlnet":
                want = self.model(self.ids, token_type_ids=self.types, output_attentions=True)
                names = self.stack("encoder", want.attentions)
                assert "bias_dense" in names and "content-position" in names, names
                return
            want = self.model(self.ids, decoder_input_ids=self.decoder_ids, output_attentions=True)
        self.stack("encoder", want.encoder_attentions)
        names = self.stack("decoder", want.decoder_attentions)
        self.stack("cross", want.cross_attentions)
        assert ("bias" in names) == ("t5" in kind), names
        for stack in ("encoder", "decoder"):
            if "t5" in kind:
                self.bias(stack)


def main(where):
    for name, entry in MODELS.items():
        judge = None
        try:
            judge = Judge(os.path.join(where, "explain-" + name), *entry)
            judge.judge()
            print(f"PASSED explain-{name} {judge.heads} heads, weights and biases within {judge.worst:.1e}")
        except AssertionError as error:
            print(f"FAILED explain-{name} {error!r}"[:400].replace("\n", " "))
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
