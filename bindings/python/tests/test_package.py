# SPDX-License-Identifier: Apache-2.0
"""The package itself: versions that belong together, types that match, declarations that arrive."""

import ast
import inspect
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

import locus
from locus import _abi, _native

PACKAGE = pathlib.Path(locus.__file__).parent


def test_version():
    header = (ROOT / "include/locus/status.h").read_text()
    parts = [line.split()[2] for line in header.splitlines() if line.startswith("#define LOCUS_VERSION_")]
    assert locus.__version__ == ".".join(parts)


def test_versions_that_do_not_belong_together():
    abi = _native.abi()
    _abi.check(abi, None)
    _abi.check(abi, locus.__version__)
    with pytest.raises(ImportError, match="found library 9.9.9, expected"):
        _abi.check(dict(abi, library_version="9.9.9"), None)
    with pytest.raises(ImportError, match=r"found version .*, expected 9\.9\.9 \(the package\)"):
        _abi.check(abi, "9.9.9")
    with pytest.raises(ImportError, match="found 99 statuses"):
        _abi.check(dict(abi, statuses=99), None)


def test_statuses_are_those_of_the_library():
    assert [_native.status_text(status) is not None for status in range(len(locus.Status) + 1)] == [True] * len(
        locus.Status
    ) + [False]
    assert "option" in _native.status_text(locus.Status.OPTION)
    assert "file" in _native.status_text(locus.Status.FORMAT)


def test_one_wheel_for_many_pythons():
    assert pathlib.Path(_native.__file__).name == "_native.abi3.so"


def test_neither_torch_nor_much_else_is_imported():
    code = "import sys, locus; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def declared_in(name):
    tree = ast.parse((PACKAGE / name).read_text())
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def parameters(node):
    a = node.args
    names = [arg.arg for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs]]
    return names


@pytest.mark.parametrize("file, module", [("__init__.pyi", locus), ("case.pyi", locus.case), ("_native.pyi", _native)])
def test_stubs_name_what_there_is(file, module):
    assert (PACKAGE / "py.typed").exists()
    text = (PACKAGE / file).read_text()
    public = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("__")]
    for name in public:
        assert name in text, f"{file} lacks {name}"
    for name, node in declared_in(file).items():
        thing = getattr(module, name)
        if isinstance(node, ast.ClassDef) or not inspect.isfunction(thing):
            continue
        real = [p.name for p in inspect.signature(thing).parameters.values() if p.kind is not p.VAR_KEYWORD]
        assert parameters(node)[: len(real)] == real or set(real) <= set(parameters(node)), name


def test_stubs_name_every_tensor_and_option():
    nodes = declared_in("__init__.pyi")
    for level, function in [("attend", "attend"), ("layer", "layer")]:
        known = set(parameters(nodes[function]))
        for scheme in locus.schemes():
            for declared in [*scheme.options, *scheme.tensors]:
                if level in declared.levels:
                    assert declared.name in known, f"{function} lacks {declared.name} of {scheme.name}"


def test_stub_of_torch():
    torch = pytest.importorskip("locus.torch")
    known = parameters(declared_in("torch/functional.pyi")["attend"])
    real = [p.name for p in inspect.signature(torch.attend).parameters.values() if p.kind is not p.VAR_KEYWORD]
    assert known[: len(real)] == real
    assert {"rel_k", "bias_dense", "q_offsets", "buckets", "pairing"} <= set(known)


def test_schemes():
    by_name = {scheme.name: scheme for scheme in locus.schemes()}
    assert len(by_name) >= 15
    t5 = by_name["t5"]
    assert str(t5).startswith("t5: ") and "Raffel" in t5.citation
    assert [option.name for option in t5.options] == ["buckets", "max_distance", "bidirectional"]
    assert t5.options[0].default == 32 and t5.options[0].levels == ("attend", "layer")
    assert t5.tensors[0].name == "bias" and "bias" in t5.terms
    assert "relative" in t5.traits and "learned" in t5.traits
    pairing = next(option for option in by_name["rope"].options if option.name == "pairing")
    assert pairing.choices == ("half", "interleaved") and pairing.required and pairing.default is None


def test_cpu_info():
    info = locus.cpu_info()
    assert info["isa"] in info["available"] and set(info["available"]) <= set(info["built"])
    assert info["threads"] >= 1


def test_config():
    version, isa, threads = locus.__config__.show().splitlines()
    assert version == f"locus {locus.__version__}" and f"instruction set: {locus.cpu_info()['isa']} " in isa
    assert threads.startswith(f"threads: {locus.get_threads()} ")
