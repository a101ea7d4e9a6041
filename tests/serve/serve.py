# SPDX-License-Identifier: Apache-2.0
"""serve.py LOCUS FOLDER RESULTS: writes a line NAME<tab>TROUBLE for every case."""
import base64
import concurrent.futures
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(__file__))
import folders
from server import Server

locus, scratch, results = sys.argv[1:]
stories = "examples/stories260K"
sample = bool(os.environ.get("LOCUS_TEST_SAMPLE"))
full = bool(os.environ.get("LOCUS_TEST_FULL"))
cases = []


def case(function):
    cases.append(function)
    return function


def equal(found, wanted, what="found"):
    assert found == wanted, "%s: %.300r, expected %.300r" % (what, found, wanted)


def run(*arguments):
    done = subprocess.run([locus, "run", *arguments, "--json"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def vectors(answer):
    return [struct.unpack("<%df" % (len(data) // 4), data)
            for data in (base64.b64decode(one["embedding"]) for one in answer["data"])]


@case
def models(server):
    status, answer = server.get("/v1/models")
    equal(status, 200)
    equal([m["id"] for m in json.loads(answer)["data"]], ["embed", "rank", "labels", "write"])


@case
def embeddings(server):
    texts = folders.texts(7, 1)
    wanted = [one["embedding"] for one in run(os.path.join(scratch, "embed"), *texts)]
    status, answer = server.post("/v1/embeddings", {"input": texts, "model": "embed"})
    equal(status, 200, answer)
    equal([one["embedding"] for one in answer["data"]], wanted)
    equal([one["index"] for one in answer["data"]], list(range(7)))
    tokens = sum(len(t.split()) + 2 for t in texts)
    equal(answer["usage"], {"prompt_tokens": tokens, "total_tokens": tokens})
    _, packed = server.post("/v1/embeddings", {"input": texts, "encoding_format": "base64"})
    equal([list(map(float, v)) for v in vectors(packed)],
          [[struct.unpack("<f", struct.pack("<f", x))[0] for x in v] for v in wanted])
    equal(server.post("/embed", {"inputs": texts})[1], wanted)
    equal(server.post("/embed", {"inputs": texts[0]})[1], wanted[:1])
    equal(server.post("/", {"inputs": texts})[1], wanted)


@case
def embeddings_of_ids(server):
    text = "the cat sleeps"
    ids = [2] + [folders.VOCABULARY.index(w) for w in text.split()] + [3]
    _, by_text = server.post("/v1/embeddings", {"input": text})
    for form in (ids, [ids]):
        _, by_ids = server.post("/v1/embeddings", {"input": form})
        equal(by_ids["data"], by_text["data"])


@case
def labels(server):
    texts = folders.texts(4, 2)
    wanted = [sorted(one["labels"].items(), key=lambda x: -x[1])
              for one in run(os.path.join(scratch, "labels"), *texts)]
    status, answer = server.post("/predict", {"inputs": [[t] for t in texts], "model": "labels"})
    equal(status, 200, answer)
    for one, want in zip(answer, wanted):
        equal([x["label"] for x in one], [name for name, _ in want])
        assert all(abs(x["score"] - p) < 1e-6 for x, (_, p) in zip(one, want)), (one, want)
    _, alone = server.post("/predict", {"inputs": texts[0], "model": "labels"})
    equal(alone, answer[0])
    _, raw = server.post("/predict", {"inputs": texts[0], "model": "labels", "raw_scores": True})
    logits = run(os.path.join(scratch, "labels"), texts[0])[0]["logits"]
    equal(sorted(x["score"] for x in raw), sorted(logits))
    _, pair = server.post("/predict", {"inputs": [texts[0], texts[1]], "model": "labels", "raw_scores": True})
    logits = run(os.path.join(scratch, "labels"), texts[0], "--pair", texts[1])[0]["logits"]
    equal(sorted(x["score"] for x in pair), sorted(logits))
    _, best = server.post("/predict", {"inputs": texts[0], "model": "labels", "parameters": {"top_k": 1}})
    equal(best, [answer[0][:1]])  # as Hugging Face's clients ask
    status, refused = server.post("/predict", {"inputs": texts[0], "parameters": {"function_to_apply": "none"}})
    equal(status, 400, refused)


@case
def ranks(server):
    query, texts = "the cat sleeps", folders.texts(6, 3)
    logits = [run(os.path.join(scratch, "rank"), query, "--pair", t)[0]["logits"][0] for t in texts]
    order = sorted(range(6), key=lambda i: -logits[i])
    _, answer = server.post("/rerank", {"query": query, "texts": texts, "raw_scores": True, "model": "rank"})
    equal([(one["index"], one["score"]) for one in answer], [(i, logits[i]) for i in order])
    body = {"query": query, "documents": texts, "model": "rank", "top_n": 3, "return_documents": True}
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        status, answer = server.post(path, body)
        equal(status, 200, answer)
        equal([one["index"] for one in answer["results"]], order[:3])
        equal([one["document"]["text"] for one in answer["results"]], [texts[i] for i in order[:3]])
        scores = [one["relevance_score"] for one in answer["results"]]
        assert scores == sorted(scores, reverse=True) and all(0 < s < 1 for s in scores), scores


@case
def tokens(server):
    _, answer = server.post("/tokenize", {"inputs": ["Ünder the Cat", "cat"], "model": "embed"})
    equal([[t["text"] for t in one] for one in answer],
          [["[CLS]", "Ünder", "the", "Cat", "[SEP]"], ["[CLS]", "cat", "[SEP]"]])
    equal([(t["start"], t["stop"]) for t in answer[0]], [(None, None), (0, 5), (6, 9), (10, 13), (None, None)])
    equal([t["special"] for t in answer[1]], [True, False, True])
    _, plain = server.post("/tokenize", {"inputs": "cat", "model": "embed", "add_special_tokens": False})
    equal([t["id"] for t in plain[0]], [folders.VOCABULARY.index("cat")])
    ids = [t["id"] for t in answer[0]]
    equal(server.post("/decode", {"ids": ids, "model": "embed"}), server.post("/decode", {"ids": [ids], "model": "embed"}))
    equal(server.post("/decode", {"ids": [2, 6, 3], "model": "embed", "skip_special_tokens": False})[1],
          ["[CLS] cat [SEP]"])


def whole(prompt, most):
    done = subprocess.run([locus, "run", stories, prompt, "--max-length", str(most)], capture_output=True,
                          text=True, check=True)
    return done.stdout[:-1]


def events(answer):
    lines = answer.decode().split("\n\n")
    equal(lines[-2:], ["data: [DONE]", ""])
    return [json.loads(line[len("data: "):]) for line in lines[:-2]]


@case
def completions(server):
    prompt = "Once upon a time"
    status, answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 40, "model": "write"})
    equal(status, 200, answer)
    one = answer["choices"][0]
    used = answer["usage"]
    equal(prompt + one["text"], whole(prompt, used["prompt_tokens"] + 40))
    equal((one["finish_reason"], used["completion_tokens"]), ("length", 40))
    _, echo = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 40, "echo": True})
    equal(echo["choices"][0]["text"], prompt + one["text"])
    stop = one["text"][30:34]
    _, cut = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 40, "stop": ["~~", stop]})
    equal(cut["choices"][0]["text"], one["text"][:one["text"].index(stop)])
    equal(cut["choices"][0]["finish_reason"], "stop")
    drawn = {"prompt": prompt, "max_tokens": 30, "temperature": 1.0, "seed": 5}
    equal(server.post("/v1/completions", drawn)[1]["choices"], server.post("/v1/completions", drawn)[1]["choices"])


