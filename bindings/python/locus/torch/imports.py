# SPDX-License-Identifier: Apache-2.0
"""Doing something when another package is imported, without importing it: transformers takes seconds."""

from __future__ import annotations

import importlib.abc
import sys
import warnings


class _Loader(importlib.abc.Loader):
    """The module's own loader, and what waits for the module afterwards."""

    def __init__(self, own, callback):
        self.own, self.callback = own, callback

    def create_module(self, spec):
        return self.own.create_module(spec)

    def exec_module(self, module):
        self.own.exec_module(module)
        module.__loader__ = module.__spec__.loader = self.own
        _call(self.callback, module)

    def __getattr__(self, name):  # get_source, get_resource_reader, ...: asked while the module is being read
        return getattr(self.__dict__.get("own"), name)


def _call(callback, module) -> None:
    """A host's import never fails because of us."""
    try:
        callback(module)
    except Exception as error:  # whatever another version has instead of what we expect
        warnings.warn(f"locus.torch: {module.__name__}: {type(error).__name__}: {error}; left as it is", stacklevel=2)


class _Watch(importlib.abc.MetaPathFinder):
    def __init__(self):
        self.waiting, self.packages = {}, {}

    def find_spec(self, name, path=None, target=None):
        callback = self.waiting.pop(name, None)
        if callback is None:
            callback = next((found for package, found in self.packages.items() if name.startswith(package)), None)
        if callback is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, callback)
                return spec
        return None


_watch = _Watch()


def when_imported(name: str, callback) -> None:
    """callback(module), now if the module is there, else as soon as somebody imports it."""
    if name in sys.modules:
        _call(callback, sys.modules[name])
        return
    _begin()
    _watch.waiting[name] = callback


def when_each_imported(package: str, callback) -> None:
    """callback(module) for every module of the package, those that are there and those to come."""
    for name, module in list(sys.modules.items()):
        if name.startswith(package + "."):
            _call(callback, module)
    _begin()
    _watch.packages[package + "."] = callback


def _begin() -> None:
    if _watch not in sys.meta_path:
        sys.meta_path.insert(0, _watch)
