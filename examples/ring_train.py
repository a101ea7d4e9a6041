# SPDX-License-Identifier: Apache-2.0
"""Context-parallel training: one sequence over all ranks.  torchrun --nproc-per-node 2 examples/ring_train.py"""

import torch
import torch.distributed as dist
from locus.torch import ring_attend, ring_rows

dist.init_process_group("gloo")
torch.manual_seed(0)  # the same weights and data on every rank
T, H, D = 256, 4, 16
qkv, last = torch.nn.Linear(H * D, 3 * H * D), torch.nn.Linear(H * D, H * D)
bias = torch.nn.Parameter(torch.zeros(32, H))  # T5's table
parameters = [*qkv.parameters(), *last.parameters(), bias]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
x = torch.randn(1, T, H * D)
rows = ring_rows(T, layout="zigzag")  # of this rank
mine, target = x[:, rows], x.roll(1, 1)[:, rows]  # the token before
for step in range(20):
    q, k, v = qkv(mine).view(1, -1, 3, H, D).permute(2, 0, 3, 1, 4)
    out = ring_attend(q, k, v, layout="zigzag", scheme="t5", bias=bias, causal=True, bidirectional=0)
    loss = (last(out.transpose(1, 2).flatten(2)) - target).square().sum() / (T * H * D)
    optimizer.zero_grad()
    loss.backward()
    for p in parameters:  # sums over ranks: losses add up
        dist.all_reduce(p.grad)
    optimizer.step()
    dist.all_reduce(loss.detach())
    if dist.get_rank() == 0 and step % 5 == 4:
        print(f"step {step + 1}  loss {loss.item():.4f}")
dist.barrier()  # nobody leaves while another still listens
dist.destroy_process_group()
