# SPDX-License-Identifier: Apache-2.0
"""Chromium over the DevTools protocol, spoken through two pipes: standard library only."""
import json
import os
import select
import shutil
import subprocess
import time


def find():
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if shutil.which(name):
            return name
    return None


class Browser:
    def __init__(self, profile):
        theirs_in, self.out = os.pipe()
        self.inp, theirs_out = os.pipe()
        command = [
            find(), "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank",
        ]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        # The browser reads from 3 and writes to 4.
        shell = 'exec "$@" 3<&%d 4>&%d' % (theirs_in, theirs_out)
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash"] + command, pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.count, self.rest, self.events, self.session = 0, b"", [], None

    def message(self, until):
        while b"\0" not in self.rest:
            if not select.select([self.inp], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("no answer from the browser")
            data = os.read(self.inp, 1 << 20)
            if not data:
                raise EOFError("the browser ended")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        until = time.monotonic() + 60
        while True:
            answer = self.message(until)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        until = time.monotonic() + 60
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.message(until))

    def open_tab(self):
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.call(domain + ".enable")

    def visit(self, url):
        self.events = []
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def screen(self, width, height=900, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:400])
        return result["result"].get("value")

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(20)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
