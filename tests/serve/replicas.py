# SPDX-License-Identifier: Apache-2.0
"""replicas.py LOCUS FOLDER: two servers behind nginx under load; one is killed, and every request is answered all the same."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))
import folders
from server import Server

locus, scratch = sys.argv[1], Path(sys.argv[2])
CLIENTS, REQUESTS = 8, 60


def configuration(ports, port):
    """The one of docs/serve.md, on this machine and without TLS."""
    text = re.search(r"```nginx\n(.*?)```", Path("docs/serve.md").read_text(), re.S).group(1)
    servers = iter(ports)
    text = re.sub(r"server 10\.0\.0\.\d:8080", lambda _: f"server 127.0.0.1:{next(servers)}", text)
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    where = scratch / "nginx"
    places = "".join(f"{kind}_temp_path {where}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return (f"daemon off; master_process off; pid {where}/pid; error_log {where}/errors;"
            f"events {{ worker_connections 256; }} http {{ access_log off; {places} {text} }}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def proxy(ports):
    (scratch / "nginx").mkdir(exist_ok=True)
    port = free_port()
    (scratch / "nginx/conf").write_text(configuration(ports, port))
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([program, "-c", scratch / "nginx/conf", "-e", scratch / "nginx/errors"])
    for _ in range(600):
        try:
            ask(port, "the cat")
            return process, port
        except OSError:
            assert process.poll() is None, (scratch / "nginx/errors").read_text()
            time.sleep(0.05)
    raise AssertionError("nginx does not answer")


def ask(port, text):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", "/embed", json.dumps({"inputs": text}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


folders.bert(str(scratch / "replicated"))
texts = folders.texts(12, 7)
replicas = [Server(locus, str(scratch / "replicated"), "--quiet") for _ in range(2)]
wanted = {text: ask(replicas[0].port, text) for text in texts}
nginx, port = proxy([replica.port for replica in replicas])
wrong, answered = [], []


def load(client):
    for i in range(REQUESTS):
        text = texts[(client + i) % len(texts)]
        try:
            found = ask(port, text)
        except OSError as error:
            found = repr(error)
        answered.append(1)
        if found != wanted[text]:
            wrong.append(found)


try:
    clients = [threading.Thread(target=load, args=(i,)) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    while len(answered) < CLIENTS * REQUESTS // 4:
        time.sleep(0.001)
    replicas[0].signal(signal.SIGKILL)
    for client in clients:
        client.join()
    assert len(answered) == CLIENTS * REQUESTS and not wrong, (len(answered), wrong[:3])
    assert replicas[1].stop() == 0
finally:
    nginx.terminate()
    nginx.wait()
    for replica in replicas:
        replica.process.kill()
