# SPDX-License-Identifier: Apache-2.0
"""What ``--only`` can name: functions of (Shape, options), each of which makes one contest."""

from . import hub, kernels, models, modules, runtime

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
    "runtime": (runtime.minilm, runtime.bert_base, runtime.deberta),
}

BY_NAME = {"hub", "runtime"}  # whole models, several minutes: only if asked for