@case
def streams(server):
    for stop in (None, "e s"):
        body = {"prompt": "The sun", "max_tokens": 50, "stop": stop}
        _, at_once = server.post("/v1/completions", body)
        status, headers, answer = server.request("POST", "/v1/completions", json.dumps({**body, "stream": True}))
        equal((status, headers["Content-Type"]), (200, "text/event-stream"))
        pieces = [event["choices"][0] for event in events(answer)]
        equal("".join(p["text"] for p in pieces), at_once["choices"][0]["text"])
        equal([p["finish_reason"] for p in pieces[:-1]], [None] * (len(pieces) - 1))
        equal(pieces[-1]["finish_reason"], at_once["choices"][0]["finish_reason"])
        assert len(pieces) > 5, "the text came in %d pieces" % len(pieces)


@case
def together(server):
    """Many clients at once: every answer has the bytes of the text alone."""
    texts = folders.texts(60 if sample else 240, 4)
    prompts = ["The " + t for t in folders.texts(12, 5, 4)]

    def embed(text):
        return server.post("/v1/embeddings", {"input": text, "encoding_format": "base64"})[1]["data"]

    def write(prompt):
        return server.post("/v1/completions", {"prompt": prompt, "max_tokens": 24})[1]["choices"]

    alone = [embed(t) for t in texts], [write(p) for p in prompts]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        vectors_, texts_ = pool.map(embed, texts), pool.map(write, prompts)
        equal((list(vectors_), list(texts_)), alone)
    batches = [line for line in server.get("/metrics")[1].decode().splitlines()
               if line.startswith("locus_batches_total") or line.startswith("locus_texts_total")]
    assert batches, "no metrics"


