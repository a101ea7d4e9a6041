# SPDX-License-Identifier: Apache-2.0
"""locus.torch.Model: gradients and training against torch's autograd through transformers."""

import gc
import os
import shutil

import numpy as np
import pytest

import locus

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import locus.torch  # noqa: E402

TOKENIZERS = os.path.join(os.path.dirname(__file__), "../../../tests/data/tokenizers")
F = torch.nn.functional
BERT = dict(
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=40,
    vocab_size=400,
    max_position_embeddings=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    classifier_dropout=0.0,
)
DEBERTA = dict(
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=40,
    vocab_size=60,
    max_position_embeddings=32,
    relative_attention=True,
    position_buckets=8,
    pos_att_type=["p2c", "c2p"],
    share_att_key=True,
    norm_rel_ebd="layer_norm",
    position_biased_input=False,
    type_vocab_size=0,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    pooler_dropout=0.0,
)
T5 = dict(d_model=24, num_layers=2, num_heads=3, d_kv=8, d_ff=40, vocab_size=60, dropout_rate=0.0)
LLAMA = dict(
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=40,
    vocab_size=60,
    max_position_embeddings=32,
)
IDS = [[2, 7, 19, 33, 5, 5, 41], [3, 58, 9]]


def make(folder, kind, config):
    torch.manual_seed(3)
    made = getattr(transformers, kind)
    reference = made(made.config_class(**config))
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    reference.save_pretrained(folder)
    return made.from_pretrained(folder).train()


def same_gradients(model, reference):
    wanted = {name: p.grad for name, p in reference.named_parameters() if p.grad is not None}
    own = {name: p.grad for name, p in model.named_parameters()}
    largest = max(float(gradient.abs().max()) for gradient in wanted.values())
    compared = 0
    for name, gradient in own.items():
        if name not in wanted:
            continue  # tied weights have one name each
        away = float((gradient - wanted[name]).abs().max())
        assert away <= 1e-4 * float(wanted[name].abs().max()) + 1e-6 * largest, (name, away)
        compared += 1
    assert compared >= 0.9 * len(wanted), (compared, len(wanted))


def test_classifier(tmp_path):
    for kind, config in (("Bert", BERT), ("DebertaV2", DEBERTA)):
        folder = tmp_path / kind
        reference = make(folder, kind + "ForSequenceClassification", dict(config, num_labels=3))
        model, labels = locus.torch.Model(folder), torch.tensor([2, 0])
        logits = model(ids=IDS)
        wanted = torch.cat([reference(torch.tensor([ids])).logits for ids in IDS])
        torch.testing.assert_close(logits, wanted, atol=1e-5, rtol=1e-5)
        F.cross_entropy(logits, labels).backward()
        F.cross_entropy(wanted, labels).backward()
        same_gradients(model, reference)


def test_decoders(tmp_path):
    reference = make(tmp_path / "llama", "LlamaForCausalLM", LLAMA)
    model = locus.torch.Model(tmp_path / "llama")
    targets = torch.tensor([token for ids in IDS for token in ids[1:]])
    F.cross_entropy(model(ids=[ids[:-1] for ids in IDS]), targets).backward()
    logits = [reference(torch.tensor([ids[:-1]])).logits[0] for ids in IDS]
    F.cross_entropy(torch.cat(logits), targets).backward()
    same_gradients(model, reference)

    reference = make(tmp_path / "t5", "T5ForConditionalGeneration", T5)
    model, answers = locus.torch.Model(tmp_path / "t5"), [[0, 4, 8], [0, 17, 3, 2]]
    targets = torch.tensor([4, 8, 1, 17, 3, 2, 1])
    found = model(ids=IDS, decoder_ids=answers, want=["logits", "hidden", "decoder_hidden"])
    loss = F.cross_entropy(found["logits"], targets) + found["hidden"][1].square().mean()
    (loss + found["decoder_hidden"][-1].square().mean()).backward()
    want = [
        reference(torch.tensor([ids]), decoder_input_ids=torch.tensor([answer]), output_hidden_states=True)
        for ids, answer in zip(IDS, answers)
    ]
    loss = F.cross_entropy(torch.cat([one.logits[0] for one in want]), targets)
    loss = loss + torch.cat([one.encoder_hidden_states[1][0] for one in want]).square().mean()
    (loss + torch.cat([one.decoder_hidden_states[-1][0] for one in want]).square().mean()).backward()
    same_gradients(model, reference)


