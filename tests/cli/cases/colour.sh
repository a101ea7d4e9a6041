# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# Colours on a terminal only, and not where NO_COLOR or TERM=dumb objects.
cat >ask.py <<'END'
import os, pty, subprocess, sys

def colours(**settings):
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **settings}
    ours, theirs = pty.openpty()
    child = subprocess.Popen([os.environ["LOCUS"], "help", "demo"], stdout=theirs, env=environment)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece
    child.wait()
    return text.count(b"\x1b[")

print("terminal", colours() > 0)
print("NO_COLOR", colours(NO_COLOR="1") > 0)
print("NO_COLOR empty", colours(NO_COLOR="") > 0)
print("dumb", colours(TERM="dumb") > 0)
END
python3 ask.py
"$LOCUS" help demo | grep -c "$(printf '\033')"
exit 0
