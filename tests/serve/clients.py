# SPDX-License-Identifier: Apache-2.0
"""clients.py LOCUS FOLDER: the clients that people use, against the server."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import folders
from server import Server

locus, scratch = sys.argv[1:]
os.environ["NO_PROXY"] = "*"  # offline mode would refuse this machine, too
import huggingface_hub
import openai

folders.bert(os.path.join(scratch, "embed"))
folders.bert(os.path.join(scratch, "labels"), labels=3, seed=5)
texts = folders.texts(5, 1)
server = Server(locus, os.path.join(scratch, "embed"), "write=examples/stories260K")
client = openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % server.port, api_key="none")
assert [m.id for m in client.models.list()] == ["embed", "write"]
plain = client.embeddings.create(input=texts, model="embed", encoding_format="float")
packed = client.embeddings.create(input=texts, model="embed")  # base64, decoded by the client
assert max(abs(a - b) for x, y in zip(plain.data, packed.data) for a, b in zip(x.embedding, y.embedding)) < 1e-7
text = client.completions.create(prompt="Once upon a time", model="write", max_tokens=20).choices[0].text
pieces = client.completions.create(prompt="Once upon a time", model="write", max_tokens=20, stream=True)
assert "".join(p.choices[0].text for p in pieces) == text and text
try:
    client.embeddings.create(input="x", model="nobody")
    raise AssertionError("a model that is not there")
except openai.NotFoundError as error:
    assert "nobody" in str(error)
url = "http://127.0.0.1:%d" % server.port
found = huggingface_hub.InferenceClient(model=url).feature_extraction(texts[0])
assert max(abs(a - b) for a, b in zip(found[0], plain.data[0].embedding)) < 1e-7
assert server.stop() == 0
server = Server(locus, os.path.join(scratch, "labels"))
url = "http://127.0.0.1:%d" % server.port
found = huggingface_hub.InferenceClient(model=url).text_classification(texts[0])
assert sorted(x.label for x in found) == ["LABEL_0", "LABEL_1", "LABEL_2"] and abs(sum(x.score for x in found) - 1) < 1e-5
assert server.stop() == 0
