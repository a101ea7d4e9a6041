# SPDX-License-Identifier: Apache-2.0
"""What ``--only`` can name: functions of (Shape, options), each of which makes one contest."""

from . import calls, families, generation, hub, kernels, models, modules, runtime, starts

CONTESTS = {
    "plain": (kernels.plain,),
    "dense": (kernels.dense_bias,),
    "learned": (kernels.learned_bias,),
    "t5": (kernels.t5,),
    "alibi": (kernels.alibi,),
    "shaw": (kernels.shaw,),
    "xl-core": (kernels.transformer_xl,),
    "xlnet": (modules.xlnet,),
    "deberta-core": (kernels.deberta,),
    "deberta": (modules.deberta,),
    "bert": (modules.bert,),
    "conformer": (modules.conformer,),
    "models": (models.deberta, models.t5),
    "hub": (hub.llama, hub.llama_decoding, hub.gemma3, hub.gpt2, hub.bert),
    "packed": (hub.packed,),
    "calls": (calls.smallest, calls.short_texts),
    "families": (
        families.bert_tiny, families.minilm, families.albert, families.t5_small, families.mpnet, families.deberta_xsmall,
    ),
    "runtime": (
        runtime.minilm, runtime.bert_base, runtime.mpnet, runtime.t5, runtime.deberta, runtime.deberta_base,
    ),
    "sentences": (runtime.minilm_sentences, runtime.deberta_sentences),
    "generation": (generation.t5_greedy, generation.marian_beams),
    "starts": (starts.first_result, starts.tokenizing),
}  # fmt: skip

# Whole models, several minutes, and calls without work: only if asked for.
BY_NAME = {"hub", "packed", "calls", "families", "runtime", "sentences", "generation", "starts"}
SIZELESS = {"packed", "calls", "sentences", "generation", "starts"}  # one contest, whatever --sizes says