@case
def refusals(server):
    for path, body, status, word in [
        ("/v1/embeddings", {"input": "x", "model": "nobody"}, 404, "nobody"),
        ("/v1/embeddings", {"input": "x", "model": "write"}, 424, "embed"),
        ("/v1/embeddings", {"input": "x", "model": 3}, 400, "model"),
        ("/v1/embeddings", {"input": []}, 400, "input"),
        ("/v1/embeddings", {}, 400, "input"),
        ("/v1/embeddings", {"input": ["x", 3]}, 400, "input"),
        ("/v1/embeddings", {"input": [1.5]}, 400, "input"),
        ("/v1/embeddings", {"input": [-1, 2]}, 400, "input"),
        ("/v1/embeddings", {"input": [[]]}, 400, "input"),
        ("/v1/embeddings", {"input": [1 << 20]}, 413, "1048576"),
        ("/v1/embeddings", {"input": "x", "dimensions": 8}, 400, "dimensions"),
        ("/v1/embeddings", {"input": "x", "colour": 8}, 400, "colour"),
        ("/v1/embeddings", {"input": "x", "encoding_format": "int8"}, 400, "encoding_format"),
        ("/v1/embeddings", {"input": "cat " * 100}, 413, "64"),
        ("/embed", {"inputs": "x", "normalize": False}, 400, "normalize"),
        ("/embed", {"inputs": "x", "truncate": "yes"}, 400, "truncate"),
        ("/predict", {"model": "labels"}, 400, "inputs"),
        ("/predict", {"inputs": [["a", "b", "c"]], "model": "labels"}, 400, "inputs"),
        ("/rerank", {"query": "x", "texts": []}, 400, "texts"),
        ("/rerank", {"texts": ["x"]}, 400, "query"),
        ("/rerank", {"query": "x", "texts": ["x"], "model": "labels"}, 424, "rerank"),
        ("/v1/rerank", {"query": "x", "documents": [{"title": "x"}]}, 400, "documents"),
        ("/decode", {"ids": "x"}, 400, "ids"),
        ("/tokenize", {"inputs": [1, 2]}, 400, "inputs"),
        ("/v1/completions", {"prompt": "x", "n": 2}, 400, "n"),
        ("/v1/completions", {"prompt": "x", "max_tokens": 0}, 400, "max_tokens"),
        ("/v1/completions", {"prompt": "x", "max_tokens": 100000}, 400, "max_tokens"),
        ("/v1/completions", {"prompt": "x", "temperature": -1}, 400, "temperature"),
        ("/v1/completions", {"prompt": "x", "stop": ["a"] * 5}, 400, "stop"),
        ("/v1/completions", {"prompt": "x", "logprobs": 3}, 400, "logprobs"),
        ("/v1/completions", {"prompt": [999999], "stream": True}, 400, "999999"),
    ]:
        code, _, answer = server.request("POST", path, json.dumps(body))
        where = "%s %.80s" % (path, json.dumps(body))
        equal(code, status, where + ": " + answer.decode())
        assert answer.count(b"\n") == 1 and word in answer.decode(), (where, answer)
        message = json.loads(answer)["error"]
        if path.startswith("/v1"):
            assert set(message) == {"message", "type", "param", "code"}, message
    _, short = server.post("/embed", {"inputs": "cat " * 100, "truncate": True})
    equal(len(short[0]), 16)


@case
def bodies(server):
    deep = b"[" * 1_000_000
    wrong = [b"", b"{", b"[]", b"3", b"{\"input\": NaN}", b"{\"input\": \"\\ud800\"}", b"{\"input\": \"\xff\"}",
             b"{\"input\": \"x\"} x", b"{\"input\": \"x\", \"input\": \"y\"}", deep, b"{\"input\": " + deep]
    for body in wrong:
        status, _, answer = server.request("POST", "/v1/embeddings", body)
        assert status in (400, 413), (status, body[:60])
        assert answer.count(b"\n") == 1 and json.loads(answer)["error"]["message"], answer
    equal(server.get("/nothing")[0], 404)
    equal(server.get("/v1/embeddings")[0], 405)
    equal(server.request("POST", "/health", "{}")[0], 405)
    equal(server.request("HEAD", "/health")[0], 200)
    for path in ("/health", "/ping", "/info", "/metrics"):
        equal(server.get(path)[0], 200)
    info = json.loads(server.get("/info")[1])
    equal((info["model_id"], info["max_input_length"]), ("embed", 64))


