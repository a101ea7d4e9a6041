# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
tokenizer roberta
# What a vocabulary spells is escaped on a terminal, and goes to a program as it is.
cat >ask.py <<'END'
import json, os, pty, subprocess

LOCUS = os.environ["LOCUS"]
text = "a\x1b]0;title\x07b\u202ec\nd"
line = subprocess.run([LOCUS, "tokenize", "roberta", text, "--json"], capture_output=True, check=True).stdout
command = [LOCUS, "tokenize", "roberta", "--ids", ",".join(map(str, json.loads(line)["ids"]))]
print(ascii(subprocess.run(command, capture_output=True, check=True).stdout.decode()))
ours, theirs = pty.openpty()
child = subprocess.Popen(command, stdout=theirs)
os.close(theirs)
shown = b""
while True:
    try:
        shown += os.read(ours, 4096)
    except OSError:
        break
child.wait()
print(ascii(shown.decode()))
END
python3 ask.py
