# SPDX-License-Identifier: Apache-2.0
"""A model of the C runtime as a torch module: its forward pass, and gradients of every weight for any torch optimizer."""

import os

import torch

from .. import _native
from .._errors import LocusTypeError, LocusValueError
from .._model import _DECODER_HIDDEN, _EMBEDDING, _HIDDEN, _LOGITS, _Texts, _whole
from .._model import Model as _Plain

_WANTED = {"hidden": _HIDDEN, "logits": _LOGITS, "embedding": _EMBEDDING, "decoder_hidden": _DECODER_HIDDEN}


def _bytes(gradient):
    return None if gradient is None else gradient.contiguous().numpy().tobytes()


class _Run(torch.autograd.Function):
    """One pass; its outputs are the layers of all that is wanted, one behind the other."""

    @staticmethod
    def forward(ctx, model, call, want, keep, *parameters):
        found = call(sum(_WANTED[name] for name in want), keep)
        ctx.kept = found.get("kept")
        ctx.counts = [(name, len(found[name])) for name in want]
        ctx.places = model.places
        ctx.save_for_backward(*parameters)  # whose versions torch checks
        ctx.set_materialize_grads(False)
        return tuple(_tensor(part) for name in want for part in found[name])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        parameters, gradients, given = ctx.saved_tensors, iter(gradients), {}
        for name, count in ctx.counts:
            given[name] = [_bytes(next(gradients)) for _ in range(count)]
        flat = _native.model_backward(
            ctx.kept,
            given.get("hidden"),
            given.get("logits", [None])[0],
            given.get("embedding", [None])[0],
            given.get("decoder_hidden"),
        )
        flat = torch.frombuffer(flat, dtype=torch.float32)
        slopes = (flat[at : at + p.numel()].view(p.shape) for at, p in zip(ctx.places, parameters))
        needed = ctx.needs_input_grad[4:]
        return None, None, None, None, *(slope if need else None for slope, need in zip(slopes, needed))


def _tensor(part):
    raw, rows, width = part
    return torch.frombuffer(raw, dtype=torch.float32).view(rows, width) if raw else torch.zeros(rows, width)


def _rebuilt(kind, folder, threads, state, frozen, training):
    model = kind(folder, threads=threads)
    with torch.no_grad():  # in their place: they are the memory of the model
        for name, parameter in model.named_parameters():
            parameter.copy_(state[name])
    for parameter, still in zip(model._order, frozen):
        parameter.requires_grad_(not still)
    return model.train(training)


