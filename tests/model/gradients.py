# SPDX-License-Identifier: Apache-2.0
"""Gradients of every weight by <locus/model.h> against torch's autograd through transformers.

gradients.py FOLDER    random weights of every architecture, small sizes

The loss is a sum of products of the last states and of the logits with random numbers; two sequences
of different lengths are one ragged call of ours and two calls of torch, in float64. One line per model:
PASSED or FAILED, its name, what was found."""

import ctypes
import json
import os
import sys

import numpy
import torch
import transformers
from safetensors.numpy import load_file

sys.path.insert(0, os.path.dirname(__file__))
import compare
import generate
import published
from library import LIBRARY, Error, pointer

TOLERANCE = 1e-4  # of the largest element of a tensor's gradient
NOISE = 2e-3  # of the largest of all, in that measure: 2e-7 of it is rounding, of terms that cancel
SINGLE = ("mpt", "transfo-xl")  # their masks are float32 only: so is torch's side of the comparison
LENGTHS, DECODER_LENGTHS = (17, 6), (5, 9)
torch.set_num_threads(1)

for name in ("locus_model_workspace", "locus_model_kept", "locus_model_backward_workspace"):
    getattr(LIBRARY, name).restype = ctypes.c_size_t
for name in ("locus_model_parameter_count", "locus_model_parameter_floats"):
    getattr(LIBRARY, name).restype = ctypes.c_int64


def fields(words, pointers=(), more=()):
    return (
        [(name, ctypes.c_uint32) for name in words] + [(name, ctypes.c_void_p) for name in pointers] + list(more)
    )


class Config(ctypes.Structure):
    _fields_ = fields(("size", "threads"), ("isa", "allocator"), fields(("trainable", "reserved")))


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_uint32)] + [
        (name, ctypes.c_int64 * 4) for name in ("shape", "stride")
    ]


class Parameter(ctypes.Structure):
    _fields_ = fields(("size", "reserved")) + [("name", ctypes.c_char_p), ("value", Tensor), ("at", ctypes.c_int64)]


class Batch(ctypes.Structure):
    _fields_ = fields(
        ("size", "reserved"),
        ("ids", "types", "rows"),
        [("row_count", ctypes.c_int64)] + fields((), ("memory", "features", "decoder_ids")),
    )


class Results(ctypes.Structure):
    _fields_ = fields(("size", "reserved"), ("hidden", "logits", "embedding", "qkv", "next", "decoder_hidden"))


class Gradients(ctypes.Structure):
    _fields_ = fields(
        ("size", "flags"), ("hidden", "logits", "embedding", "parameters", "input", "decoder_hidden")
    )


