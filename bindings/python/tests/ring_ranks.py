# SPDX-License-Identifier: Apache-2.0
"""Under torchrun: every golden call over the ranks against one process. Prints the number of calls, or what failed."""

import pathlib
import sys

import locus
import torch
import torch.distributed as dist
from locus.torch import ring_attend, ring_rows

ROWS = {name: 2 for name in ("q", "k", "v", "pos_query", "gate", "mask", "bias_dense")}
ROWS.update(key_mask=1, q_positions=0, k_positions=0)
WHOLE = ("causal", "window_left", "window_right", "query_offset", "dropout_seed")


def settings_of(case):
    found = {}
    for name, value in case.settings.items():
        if name in WHOLE:
            found[name] = int(value)
        elif name in ("scale", "dropout", "softcap"):
            found[name] = float(value)
        else:
            found[name] = next(kind for kind in (as_int, as_float, str) if kind(value) is not None)(value)
    return found


def as_int(value):
    return int(value) if value.lstrip("-").isdigit() else None


def as_float(value):
    try:
        return float(value)
    except ValueError:
        return None


def spread(rows, rank, ranks, layout):
    """Rows of the rank; the uneven way leaves rank 0 with none."""
    if layout != "uneven":
        return ring_rows(rows, layout=layout)
    each = rows // 3
    if rank == 0:
        return torch.arange(0)
    return torch.arange((rank - 1) * each, rank * each if rank < ranks - 1 else rows)


def compare(name, got, want, tolerance):
    scale = max(1.0, want[want.isfinite()].abs().max().item() if want.isfinite().any() else 1.0)
    same = torch.isclose(got, want, rtol=0.0, atol=tolerance * scale, equal_nan=True)
    assert same.all(), f"{name}: {(got - want).abs().max().item() / scale:.3g}"


def run(case, layout):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    settings = settings_of(case)
    whole = {name: torch.tensor(array) for name, array in case.tensors.items()}
    seed = settings.pop("dropout_seed", 0)
    out, lse = locus.attend(**case.tensors, **settings, dropout_seed=seed, scheme=case.scheme, return_lse=True)
    dout = torch.randn(out.shape, generator=torch.Generator().manual_seed(3))
    want = locus.attend_backward(
        dout.numpy(), **case.tensors, **settings, dropout_seed=seed, scheme=case.scheme
    )
    parts, held = {}, {}
    for name, t in whole.items():
        rows = ROWS.get(name)
        if rows is None:
            parts[name] = t.clone()
            continue
        if name.endswith("positions"):
            rows = t.dim() - (2 if case.scheme in ("sam", "swin") or int(settings.get("axes", 1)) > 1 else 1)
        held[name] = (rows, spread(t.shape[rows], rank, ranks, layout))
        parts[name] = t.index_select(*held[name])
    leaves = [t.requires_grad_() for name, t in parts.items() if name in want]
    got, got_lse = ring_attend(
        **parts,
        **settings,
        scheme=case.scheme,
        seed=torch.tensor([seed]),
        layout="contiguous" if layout == "uneven" else layout,
        return_lse=True,
    )
    mine = held["q"][1]
    compare("out", got, torch.tensor(out).index_select(2, mine), 5e-6)
    compare("lse", got_lse, torch.tensor(lse).index_select(2, mine), 5e-6)
    (got * dout.index_select(2, mine)).sum().backward()
    for name, array in want.items():
        grad = parts[name].grad
        grad = torch.zeros_like(parts[name]) if grad is None else grad
        expected = torch.tensor(array)
        if name in held:
            expected = expected.index_select(*held[name])
        else:
            dist.all_reduce(grad)
        compare("grad." + name, grad, expected, 2e-5)
    return len(leaves) > 0


def is_refused(case):
    return case.scheme == "cope" or any(name in case.tensors for name in ("log_gate", "log_decay"))


def refuse_sums(case):
    """Gates and decays need the sums of all positions in between, counted positions the keys."""
    try:
        ring_attend(**{name: torch.tensor(array) for name, array in case.tensors.items()}, scheme=case.scheme)
    except locus.LocusError as error:
        assert ": ring_attend takes no " in str(error), error
    else:
        raise AssertionError("accepted")


def refuse():
    """What one rank alone has wrong is an error of all."""
    q = torch.zeros(1, 1, 4, 2)
    try:
        ring_attend(q, q, q, causal=dist.get_rank() == 1)
    except locus.LocusError as error:
        assert str(error) == "rank 1: causal: found True, another than on rank 0", error
    else:
        raise AssertionError("accepted")


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    count = 0
    for path in sys.argv[1:]:
        case = locus.case.load(pathlib.Path(path))
        shape = case.tensors["q"].shape if case.kind == "attend" else None
        if shape is None or "q_offsets" in case.tensors or min(shape[2], case.tensors["k"].shape[2]) < dist.get_world_size():
            continue
        if is_refused(case):
            refuse_sums(case)
            continue
        for layout in ("contiguous", "zigzag", "uneven"):
            try:
                count += run(case, layout)
            except AssertionError as error:
                raise AssertionError(f"{path} {layout}: {error}") from None
    refuse()
    if dist.get_rank() == 0:
        print("calls", count)
    dist.barrier()  # nobody leaves while another still listens
    dist.destroy_process_group()


main()
