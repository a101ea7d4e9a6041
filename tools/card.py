#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""card.py CARD.svg CARD.png: the picture that stands beside links to the page, 1200 x 630, as headless Chromium draws it."""
import base64
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "page"))
import browser

with tempfile.TemporaryDirectory() as profile:
    tab = browser.Browser(profile)
    try:
        tab.open_tab()
        tab.screen(1200, 630)
        tab.visit("file://" + os.path.abspath(sys.argv[1]))
        with open(sys.argv[2], "wb") as file:
            file.write(base64.b64decode(tab.call("Page.captureScreenshot")["data"]))
    finally:
        tab.close()