def test_training(tmp_path):
    """Ten steps of AdamW, saved, and opened again."""
    reference = make(tmp_path / "m", "BertForSequenceClassification", dict(BERT, num_labels=2))
    for file in os.listdir(os.path.join(TOKENIZERS, "bert")):
        shutil.copy(os.path.join(TOKENIZERS, "bert", file), tmp_path / "m")
    model, texts, labels = locus.torch.Model(tmp_path / "m"), ["the license", "of the work"], torch.tensor([0, 1])
    before = model(texts).detach()
    ids = [torch.tensor([model.tokenizer(text).ids]) for text in texts]
    losses = []
    for one, call in (
        (model, lambda: model(texts)),
        (reference, lambda: torch.cat([reference(i).logits for i in ids])),
    ):
        optimizer = torch.optim.AdamW(one.parameters(), lr=1e-3)
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(call(), labels)
            loss.backward()
            optimizer.step()
        losses.append(float(F.cross_entropy(call(), labels).detach()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-3) and losses[0] < float(F.cross_entropy(before, labels))
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(model.state_dict(), tmp_path / "m" / "model.safetensors")
    with torch.no_grad():
        after = model(texts)
    np.testing.assert_allclose(locus.Model(tmp_path / "m").logits(texts[0])[0], after[0], atol=1e-6)
    assert list(model.plain(texts)[0].values()) == pytest.approx(torch.softmax(after[0], -1).tolist(), abs=1e-6)


def test_embeddings_and_frozen_weights(tmp_path):
    reference = make(tmp_path / "m", "BertModel", BERT)
    model = locus.torch.Model(tmp_path / "m")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("encoder.layer.1."))
    model(ids=IDS).square().sum().backward()
    for ids in IDS:
        reference(torch.tensor([ids])).last_hidden_state[0].mean(0).square().sum().backward()
    given = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert given and all(name.startswith("encoder.layer.1.") for name in given)
    for name, parameter in reference.named_parameters():
        if name in given:
            torch.testing.assert_close(dict(model.named_parameters())[name].grad, parameter.grad, atol=1e-5, rtol=1e-3)


def test_manners(tmp_path):
    make(tmp_path / "m", "BertForSequenceClassification", dict(BERT, num_labels=2))
    model = locus.torch.Model(tmp_path / "m")
    with torch.no_grad():
        assert not model(ids=IDS).requires_grad
    loss = model(ids=IDS).sum()
    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with pytest.raises(locus.LocusTypeError, match="expected one of them"):
        model()
    with pytest.raises(locus.LocusValueError, match="want: found 'states'"):
        model(ids=IDS, want=["states"])
    with pytest.raises(locus.LocusError, match="no decoder"):
        model(ids=IDS, decoder_ids=IDS)
    with pytest.raises(locus.LocusError, match="id"):
        model(ids=[[4000]])
    weight = next(model.parameters()).detach()
    del model, loss
    gc.collect()
    assert torch.isfinite(weight).all()  # the tensor holds the model
    model = locus.torch.Model(tmp_path / "m").double()
    with pytest.raises(locus.LocusValueError, match="float32 on the CPU"):
        model(ids=IDS)
    make(tmp_path / "t5", "T5ForConditionalGeneration", T5)
    with pytest.raises(locus.LocusTypeError, match="decoder_ids"):
        locus.torch.Model(tmp_path / "t5")(ids=IDS)


def test_stacks(tmp_path):
    """locus.Model.explain of a decoder, and of the decoder to its encoder."""
    for file in os.listdir(os.path.join(TOKENIZERS, "t5")):
        os.makedirs(tmp_path / "m", exist_ok=True)
        shutil.copy(os.path.join(TOKENIZERS, "t5", file), tmp_path / "m")
    torch.manual_seed(3)
    config = transformers.T5Config(**dict(T5, vocab_size=440, decoder_start_token_id=0), attn_implementation="eager")
    reference = transformers.T5ForConditionalGeneration(config).eval()
    reference.save_pretrained(tmp_path / "m")
    model, answer = locus.Model(tmp_path / "m"), [0, 44, 9, 21]
    ids = torch.tensor([model.tokenizer("the cat sat").ids])
    with torch.no_grad():
        want = reference(ids, decoder_input_ids=torch.tensor([answer]), output_attentions=True)
    for stack, weights in (
        ("encoder", want.encoder_attentions),
        ("decoder", want.decoder_attentions),
        ("cross", want.cross_attentions),
    ):
        more = {} if stack == "encoder" else dict(decoder_ids=answer)
        e = model.explain("the cat sat", layer=1, head=2, stack=stack, **more)
        np.testing.assert_allclose(e.weight, weights[1][0, 2], atol=2e-6)
        np.testing.assert_allclose(np.where(e.weight > 0, sum(e.terms.values()) - e.score, 0.0), 0.0, atol=1e-12)
    assert model.explain("the cat sat", 0, 0, stack="cross").weight.shape[1] == ids.shape[1]
    with pytest.raises(locus.LocusValueError, match="stack: found 'middle'"):
        model.attention("a", 0, stack="middle")
    with pytest.raises(locus.LocusValueError, match="its decoder gives them"):
        model.logits("a")
