# SPDX-License-Identifier: Apache-2.0
"""Attention on given q, k, v."""

from . import _native
from ._call import empty, gradients_for, half_of, shape_of, split


def _prepare(q, k, v, mask, dropout, causal, scale, scheme, more):
    settings = {"dropout": dropout, "causal": causal, "scale": scale}
    return split(scheme, {"q": q, "k": k, "v": v, "mask": mask}, settings, more)


def _results(q, v, out, lse):
    shape = shape_of(q)
    rows, width = shape[:3], shape_of(v)[-1:]
    return empty(rows + width, half_of(q)) if out is None else out, empty(rows) if lse is None else lse


def attend(q, k, v, mask=None, dropout=0.0, causal=False, scale=None, *, scheme="none", return_lse=False,
           out=None, lse=None, **more):
    """Attention with positions: softmax(scale q k^T + positions) v.

    >>> locus.attend(q, k, v, scheme="t5", bias=table, causal=True, buckets=32, max_distance=128,
    ...              bidirectional=0)
    >>> locus.attend(q, k, v, scheme="rope", key_mask=lengths[:, None] > np.arange(n))
    >>> out, lse = locus.attend(q, k, v, scheme="alibi", return_lse=True)

    Arrays are anything with the buffer protocol or __dlpack__ on the CPU (NumPy, PyTorch, JAX ...),
    float32, float16 or bfloat16, of any strides but negative ones or a last axis that is not dense. They are
    not copied; sums are float32, and an `out` of half precision, which q of NumPy gives, is rounded once.

    q [B,H,Tq,D], k [B,Hk,Tk,D], v [B,Hk,Tk,Dv]; head h reads KV head h // (H // Hk).
    The order of arguments and the meaning of masks are those of PyTorch's scaled_dot_product_attention:

    mask         [B or 1, H or 1, Tq, Tk] of bool, or its last axes: True = the pair takes part.
    dropout      p in [0, 1); `dropout_seed` chooses which weights.
    causal       query m sees keys n <= m, where m counts from `query_offset`, which is Tk - Tq unless
                 given: the last query sees the last key. PyTorch's is_causal counts from 0 instead:

                     Tq = 2, Tk = 4    locus, causal    PyTorch, is_causal
                     query 0           1 1 1 0          1 0 0 0
                     query 1           1 1 1 1          1 1 0 0

                 The two agree when Tq = Tk; `query_offset=0` gives PyTorch's.
    scale        multiplies the content and position products; None: the scheme's own.
    scheme       one of locus.schemes(); its tensors and options are keywords, too.
    key_mask     [B,Tk] of bool: True = the key takes part.
    bias_dense   [B or 1, H or 1, Tq, Tk], or its last axes, added to the logits; -inf masks the pair.
    window_left, window_right   keep keys with -left <= n - m <= right; -1: no limit.
    threads, isa, path          how to compute; see locus.set_threads, locus.cpu_info.
    out, lse     arrays to write to, instead of new NumPy arrays.

    Returns out [B,H,Tq,Dv]; with return_lse also the logarithm of each row's sum, [B,H,Tq]. A row that
    sees no key gives 0, and -inf in lse. Refusals raise LocusError with the library's own line.
    """
    config, tensors = _prepare(q, k, v, mask, dropout, causal, scale, scheme, more)
    out, lse = _results(q, v, out, lse)
    _native.forward(config, tensors, out, lse)
    return (out, lse) if return_lse else out


def attend_backward(dout, q, k, v, mask=None, dropout=0.0, causal=False, scale=None, *, scheme="none",
                    out=None, lse=None, wrt=None, grads=None, accumulate=False, dlse=None, **more):
    """Gradients of sum(out * dout), where out is what `attend` gives for the same arguments; with dlse [B,H,Tq], of
    sum(out * dout) + sum(lse * dlse).

    >>> grads = locus.attend_backward(dout, q, k, v, scheme="t5", bias=table, causal=True)
    >>> grads["q"], grads["bias"]

    `out` and `lse` from the forward pass spare computing them again. `wrt` names the tensors to
    differentiate (None: all but the masks); `grads` is a dict of arrays to write to instead, or to add
    to with accumulate=True. Returns the dict.
    """
    config, tensors = _prepare(q, k, v, mask, dropout, causal, scale, scheme, more)
    if out is None or lse is None:
        rows, width = shape_of(q)[:3], shape_of(v)[-1:]
        out, lse = empty(rows + width), empty(rows)  # F32 whatever q is: nobody sees it, and it is not rounded
        _native.forward(config, tensors, out, lse)
    if grads is None:
        grads = gradients_for(tensors, wrt)
        accumulate = False
    _native.backward(config, tensors, out, lse, dout, grads, accumulate, dlse)
    return grads
