# SPDX-License-Identifier: Apache-2.0
"""Short-cuts of tasks: what a task did once is kept and put back, and its function left out.

Kept are the attributes that the task set in its context, and what its `io` captures. Tensors are cloned and detached
when they are kept, and a new leaf each time they are put back. Where such a leaf needs a gradient, its backward pass
goes on into what the task had read, with zeros, so that a later backward() finds the graph that it expects.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Iterable, Optional

_MISSING = object()


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of nested dicts, lists, tuples and objects with tensors, each tensor changed."""
    if _is_tensor(value):
        return change(value)
    if isinstance(value, dict):
        return {key: _each(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_each(item, change) for item in value]
    if isinstance(value, tuple):
        items = [_each(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if hasattr(value, "__dict__") and any(_is_tensor(item) for item in vars(value).values()):
        copy = object.__new__(type(value))
        copy.__dict__.update({key: _each(item, change) for key, item in vars(value).items()})
        return copy
    return value


def _kept(tensor: Any) -> Any:
    copy = tensor.detach().clone()
    return copy.requires_grad_(tensor.requires_grad and copy.is_floating_point())


def _tensors(value: Any) -> list[Any]:
    found: list[Any] = []

    def keep(tensor: Any) -> Any:
        found.append(tensor)
        return tensor

    _each(value, keep)
    return found


def _restore(value: Any, read: list[Any]) -> Any:
    """New leaves for the tensors; with a bridge for gradients to the tensors that the task would have read."""
    upstream = [tensor for tensor in read if tensor.requires_grad]
    if "torch" not in sys.modules:
        return value
    torch: Any = sys.modules["torch"]

    class Bridge(torch.autograd.Function):  # type: ignore[misc]
        """The identity. Its backward gives zeros to what was read."""

        @staticmethod
        def forward(ctx: Any, restored: Any, *sources: Any) -> Any:
            """Return what is restored."""
            ctx.save_for_backward(*sources)
            return restored.view_as(restored)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            """The gradient goes to the restored tensor, zeros go to the sources."""
            return (gradients[0], *(torch.zeros_like(source) for source in ctx.saved_tensors))

    def leaf(tensor: Any) -> Any:
        fresh = tensor.detach().requires_grad_(tensor.requires_grad)
        return Bridge.apply(fresh, *upstream) if tensor.requires_grad and upstream else fresh

    return _each(value, leaf)


class Shortcuts:
    """Which tasks are short-cut, and what was kept of them."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._cache: dict[tuple[str, int], tuple[dict[str, Any], list[Any]]] = {}
        self.io: dict[str, list[Any]] = {}  # task -> objects with capture() and restore(value)

    def enable(self, task: str) -> None:
        """Keep what the task does when it runs next, and leave it out from then on."""
        self._wanted.add(task)

    def disable(self, task: Optional[str] = None) -> None:
        """Run the task again; None: all tasks."""
        for name in self._names(task):
            self._wanted.discard(name)
            self._cache = {key: kept for key, kept in self._cache.items() if key[0] != name}

    def _names(self, task: Optional[str]) -> Iterable[str]:
        return [task] if task is not None else list(self._wanted)

    def call(self, name: str, function: Callable[[Any], Any], context: Any) -> None:
        """Run the task, or put back what it did before. Ranks are kept apart."""
        key = (name, context.rank)
        if name not in self._wanted:
            function(context)
        elif key in self._cache:
            values, states = self._cache[key]
            vars(context).update(_restore(values, _tensors(vars(context))))
            for io, state in zip(self.io.get(name, []), states):
                io.restore(_restore(state, []))
        else:
            before = dict(vars(context))
            function(context)
            changed = {item: value for item, value in vars(context).items() if before.get(item, _MISSING) is not value}
            self._cache[key] = (_each(changed, _kept),
                                [_each(io.capture(), _kept) for io in self.io.get(name, [])])
