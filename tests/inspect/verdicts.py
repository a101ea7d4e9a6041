#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verdicts.py LOCUS SCRATCH: the hostile files F01-F54 and F96-F99 through `locus inspect`.

Every file is made here, from scratch, with nothing but struct and json, independently of the C
tests of the reader. Refused: exit code 3, nothing on stdout, one line on stderr that names the
file. Accepted: exit code 0 and nothing on stderr. Prints one line per failure and the summary
line of a suite."""
import json
import os
import socket
import struct
import subprocess
import sys

locus, scratch = sys.argv[1], sys.argv[2]
sample = os.environ.get("LOCUS_TEST_SAMPLE", "0") not in ("", "0")
passed = failed = 0


def file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(4,), offsets=(0, 16), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def raw(body):
    """A header in which the tensor entry `a` is written by hand."""
    return file(('{"a":%s}' % body).encode(), bytes(16))


def judge(name, path, refused):
    global passed, failed
    done = subprocess.run([locus, "inspect", path], capture_output=True, timeout=60)
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    wrong = []
    if done.returncode != (3 if refused else 0):
        wrong.append(f"exit code {done.returncode}")
    if len(lines) != (1 if refused else 0):
        wrong.append(f"{len(lines)} lines on stderr")
    if refused and (not lines or os.path.basename(path) not in lines[0]):
        wrong.append("the line does not name the file")
    if refused and done.stdout:
        wrong.append("printed something")
    if wrong:
        failed += 1
        print(f"FAIL inspect/{name}: {', '.join(wrong)}: {lines[:1]}")
    else:
        passed += 1


def check(name, content, refused=True):
    path = os.path.join(scratch, name.replace("/", "_") + ".safetensors")
    with open(path, "wb") as out:
        for piece in content if isinstance(content, list) else [content]:
            out.write(piece)
    judge(name, path, refused)
    os.remove(path)


good = file({"a": entry()}, bytes(16))
check("good", good, refused=False)
check("F01", b"")
for size in range(1, 8):
    check(f"F02/{size}", bytes(size))
check("F03", struct.pack("<Q", 0))
for name, length in (("F04", 2**64 - 1), ("F05", 2**63), ("F06", 2**64 - 8), ("F07", 1000)):
    check(name, file({"a": entry()}, bytes(16), length))
path = os.path.join(scratch, "F08.safetensors")
with open(path, "wb") as out:
    out.write(struct.pack("<Q", 100000001))
    out.truncate(8 + 100000001)
judge("F08", path, True)
os.remove(path)
if not sample:
    check("F09", [struct.pack("<Q", 100000000), b" " * 99999998, b"{}"], refused=False)
for text in (b"[]", b"null", b'"x"', b"1"):
    check("F10/" + text.decode().strip('"'), file(text))
check("F11", file(b" \t\n\r" + json.dumps({"a": entry()}).encode(), bytes(16)), refused=False)
check("F12", file(b"\xef\xbb\xbf{}"))
check("F13", file("{}".encode("utf-16")))
for number, bad in enumerate((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82")):
    check(f"F14/{number}", file(b'{"__metadata__":{"k":"' + bad + b'"}}'))
check("F15", file(b"{}\0\0"))
check("F16", file(b"{}{}"))
text = json.dumps({"a": entry()}).encode()
for size in range(1, len(text), 5 if sample else 1):
    check(f"F17/{size}", file(text[:size], bytes(16)))
for number, bad in enumerate((b'{"a":1,}', b"{/* */}", b"{'a':1}", b'{"a":NaN}', b'{"a":Infinity}')):
    check(f"F18/{number}", file(bad))
check("F19/arrays", file(b"[" * 100000))
check("F19/objects", file(b'{"a":' * 100000))
a, b = json.dumps(entry()), json.dumps(entry("I32"))
check("F20", file(f'{{"a":{a},"a":{b}}}'.encode(), bytes(16)))
check("F21", file(f'{{"a":{a},"\\u0061":{a}}}'.encode(), bytes(16)))
check("F22", file(b'{"__metadata__":{},"__metadata__":{}}'))
check("F23", file(b'{"__metadata__":{"k":"1","k":"2"}}'))
check("F24", raw('{"dtype":"F32","dtype":"F32","shape":[4],"data_offsets":[0,16]}'))
for bad in (b"null", b"[]", b'"x"'):
    check("F25/" + bad.decode().strip('"'), file(b'{"__metadata__":' + bad + b"}"))
for bad in (b"1", b"{}"):
    check("F26/" + bad.decode(), file(b'{"__metadata__":{"k":' + bad + b"}}"))
check("F27", raw('["F32",[4],[0,16]]'))
check("F28", file({"a": entry(strides=[1])}, bytes(16)))
for field in ("dtype", "shape", "data_offsets"):
    check("F29/" + field, file({"a": {k: v for k, v in entry().items() if k != field}}, bytes(16)))
for number, name in enumerate(("F33", "f32", "", "F" * 1000000)):
    check(f"F30/{number}", file({"a": entry(name)}, bytes(16)))
check("F31", file({"a": entry("F4", (3,), (0, 1))}, bytes(1)))
for number, bad in enumerate(("16.0", "1.6e1", "-0", "016", "+16", "0x10", '"16"')):
    check(f"F32/{number}", raw('{"dtype":"F32","shape":[4],"data_offsets":[0,%s]}' % bad))
for number, bad in enumerate((2**48, 2**53 + 1, 2**63, 2**64, 10**20, "1e400", "9" * 400)):
    check(f"F33/{number}", raw('{"dtype":"F32","shape":[%s],"data_offsets":[0,16]}' % bad))
check("F34", file({"a": entry(shape=(4194305, 4194305, 211106198978564))}, bytes(16)))
check("F35", file({"a": entry(shape=(2, 9223372036854775807))}, bytes(16)))
check("F36/0", file({"a": entry(shape=(0, 2**64 - 1), offsets=(0, 0))}))
check("F36/1", file({"a": entry(shape=(2**64 - 1, 2, 0), offsets=(0, 0))}))
check("F37/17", file({"a": entry(shape=(1,) * 17, offsets=(0, 4))}, bytes(4)))
check("F37/million", file({"a": entry(shape=(1,) * 1000000, offsets=(0, 4))}, bytes(4)))
check("F38", file({"a": entry(offsets=(16, 0))}, bytes(16)))
check("F39/same", file({"a": entry(), "b": entry()}, bytes(16)))
check("F39/one", file({"a": entry(), "b": entry("U8", (16,), (15, 31))}, bytes(31)))
check("F40/start", file({"a": entry(offsets=(4, 20))}, bytes(20)))
check("F40/middle", file({"a": entry(), "b": entry(offsets=(20, 36))}, bytes(36)))
check("F41/byte", good + b"\0")
for name, magic in (("zip", b"PK\x03\x04"), ("pdf", b"%PDF-1.7"), ("hdf5", b"\x89HDF\r\n\x1a\n")):
    check("F41/" + name, good + magic)
check("F42/byte", good[:-1])
check("F42/half", good[: len(good) // 2])
check("F43/beyond", file({"a": entry(offsets=(0, 1000), shape=(250,))}, bytes(16)))
check("F43/wrap", file({"a": entry(offsets=(2**64 - 16, 2**64 - 1))}, bytes(16)))
check("F44", file({"a": entry(offsets=(0, 12))}, bytes(12)))
check("F45", file({"z": entry(shape=(0,), offsets=(0, 0)), "a": entry()}, bytes(16)), refused=False)
check("F46", file({"a": entry(shape=(), offsets=(0, 4))}, bytes(4)), refused=False)
check("F47", file({}), refused=False)
if not sample:
    one = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    check("F48", file(("{" + ",".join(one % i for i in range(1000001)) + "}").encode()))
    check("F49", file(b'{"a":{"dtype":"F32","x":[' + b"{}," * 14000000 + b"{}]}}"))
check("F50", file({"b": entry("U8", (1,), (0, 1)), "a": entry(offsets=(1, 17))}, bytes(17)), refused=False)
check("F51", file({"a": entry()}, struct.pack("<4I", 0x7FC00000, 0x7F800000, 1, 0x7FA00000)), refused=False)
for number, name in enumerate(("", "a\0b", "x" * 1000000)):
    check(f"F52/{number}", file({name: entry()}, bytes(16)))
for number, name in enumerate(("\x1b[31mred", "\u202eleft", "%n%s", "../../x")):
    check(f"F52/ok{number}", file({name: entry()}, bytes(16)), refused=False)
check("F53", file({"a": entry("BOOL", (4,), (0, 4))}, b"\0\1\7\xff"), refused=False)
for name, magic in (("gguf", b"GGUF"), ("hdf5", b"\x89HDF\r\n\x1a\n"), ("gzip", b"\x1f\x8b"), ("xz", b"\xfd7zXZ\0")):
    check("F96/" + name, magic + bytes(64))
check("F97/zip", b"PK\x03\x04" + bytes(60) + b"archive/data.pkl")
check("F97/pickle", b"\x80\x04" + bytes(62))
check("F98/lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
check("F98/html", b"<!DOCTYPE html><html><body>404</body></html>")

folder = os.path.join(scratch, "F99-folder")
os.mkdir(folder)
judge("F99/folder", folder, True)
fifo = os.path.join(scratch, "F99-fifo")
os.mkfifo(fifo)
judge("F99/fifo", fifo, True)
path = os.path.join(scratch, "F99-socket")
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(path)
    judge("F99/socket", path, True)
judge("F99/device", "/dev/zero", True)
judge("F99/proc", "/proc/self/status", True)

print(f"inspect: {passed} passed, {failed} failed, 0 skipped")
sys.exit(failed != 0 or passed == 0)