class Trainable:
    """A model of the library whose weights have gradients."""

    def __init__(self, folder):
        self.handle, self.error = ctypes.c_void_p(), Error()
        config = Config(size=ctypes.sizeof(Config), trainable=1, threads=1)
        self.call("open", ctypes.byref(self.handle), os.fspath(folder).encode(), ctypes.byref(config))

    def __del__(self):
        if self.handle:
            LIBRARY.locus_model_free(self.handle)

    def call(self, name, *arguments):
        if getattr(LIBRARY, "locus_model_" + name)(*arguments, ctypes.byref(self.error)) != 0:
            raise RuntimeError(self.error.text.decode("utf-8", "replace"))

    def parameters(self, gradients):
        """name: gradient in the shape of the checkpoint."""
        found = {}
        for index in range(LIBRARY.locus_model_parameter_count(self.handle)):
            p = Parameter(size=ctypes.sizeof(Parameter))
            self.call("parameter_at", self.handle, ctypes.c_int64(index), ctypes.byref(p))
            shape = tuple(p.value.shape[: p.value.rank])
            count = int(numpy.prod(shape, dtype="i8"))
            found[p.name.decode()] = gradients[p.at : p.at + count].reshape(shape)
        return found

    def gradients(self, inputs, last, layers, logits=None, types=None, decoder=None):
        """inputs: per sequence ids, or features; last: (which layer, gradient of its states); decoder: per
        sequence ids, which layer, gradient."""
        lengths = [len(one) for one in inputs]
        offsets = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("i8")
        joined = numpy.concatenate(inputs)
        batch = Batch(size=ctypes.sizeof(Batch))
        keep = [offsets]
        if joined.ndim == 2:
            keep.append(numpy.ascontiguousarray(joined, "f4"))
            batch.features = pointer(keep[-1])
        else:
            keep.append(joined.astype("i4"))
            batch.ids = pointer(keep[-1])
        if types is not None:
            keep.append(numpy.concatenate(types).astype("i4"))
            batch.types = pointer(keep[-1])
        handle = ctypes.c_void_p()
        first = (ctypes.byref(handle), self.handle, ctypes.c_void_p(pointer(offsets)))
        sequences = ctypes.c_int64(len(inputs))
        results = Results(size=ctypes.sizeof(Results))
        wanted = Gradients(size=ctypes.sizeof(Gradients))
        if decoder is None:
            self.call("pass_new", *first, sequences)
        else:
            ids, decoder_layers, gradient = decoder
            more = numpy.concatenate([[0], numpy.cumsum([len(one) for one in ids])]).astype("i8")
            keep += [numpy.concatenate(ids).astype("i4"), gradient]
            batch.decoder_ids = pointer(keep[-2])
            places = (ctypes.c_void_p * (decoder_layers + 1))()
            places[decoder_layers] = pointer(gradient)
            wanted.decoder_hidden = ctypes.addressof(places)
            self.call("pass_both", *first, ctypes.c_void_p(pointer(more)), sequences)
        states = (ctypes.c_void_p * (layers + 1))()
        states[layers] = pointer(last)
        wanted.hidden = ctypes.addressof(states)
        if logits is not None:
            out = numpy.empty_like(logits)
            results.logits, wanted.logits = pointer(out), pointer(logits)
        gradients = numpy.empty(LIBRARY.locus_model_parameter_floats(self.handle), "f4")
        wanted.parameters = pointer(gradients)
        try:
            sizes = [
                getattr(LIBRARY, "locus_model_" + n)(handle) for n in ("kept", "workspace", "backward_workspace")
            ]
            rooms = [numpy.empty(size // 8 + 8, "f8") for size in sizes]
            kept, there, back = (
                (ctypes.c_void_p(pointer(room)), ctypes.c_size_t(room.nbytes)) for room in rooms
            )
            self.call("forward_kept", handle, ctypes.byref(batch), ctypes.byref(results), *kept, *there)
            self.call("backward", handle, ctypes.byref(wanted), *kept, *back)
        finally:
            LIBRARY.locus_model_pass_free(handle)
        return self.parameters(gradients)


def random_weights(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def differences(model, found, prefix=""):
    """The worst tensor and how far it is away; what is missing."""
    expected = {prefix + name: p for name, p in model.named_parameters(remove_duplicate=False) if p.grad is not None}
    whole = max(float(p.grad.abs().max()) for p in expected.values())
    worst, which, sums = 0.0, "", {}
    for name, gradient in found.items():
        if name not in expected:
            if float(numpy.abs(gradient).max()) > 0.0:
                return float("inf"), "torch has no gradient of " + name
            continue
        if expected[name].shape != gradient.shape:
            return float("inf"), "%s: %s, expected %s" % (name, gradient.shape, tuple(expected[name].shape))
        sums[id(expected[name])] = sums.get(id(expected[name]), 0.0) + gradient  # a file may hold copies of one
    for name, parameter in expected.items():
        want = parameter.grad.double().numpy()
        distance = float(numpy.abs(sums.get(id(parameter), 0.0) - want).max())
        distance /= float(numpy.abs(want).max()) + NOISE * whole
        if not distance <= worst:  # NaN as well
            worst, which = distance, name
    return worst, which


def report(name, worst, which):
    result = "PASSED" if worst <= TOLERANCE else "FAILED"
    print(result, "gradients/" + name, "%.1e of the largest element, %s" % (worst, which), flush=True)


def token_ids(model, seed, lengths):
    most = min(model.config.vocab_size, 80)
    return [torch.randint(3, most, (n,), generator=torch.Generator().manual_seed(seed + n)) for n in lengths]


def token_types(model, lengths):
    if getattr(model.config, "type_vocab_size", 0) > 1 or model.config.model_type == "xlnet":
        return [torch.arange(n) // 4 % 2 for n in lengths]
    return None


def compare_text(name, folder):
    """Models that transformers opens: encoders, decoders, both."""
    with open(os.path.join(folder, "config.json")) as file:
        (architecture,) = json.load(file)["architectures"]
    model = getattr(transformers, architecture).from_pretrained(folder, attn_implementation="eager").eval()
    if model.config.model_type not in SINGLE:
        model = model.double()
    ids, both = token_ids(model, 1, LENGTHS), model.config.is_encoder_decoder and "Encoder" not in architecture
    types, decoder_ids = token_types(model, LENGTHS), token_ids(model, 2, DECODER_LENGTHS)
    weights, loss, layers, decoder_layers = {"last": [], "logits": [], "decoder": []}, 0.0, 0, 0
    for i, one in enumerate(ids):
        more = {} if types is None else dict(token_type_ids=types[i][None])
        if both:
            more["decoder_input_ids"] = decoder_ids[i][None]
        out = model(input_ids=one[None], attention_mask=torch.ones(1, len(one)), output_hidden_states=True, **more)
        states = out.encoder_hidden_states if both else out.hidden_states
        last = states[-1] if both else out.get("last_hidden_state", states[-1])
        parts = {"last": last, "logits": out.get("logits")}
        layers = len(states) - 1
        if both:
            parts["decoder"] = out.decoder_hidden_states[-1]
            decoder_layers = len(out.decoder_hidden_states) - 1
        for kind, part in parts.items():
            if part is None:
                continue
            weights[kind].append(random_weights(part.shape[1:], 10 * i + len(kind)))
            loss = loss + (part[0] * weights[kind][-1].double()).sum()
    loss.backward()
    joined = {
        kind: numpy.ascontiguousarray(torch.cat([w.reshape(-1, w.shape[-1]) for w in list_]).numpy()) if list_ else None
        for kind, list_ in weights.items()
    }
    decoder = ([one.numpy() for one in decoder_ids], decoder_layers, joined["decoder"]) if both else None
    types = None if types is None else [one.numpy() for one in types]
    inputs = [one.numpy() for one in ids]
    found = Trainable(folder).gradients(inputs, joined["last"], layers, joined["logits"], types, decoder)
    report(name, *differences(model, found))


def compare_parts(name, folder, model, run, inputs, prefix):
    """Others: run(input) gives the last states [tokens, width] and logits, or None."""
    weights, loss, layers = ([], []), 0.0, None
    for i, one in enumerate(inputs):
        *parts, layers = run(one)
        for k, part in enumerate(parts):
            if part is not None:
                weights[k].append(random_weights(part.shape, 10 * i + k))
                loss = loss + (part * weights[k][-1].double()).sum()
    loss.backward()
    last, logits = (numpy.ascontiguousarray(torch.cat(w).numpy()) if w else None for w in weights)
    inputs = [one.detach().numpy() for one in inputs]
    found = Trainable(folder).gradients(inputs, last, layers, logits)
    report(name, *differences(model, found, prefix))


def compare_sound(name, folder):
    model = transformers.AutoModel.from_pretrained(folder).eval().double()
    width = model.feature_projection.layer_norm.normalized_shape[0]

    def run(features):
        states = model.feature_projection(features[None])[0]
        hidden = model.encoder(states, output_hidden_states=True).hidden_states
        return hidden[-1][0], None, len(hidden) - 1

    inputs = [random_weights((n, width), n).double() for n in LENGTHS]
    compare_parts(name, folder, model, run, inputs, "")


def compare_vits(name, folder):
    with open(os.path.join(folder, "config.json")) as file:
        encoder = compare.vits_encoder(json.load(file)).double()
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    encoder.load_state_dict({k[len("text_encoder.") :]: torch.tensor(v) for k, v in tensors.items()})

    def run(ids):
        mask = torch.ones(1, len(ids), 1).double()
        out = encoder(ids[None], mask, mask[:, :, 0], output_hidden_states=True, return_dict=True)
        prior = torch.cat([out.prior_means, out.prior_log_variances], dim=2)[0]
        return out.hidden_states[-1][0], prior, len(out.hidden_states) - 1

    inputs = [torch.randint(0, 200, (n,), generator=torch.Generator().manual_seed(n)) for n in LENGTHS]
    compare_parts(name, folder, encoder, run, inputs, "text_encoder.")


def compare_memory(name, folder, settings):
    model = compare.make_memory(folder, settings)

    def run(ids):
        hidden = model(ids[None], output_hidden_states=True).hidden_states
        return hidden[-1][0], None, len(hidden) - 1

    inputs = [torch.randint(0, 200, (n,), generator=torch.Generator().manual_seed(n)) for n in LENGTHS]
    compare_parts(name, folder, model, run, inputs, "transformer.")


def compare_published(name, folder, kind, config):
    model = published.make(folder, kind, config).double()

    def run(ids):
        states = model(ids)
        return states[-1], None, len(states) - 1

    compare_parts(name, folder, model, run, [torch.randint(0, 190, (n,), generator=torch.Generator().manual_seed(n)) for n in LENGTHS], "")


def attempt(function, name, *arguments):
    try:
        function(name, *arguments)
    except Exception as problem:  # whatever it is, the model failed
        print("FAILED", "gradients/" + name, " ".join(str(problem).split())[:300], flush=True)


def all_models(folder):
    """name, how its folder is made, how it is compared"""
    for name, (family, settings) in compare.RANDOM.items():
        yield name, compare_text, compare.make_random, (family, settings)
    for name in ("bert-classify", "mpnet-classify", "deberta-v3-classify", "distilbert-tokens"):
        yield name, compare_text, compare.make_random, compare.HEADS[name]
    for name, (family, settings) in compare.FILLS.items():
        yield name + "-fill", compare_text, compare.make_random, (family, settings)
    for name, (kind, settings) in generate.RANDOM.items():
        yield name + "-generate", compare_text, generate.make_random, (kind, settings)
    for name, (family, settings) in compare.SOUNDS.items():
        yield name, compare_sound, compare.make_random, (family, settings)
    for name, settings in compare.VOICES.items():
        yield name, compare_vits, compare.make_vits, (settings,)


def main(folder, *chosen):
    for name, how, make, settings in all_models(folder):
        if chosen and name not in chosen:
            continue
        path = os.path.join(folder, "gradients-" + name)
        make(path, *settings)
        attempt(how, name, path)
    if not chosen:
        for name, settings in compare.MEMORIES.items():
            attempt(compare_memory, name, os.path.join(folder, "gradients-" + name), settings)
    for name, settings in published.MODELS.items():
        if not chosen or name in chosen:
            attempt(compare_published, name, os.path.join(folder, "gradients-" + name), *settings)


if __name__ == "__main__":
    main(*sys.argv[1:])