@case
def mutations(server):
    """Bodies and heads with wrong bytes: an answer or a closed connection, and the server goes on."""
    draw = random.Random(11)
    seeds = [("/v1/embeddings", {"input": ["the cat", "a stone"], "model": "embed", "encoding_format": "float"}),
             ("/embed", {"inputs": "the cat", "normalize": True, "truncate": False}),
             ("/predict", {"inputs": [["a", "b"]], "raw_scores": True}),
             ("/rerank", {"query": "a", "texts": ["b", "c"], "return_text": True}),
             ("/v1/completions", {"prompt": "a", "max_tokens": 2, "stop": ["x"], "stream": True}),
             ("/tokenize", {"inputs": ["a", "b"], "add_special_tokens": True}), ("/decode", {"ids": [[1, 2], [3]]})]
    for _ in range(200 if sample else 100_000 if full else 400):
        path, body = draw.choice(seeds)
        text = bytearray(json.dumps(body).encode())
        for _ in range(draw.randint(0, 4)):
            at = draw.randrange(len(text))
            text[at:at + draw.randint(0, 3)] = bytes(draw.choices(b'[]{}",:0\\xe\xff\x00-.9', k=draw.randint(0, 3)))
        head = bytearray(("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                          % (path, len(text) + draw.choice([0, 0, 0, 0, -1, 5]))).encode())
        if draw.random() < 0.3:
            head[draw.randrange(len(head))] = draw.randrange(256)
        if draw.random() < 0.1:
            head = (b"POST " + path.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n"
                    % (len(text) + draw.choice([0, 0, 7])))
            text += b"\r\n0\r\n\r\n"
        answer = server.raw(bytes(head + text), wait=0.2 * (draw.random() < 0.9))
        assert not answer or answer.startswith(b"HTTP/1."), answer[:80]
        assert not answer.startswith(b"HTTP/1.1 500"), (text, answer)
    equal(server.get("/health")[0], 200)
    deadline = time.monotonic() + 60
    while b"locus_open_requests 1\n" not in server.get("/metrics")[1]:
        assert time.monotonic() < deadline, "requests of clients that have gone are still open"
        time.sleep(0.05)


@case
def log_without_texts(server):
    server.post("/v1/embeddings", {"input": "zebra giraffe", "model": "embed"})
    server.post("/v1/embeddings", {"input": "zebra", "model": "zebra"})
    deadline = time.monotonic() + 30
    while sum("door=/v1/embeddings" in line for line in server.log) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any("zebra" in line for line in server.log), "a text is in the log"


# ---- servers of their own ----


def limits():
    with_limits = Server(locus, os.path.join(scratch, "embed"), "--max-body", "4", "--max-texts", "6",
                         "--max-queue", "5", "--timeout", "1", "--quiet")
    try:
        status, headers, _ = with_limits.request("POST", "/embed", json.dumps({"inputs": ["cat"] * 6}))
        equal((status, headers.get("Retry-After")), (429, "1"))
        equal(with_limits.post("/embed", {"inputs": ["cat"] * 7})[0], 413)
        equal(with_limits.post("/embed", {"inputs": "cat " * 2000})[0], 413)
        equal(with_limits.post("/embed", {"inputs": ["cat"] * 5})[0], 200)
        head = b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
        slow = socket.create_connection(("127.0.0.1", with_limits.port), timeout=30)
        slow.sendall(head)
        for _ in range(80):  # a byte at a time, more slowly than it may be
            try:
                slow.sendall(b"{")
                slow.settimeout(0.1)
                closed = slow.recv(100) == b""
            except TimeoutError:
                closed = False
            except OSError:
                closed = True
            if closed:
                break
        assert closed, "a slow body was waited for"
        slow.close()
    finally:
        equal(with_limits.stop(), 0, "exit code")


def key():
    path = os.path.join(scratch, "key")
    with open(path, "w") as file:
        file.write("sesame\n")
    closed = Server(locus, os.path.join(scratch, "embed"), "--api-key-file", path)
    try:
        for header, status in [({}, 401), ({"Authorization": "Bearer sesam"}, 401),
                               ({"Authorization": "Bearer sesame2"}, 401), ({"Authorization": "sesame"}, 401),
                               ({"Authorization": "Bearer sesame"}, 200)]:
            equal(closed.post("/embed", {"inputs": "cat"}, header)[0], status, header)
        equal(closed.get("/health")[0], 200)
    finally:
        equal(closed.stop(), 0, "exit code")


def swap():
    """SIGHUP: other weights are taken, broken ones are not."""
    folder = os.path.join(scratch, "swapped")
    folders.bert(folder, seed=3)
    server = Server(locus, folder)

    def vector():
        return server.post("/embed", {"inputs": "the cat"})[1]

    def wait_for(done):
        deadline = time.monotonic() + 60
        while not done() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert done(), "nothing happened after SIGHUP"

    try:
        first = vector()
        folders.bert(folder, seed=4)
        server.signal(signal.SIGHUP)
        wait_for(lambda: vector() != first)
        second = vector()
        equal(second, [one["embedding"] for one in run(folder, "the cat")])
        with open(os.path.join(folder, "model.safetensors"), "r+b") as file:
            file.truncate(100)
        server.signal(signal.SIGHUP)
        wait_for(lambda: any("model.safetensors" in line for line in server.log))
        equal(vector(), second)
    finally:
        equal(server.stop(), 0, "exit code")


def ends():
    """SIGTERM: what is being answered is answered."""
    server = Server(locus, stories)
    body = {"prompt": "Once upon a time", "max_tokens": 400}
    wanted = server.post("/v1/completions", body)[1]["choices"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(server.post, "/v1/completions", body) for _ in range(4)]
        while b"locus_open_requests 5" not in server.get("/metrics")[1] and not any(r.done() for r in running):
            pass
        server.signal(signal.SIGTERM)
        for r in running:
            status, answer = r.result()
            equal((status, answer.get("choices")), (200, wanted))
    equal(server.stop(), 0, "exit code")


def vanishing():
    """Clients that go while their text is written cost nothing: the server ends at once."""
    server = Server(locus, stories, "--rows", "2")
    body = json.dumps({"prompt": "Once", "max_tokens": 500, "temperature": 1, "stream": True}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    for i in range(20):
        s = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        s.sendall(head + body)
        if i % 2:
            s.recv(10)
        s.close()
    equal(server.post("/v1/completions", {"prompt": "Once", "max_tokens": 3})[0], 200)
    deadline = time.monotonic() + 60
    while b"locus_open_requests 1\n" not in server.get("/metrics")[1]:
        assert time.monotonic() < deadline, "requests of clients that have gone are still open"
        time.sleep(0.05)
    equal(server.stop(), 0, "exit code")


def usage():
    for arguments, code, word in [((), 2, "MODEL"), (("nowhere",), 4, "nowhere"),
                                  ((stories, "--host", "no.such.host.invalid"), 2, "--host"),
                                  ((stories, stories), 2, "NAME=FOLDER"),
                                  ((stories, "--api-key-file", "nowhere"), 4, "nowhere"),
                                  ((stories, "--port", "65536"), 2, "65535")]:
        done = subprocess.run([locus, "serve", *arguments], capture_output=True, text=True, timeout=60)
        equal((done.returncode, done.stdout), (code, ""), (arguments, done.stderr))
        assert done.stderr.count("\n") == 1 and word in done.stderr, done.stderr


def attempt(name, function, *arguments):
    trouble = ""
    try:
        function(*arguments)
    except Exception as error:
        traceback.print_exc()
        trouble = " ".join(str(error).split())[:500] or type(error).__name__
    with open(results, "a") as file:
        file.write("%s\t%s\n" % (name, trouble))


folders.bert(os.path.join(scratch, "embed"))
folders.bert(os.path.join(scratch, "rank"), labels=1, seed=2)
folders.bert(os.path.join(scratch, "labels"), labels=3, seed=5)
shared = Server(locus, os.path.join(scratch, "embed"), os.path.join(scratch, "rank"),
                os.path.join(scratch, "labels"), "write=" + stories)
for one in cases:
    attempt(one.__name__, one, shared)
attempt("stop", lambda: equal(shared.stop(), 0, "exit code"))
for one in (limits, key, swap, ends, vanishing, usage):
    attempt(one.__name__, one)
