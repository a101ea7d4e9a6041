# SPDX-License-Identifier: Apache-2.0
"""The attention sublayer f(x, i): positions, projections, attention, output projection."""

from . import _native
from ._call import empty, gradients_for, half_of, shape_of, split


def _prepare(x, w_q, w_k, w_v, w_o, heads, causal, scale, dropout, scheme, more):
    tensors = {"x": x, "w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}
    settings = {"heads": heads, "causal": causal, "scale": scale, "dropout": dropout}
    return split(scheme, tensors, settings, more)


def _forward(config, tensors, out, lse):
    batch_rows = shape_of(tensors["x"])[:2]
    width = shape_of(tensors["w_o"])[:1] if tensors["w_o"] is not None else shape_of(tensors["w_v"])[:1]
    if out is None:
        out = empty(batch_rows + width, half_of(tensors["x"]))
    if lse is None:
        lse = empty(batch_rows[:1] + (max(int(config["heads"]), 0),) + batch_rows[1:])
    return out, lse, _native.layer_forward(config, tensors, out, lse)


def layer(x, w_q, w_k, w_v, w_o=None, *, heads, scheme="none", causal=False, scale=None, dropout=0.0,
          return_lse=False, out=None, lse=None, **more):
    """The attention sublayer as the papers write it; no residual, no norm.

    >>> y = locus.layer(x, w_q, w_k, w_v, w_o, heads=8, scheme="t5", bias=table)
    >>> y = locus.layer(x, w_q, w_k, w_v, w_o, heads=8, scheme="transformer_xl", w_r=w_r, u=u, w=w,
    ...                 memory=earlier, causal=True)

    x [B,T,E]; w_q, w_k, w_v [H*D,E] and w_o [E,H*D] are stored [out,in], y = x W^T + b. Optional b_q, b_k,
    b_v, b_o, and memory [B,M,E], from which keys and values also come. Masks, windows and the scheme's
    own tensors and options as in `attend` and locus.schemes(). Returns [B,T,E]; without w_o [B,T,H*D].
    Every floating array may be float32, float16 or bfloat16 (`sink`: float32), in any mix; sums are float32, and
    an `out` of half precision, which x of NumPy gives, is rounded once.
    """
    config, tensors = _prepare(x, w_q, w_k, w_v, w_o, heads, causal, scale, dropout, scheme, more)
    out, lse, _ = _forward(config, tensors, out, lse)
    return (out, lse) if return_lse else out


def layer_backward(dout, x, w_q, w_k, w_v, w_o=None, *, heads, scheme="none", causal=False, scale=None,
                   dropout=0.0, wrt=None, dlse=None, **more):
    """Gradients of sum(out * dout), and of sum(lse * dlse) where dlse is given, where out is what `layer` gives for the same arguments.

    >>> grads = locus.layer_backward(dout, x, w_q, w_k, w_v, w_o, heads=8, scheme="t5", bias=table)
    >>> grads["x"], grads["w_q"], grads["bias"]
    """
    config, tensors = _prepare(x, w_q, w_k, w_v, w_o, heads, causal, scale, dropout, scheme, more)
    _, _, saved = _forward(config, tensors, None, None)
    grads = gradients_for(tensors, wrt)
    _native.layer_backward(config, tensors, saved, dout, grads, False, dlse)
    return grads
