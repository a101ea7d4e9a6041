# SPDX-License-Identifier: Apache-2.0
"""locus.torch.nn: every scheme against the library's own layer, and what a module must be able to do."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import locus  # noqa: E402
from locus import LocusError  # noqa: E402
from locus.torch.nn import Attention, Cache, EncoderLayer, positions  # noqa: E402

B, T, E, H = 2, 9, 16, 4
CLOSE = 2e-5

# name: options of the module; max_tokens where the scheme has a row per position
OPTIONS = {
    "none": {},
    "sinusoidal": {},
    "learned": dict(max_tokens=12),
    "shaw": dict(clip_left=3, clip_right=2),
    "relative_key": dict(max_tokens=12),
    "relative_key_query": dict(max_tokens=12),
    "transformer_xl": {},
    "t5": dict(buckets=8, max_distance=20),
    "tupe": dict(max_tokens=12, buckets=8, max_distance=20, cls=True),
    "deberta": dict(span=4, buckets=4, max_distance=30),
    "alibi": {},
    "kerple": {},
    "rope": {},
    "xpos": {},
}
# Options of locus.layer that the module sets by itself.
OF_LAYER = {
    "sinusoidal": dict(table="paper"),
    "transformer_xl": dict(table="half"),
    "kerple": dict(form="log"),
    "rope": dict(pairing="half"),
    "t5": dict(bidirectional=1),
    "tupe": dict(bidirectional=1),
}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(scheme, seed=0, **more):
    """An Attention whose parameters are all far from 0."""
    torch.manual_seed(seed)
    module = Attention(E, H, scheme=scheme, **OPTIONS[scheme], **more)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name not in ("position.a", "position.p"):
                parameter.copy_(torch.randn_like(parameter) * 0.4)
    return module


def arrays_of(module):
    """Its parameters as locus.layer names them."""
    names = {"weight": "w_", "bias": "b_"}
    arrays = {}
    for name, parameter in module.named_parameters():
        first, _, last = name.partition(".")
        if first == "position":
            name = last.removesuffix(".weight")
        else:
            name = names[last] + first
        value = parameter.detach()
        arrays[name] = (value.clamp(min=0.01) if name in ("a", "p") else value).numpy()
    return arrays


def close(got, want):
    want = torch.as_tensor(want)
    largest = max(1.0, float(want.abs().max()))
    assert float((got.detach() - want).abs().max()) <= CLOSE * largest


def test_every_scheme_is_here():
    """A scheme has a module, made from its declaration if need be, or is refused in a line."""
    names = {scheme.name for scheme in locus.schemes()}
    assert set(OPTIONS) <= names
    for name in names - set(OPTIONS):
        try:
            assert Attention(E, H, scheme=name, causal=True)(torch.randn(B, T, E)).shape == (B, T, E)
        except LocusError as error:
            assert "\n" not in str(error), name


@pytest.mark.parametrize("scheme", OPTIONS)
@pytest.mark.parametrize("causal", [False, True])
def test_is_the_librarys_layer(scheme, causal):
    options = {name: value for name, value in OPTIONS[scheme].items() if name not in ("max_tokens", "cls")}
    options.update(OF_LAYER.get(scheme, {}))
    if causal and "bidirectional" in options:
        options["bidirectional"] = 0
    module = made(scheme, causal=causal)
    x = torch.randn(B, T, E, generator=torch.Generator().manual_seed(1))
    arrays = arrays_of(module)
    tensors = {name: arrays.pop(name) for name in ("w_q", "w_k", "w_v", "w_o")}
    want = locus.layer(x.numpy(), **tensors, heads=H, scheme=scheme, causal=causal, **options, **arrays)
    close(module(x), want)


MAPS = {
    "fire": dict(hidden=5, threshold=4.25),
    "distance": dict(max_tokens=T),
    "table": dict(rows=[(3 * i) % 5 for i in range(2 * T - 1)], delta_min=1 - T, tensors=("rel_k", "rel_q", "rel_v", "bias")),
}


@pytest.mark.parametrize("scheme", MAPS)
def test_functions_of_the_distance(scheme):
    """fire, distance and table as in C: results, gradients, a cache, a trace."""
    torch.manual_seed(6)
    module = EncoderLayer(E, H, scheme=scheme, causal=True, **MAPS[scheme]).attention
    with torch.no_grad():
        for parameter in module.position.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    x = torch.randn(B, T, E)
    arrays = {**arrays_of(module), **{name: b.numpy() for name, b in module.position.named_buffers()}}
    call = dict(arrays, heads=H, scheme=scheme, causal=True, **module.position.options)
    close(module(x), locus.layer(x.numpy(), **call))
    (module(x) ** 2).sum().backward()
    grads = locus.layer_backward(2 * module(x).detach().numpy(), x.numpy(), **call)
    for name, parameter in module.position.named_parameters():
        close(parameter.grad, grads[name])
    cache = Cache()
    close(torch.cat([module(piece, cache=cache) for piece in x.split([4, 5], 1)], 1), module(x).detach())
    traced = torch.jit.trace(module, (x,))
    assert torch.equal(traced(2 * x), module(2 * x))


def test_counted_positions():
    """cope has no class: its table is declared, and its rows are given by the name of the axis."""
    torch.manual_seed(7)
    module = Attention(E, H, scheme="cope", causal=True, R=6)
    with torch.no_grad():
        module.position.rel_k.normal_()
    x = torch.randn(B, T, E)
    close(module(x), locus.layer(x.numpy(), heads=H, scheme="cope", causal=True, **arrays_of(module)))
    module(x).square().sum().backward()
    assert module.position.rel_k.shape == (6, E // H) and float(module.position.rel_k.grad.abs().max()) > 0


def test_every_declaration_has_a_module_or_a_line():
    """A scheme that the library learns later needs no class: its declaration says which parameters it has."""
    for declared in locus.schemes():
        position = positions.Declared
        try:
            made = position(declared.name, positions.Shape(E, H, E // H, 12, True), F=5, R=7)
        except LocusError as error:
            assert "\n" not in str(error) and "expected it by the name of the axis" in str(error)
        else:
            assert {n for n, _ in made.named_parameters()} == {
                t.name for t in declared.tensors if t.required and "attend" in t.levels
            }


@pytest.mark.parametrize("scheme", ["none", "t5", "transformer_xl", "deberta"])
def test_trace_with_gradients(scheme):
    module = made(scheme)
    x = torch.randn(B, T, E)
    traced = torch.jit.trace(module, (x,))
    assert torch.equal(traced(-x), module(-x))
    traced(x).sum().backward()
    assert float(module.v.weight.grad.abs().max()) > 0


def test_a_function_is_as_good_as_a_module():
    x = torch.randn(B, T, E)
    torch.manual_seed(7)
    one = Attention(E, H, scheme=Linear())
    other = Attention(E, H, scheme=lambda distance: Linear()(distance))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(x), other(x))


@pytest.mark.parametrize("scheme", OPTIONS)
def test_every_parameter_learns(scheme):
    module = made(scheme)
    module(torch.randn(B, T, E)).square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.isfinite().all()), name
        assert name.endswith("k.bias") or float(parameter.grad.abs().max()) > 0, name


@pytest.mark.parametrize("scheme", OPTIONS)
def test_cache(scheme):
    """A text in three pieces is the text."""
    module = made(scheme, causal=True)
    x = torch.randn(B, T, E, generator=torch.Generator().manual_seed(2))
    cache, pieces = Cache(), []
    for piece in x.split([4, 4, 1], 1):
        pieces.append(module(piece, cache=cache))
    assert cache.tokens == T
    close(torch.cat(pieces, 1), module(x).detach())


@pytest.mark.parametrize("scheme", ["none", "t5", "shaw", "rope", "alibi", "deberta"])
def test_cross_attention(scheme):
    module = made(scheme, context_dim=10)
    x, context = torch.randn(B, 5, E), torch.randn(B, T, 10)
    out = module(x, context)
    assert out.shape == (B, 5, E)
    seen = torch.ones(B, T, dtype=torch.bool)
    seen[:, 6:] = False
    close(module(x, context, key_mask=seen), module(x, context[:, :6]).detach())


def test_masks_windows_and_grouped_heads():
    x = torch.randn(B, T, E)
    module = made("none", window=2, kv_heads=2)
    seen = (torch.arange(T)[:, None] - torch.arange(T)).abs() <= 2
    wide = made("none", kv_heads=2)
    wide.load_state_dict(module.state_dict())
    close(module(x), wide(x, mask=seen[None, None]).detach())
    assert module.k.weight.shape == (E // 2, E)


class Linear(nn.Module):
    """ALiBi as a module of one's own."""

    def forward(self, distance):
        return -distance.abs()[:, None] * 2.0 ** (-8.0 * torch.arange(1, H + 1) / H)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.values = nn.Parameter(torch.randn(2 * T - 1, H))

    def forward(self, distance):
        return self.values[distance.clamp(1 - T, T - 1) + T - 1]


