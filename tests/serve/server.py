# SPDX-License-Identifier: Apache-2.0
"""A server under test, and requests by the standard library."""
import http.client
import json
import re
import signal
import socket
import subprocess
import threading


class Server:
    def __init__(self, locus, *arguments):
        self.log = []
        self.process = subprocess.Popen([locus, "serve", *arguments, "--port", "0"], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        while True:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError("the server did not start: " + "".join(self.log))
            self.log.append(line)
            found = re.match(r"locus serve: http://127\.0\.0\.1:(\d+)$", line)
            if found:
                break
        self.port = int(found.group(1))
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def request(self, method, path, body=None, headers=None):
        """Status, headers and the bytes of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        status, _, answer = self.request("POST", path, json.dumps(body), headers)
        return status, json.loads(answer)

    def get(self, path):
        status, _, answer = self.request("GET", path)
        return status, answer

    def raw(self, data, wait=0.2):
        """Bytes as they are; what comes back until the server closes, or is silent for so long."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            answer = b""
            s.settimeout(wait)
            while wait:
                try:
                    part = s.recv(65536)
                except (ConnectionResetError, TimeoutError):
                    return answer
                if not part:
                    return answer
                answer += part
            return answer

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Its exit code after SIGTERM."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.reader.join(10)
        return code