class Model(torch.nn.Module):
    """The folder of a model as a torch module that computes in C, forward and backward.

    >>> model = locus.torch.Model("bert-tiny")
    >>> optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    >>> loss = torch.nn.functional.cross_entropy(model(["good", "bad"]), torch.tensor([1, 0]))
    >>> loss.backward()
    >>> optimizer.step()

    Its parameters have the names and shapes of the checkpoint and lie in the memory of the model: `state_dict()` is what
    model.safetensors holds. There is no dropout. `plain` is the same model as a `locus.Model`, for answers in between.
    """

    def __init__(self, folder, *, threads=0):
        super().__init__()
        self.plain = _Plain(folder, threads=threads, _trainable=True)
        self._read = os.path.abspath(os.fspath(folder)), threads
        self._order, self.places = [], []
        for name, capsule, at in _native.model_parameters(self.plain._handle):
            parameter = torch.nn.Parameter(torch.utils.dlpack.from_dlpack(capsule))
            self._put(name.split("."), parameter)
            self._order.append(parameter)
            self.places.append(at)
        self._memory = [parameter.data_ptr() for parameter in self._order]

    @property
    def info(self):
        """Sizes and names, as `locus.Model.info`."""
        return self.plain.info

    @property
    def tokenizer(self):
        return self.plain.tokenizer

    @property
    def tasks(self):
        """As `locus.Model.tasks`."""
        return self.plain.tasks

    def __reduce__(self):
        """The folder read again, with the weights and modes of this one."""
        frozen = [not parameter.requires_grad for parameter in self._order]
        return _rebuilt, (type(self), *self._read, self.state_dict(), frozen, self.training)

    def __deepcopy__(self, memo):
        rebuild, arguments = self.__reduce__()
        return rebuild(*arguments)

    def hidden(self, text, pair=None, *, truncate=0):
        """As `locus.Model.hidden`, a tensor with gradients: [layers + 1, tokens, width], or a list where the last is narrower."""
        layers = self([text], [pair], want=["hidden"], truncate=truncate)["hidden"]
        return torch.stack(layers) if len({layer.shape for layer in layers}) == 1 else layers

    def logits(self, text, pair=None, *, truncate=0):
        """As `locus.Model.logits`, a tensor with gradients."""
        if not self.info["head"]:
            raise LocusValueError("logits: the model has no head that gives them")
        return self([text], [pair], truncate=truncate)

    def attention(self, text, layer, pair=None, **more):
        """As `locus.Model.attention`, with the weights as they are now."""
        self._renew()
        return self.plain.attention(text, layer, pair, **more)

    def explain(self, text, layer, head, **more):
        """As `locus.Model.explain`, with the weights as they are now."""
        self._renew()
        return self.plain.explain(text, layer, head, **more)

    def stream(self, text, pair=None, **more):
        """As `locus.Model.stream`, with the weights as they are now."""
        self._renew()
        return self.plain.stream(text, pair, **more)

    def forward(self, texts=None, pair=None, *, ids=None, types=None, decoder_ids=None, want=None, truncate=0):
        """Logits of texts, or their embeddings where the model has no head: [texts, labels], or a row for every token of all
        texts, one behind the other. `ids`: lists of numbers in place of texts. `decoder_ids`: what the decoder of an
        encoder-decoder is given, text by text; it gives the logits. `want`: names among hidden, logits, embedding and
        decoder_hidden; then the answer is a dict, with a list of the layers for states."""
        encoded = self._encode(texts, pair, ids, types, truncate)
        decoder = None if decoder_ids is None else [_whole(one) for one in decoder_ids]
        if decoder is None and self.info["decoder_layers"] and "logits" in (want or ["logits"]):
            raise LocusTypeError("decoder_ids: the decoder gives the logits, it needs tokens")
        names = list(want) if want is not None else ["logits" if self.info["head"] else "embedding"]
        for name in names:
            if name not in _WANTED:
                raise LocusValueError(f"want: found {name!r}, expected names among {', '.join(_WANTED)}")
        self._renew()

        def call(what, keep):
            return self.plain._run(encoded, 0, len(encoded.ids), what, decoder=decoder, keep=keep)

        keep = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in self._order)
        outputs = iter(_Run.apply(self, call, names, keep, *self._order))
        found = {name: [next(outputs) for _ in range(self._count(name))] for name in names}
        found = {name: parts if "hidden" in name else parts[0] for name, parts in found.items()}
        return found if want is not None else found[names[0]]

    # ---- what is behind it ----

    def _put(self, path, parameter):
        module = self
        for name in path[:-1]:
            if name not in module._modules:
                module.add_module(name, torch.nn.Module())
            module = module._modules[name]
        module.register_parameter(path[-1], parameter)

    def _encode(self, texts, pair, ids, types, truncate):
        if (texts is None) == (ids is None):
            raise LocusTypeError("texts, ids: expected one of them")
        if ids is not None:
            return _Texts([_whole(one) for one in ids], types=types)
        return self.plain._encode([texts] if isinstance(texts, (str, bytes)) else list(texts), pair, truncate)

    def _renew(self):
        """Passes compute with the weights as they are now."""
        if [parameter.data_ptr() for parameter in self._order] != self._memory:
            raise LocusValueError("parameters: found other tensors, expected those of the model, float32 on the CPU, in their place")
        _native.model_update(self.plain._handle)

    def _count(self, name):
        layers = {"hidden": self.info["layers"], "decoder_hidden": self.info["decoder_layers"]}
        return layers[name] + 1 if name in layers else 1