@pytest.mark.parametrize("causal", [False, True])
def test_a_bias_of_ones_own(causal):
    x = torch.randn(B, T, E, generator=torch.Generator().manual_seed(3))
    alibi = made("alibi", causal=causal)
    module = Attention(E, H, scheme=Linear(), causal=causal)
    module.load_state_dict(alibi.state_dict())
    close(module(x), alibi(x).detach())
    cache = Cache()
    pieces = [module(piece, cache=cache) for piece in x.split([3, 6], 1)]
    if causal:
        close(torch.cat(pieces, 1), alibi(x).detach())


def test_a_bias_of_ones_own_learns():
    torch.manual_seed(4)
    table = Table()
    module = Attention(E, H, scheme=table)
    x = torch.randn(B, T, E)
    weight = torch.randn(B, T, E)
    (module(x) * weight).sum().backward()
    got = table.values.grad.clone()
    table.values.grad = None
    # the same, written out
    q, k, v = (linear(x).view(B, T, H, -1).transpose(1, 2) for linear in (module.q, module.k, module.v))
    bias = table(torch.arange(T)[:, None].sub(torch.arange(T)).flatten()).view(T, T, H).permute(2, 0, 1)
    out = ((q @ k.mT * (E // H) ** -0.5 + bias).softmax(-1) @ v).transpose(1, 2).flatten(2)
    (module.o(out) * weight).sum().backward()
    close(got, table.values.grad)


@pytest.mark.parametrize("scheme", OPTIONS)
@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layer(scheme, norm_first):
    torch.manual_seed(5)
    layer = EncoderLayer(E, H, scheme=scheme, norm_first=norm_first, **OPTIONS[scheme])
    x = torch.randn(B, T, E)
    losses = []
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(6):
        loss = (layer(x) - x.roll(1, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


def test_names_in_state_dict():
    names = set(EncoderLayer(E, H, scheme="deberta", span=4).state_dict())
    linear = {f"attention.{name}.{part}" for name in "qkvo" for part in ("weight", "bias")}
    outside = {f"{name}.{part}" for name in ("norm1", "norm2", "up", "down") for part in ("weight", "bias")}
    position = {f"attention.position.{name}" for name in ("rel", "w_rk.weight", "w_rq.weight")}
    assert names == linear | outside | position
    assert {n for n in Attention(E, H, scheme="t5").state_dict()} == {"q.weight", "k.weight", "v.weight", "o.weight", "position.bias"}


@pytest.mark.parametrize(
    "line, call",
    [
        ("heads: found 3", lambda: Attention(E, 3)),
        ("kv_heads: found 3", lambda: Attention(E, H, kv_heads=3)),
        ("scheme: found 'spam', expected a module, a function or one of none", lambda: Attention(E, H, scheme="spam")),
        ("scheme learned: max_tokens is missing", lambda: Attention(E, H, scheme="learned")),
        ("got an unexpected keyword argument 'spam'", lambda: Attention(E, H, scheme="t5", spam=3)),
        (r"tensor x: found \[2, 16\], expected shape \[B,T,16\]", lambda: Attention(E, H)(torch.randn(2, E))),
        ("found 13 positions", lambda: made("learned")(torch.randn(1, 13, E))),
        ("scheme distance: max_tokens is missing", lambda: Attention(E, H, scheme="distance")),
        ("scheme table: rows is missing", lambda: Attention(E, H, scheme="table")),
        ("causal: found False, expected True .scheme fire", lambda: Attention(E, H, scheme="fire")),
        ("a module or function as scheme has its own options", lambda: Attention(E, H, scheme=len, span=3)),
        (r"expected a tensor of shape \[17, 4\]", lambda: Attention(E, H, scheme=nn.Identity())(torch.randn(1, T, E))),
        ("option .spam. is not known", lambda: Attention(E, H, scheme="rope", spam=3)(torch.randn(1, T, E))),
    ],
)
def test_refusals(line, call):
    with pytest.raises(LocusError, match=line) as caught:
        call()
    assert "\n" not in str(caught.value)
