# SPDX-License-Identifier: Apache-2.0
"""Python imports this file at its start, where `swsim record --device=none` has put its folder first: when the program
imports torch, swsim_torch begins to tell the recorder what operators do."""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import queue
import sys


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != 'torch':
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            import swsim_torch
            swsim_torch.begin()

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get('SWSIM_RECORD'):
    sys.meta_path.insert(0, _Finder())
    # The one written in C hands over by the interpreter's lock, which the recorder takes for no order.
    queue.SimpleQueue = queue._PySimpleQueue

# The environment's own file of this name, which this one hides.
_here = os.path.dirname(os.path.abspath(__file__))
_others = [entry for entry in sys.path if os.path.abspath(entry or '.') != _here]
_spec = importlib.machinery.PathFinder.find_spec('sitecustomize', _others)
if _spec is not None and _spec.loader is not None:
    _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
