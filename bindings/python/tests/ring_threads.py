# SPDX-License-Identifier: Apache-2.0
"""A rank that trains a step: destroy_process_group ends the threads of the group. (An optimizer imports torch._dynamo, which
kept the group before locus.torch saw to it.)"""

from pathlib import Path

import torch
import torch.distributed as dist
from locus.torch import ring_attend


def gloo_threads():
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return [name for name in names if "gloo" in name]


dist.init_process_group("gloo")
weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.Adam([weight])
q = torch.randn(1, 2, 6, 8) * weight
ring_attend(q, q, q, scheme="alibi").sum().backward()
dist.all_reduce(weight.grad)
optimizer.step()
assert gloo_threads(), "the threads of gloo have another name: this test sees nothing"
dist.barrier()
dist.destroy_process_group()
assert not gloo_threads(), gloo_threads()
print("no thread is left", flush=True)
