# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch done on the CPU, for `swsim record --device=none --values`: behind the kernels of an operator its
stream gets a function of the host, which does the operator again on CPU tensors that are the device's memory. So a stream's
order is that of its values, and no rank waits for another one."""
import atexit
import ctypes
import itertools
import sys
import threading

import torch
from torch.utils._pytree import tree_flatten, tree_map

_CPU = torch.device('cpu')
_device = ctypes.CDLL('libswnone.so')
_device.none_push_host.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_waiting, _numbers, _lock = {}, itertools.count(1), threading.Lock()
_failed = {}
# What has no kernel of the CPU by its own name, and what does the same.
_aten = torch.ops.aten


def _attention(query, key, value, *rest, **options):
    causal = options.get('is_causal', False) or any(r is True for r in rest[1:2])
    scale = options.get('scale')
    return (torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal, scale=scale),)


_instead = {
    '_scaled_dot_product_flash_attention': _attention,
    '_scaled_dot_product_efficient_attention': lambda q, k, v, *rest, **options: _attention(
        q, k, v, 0.0, any(r is True for r in rest[3:4]) or options.get('is_causal', False), scale=options.get('scale')),
    '_scaled_dot_product_cudnn_attention': _attention,
    '_fused_sdp_choice': None,
}


def _host(tensor):
    """A tensor of the CPU that is the same memory."""
    storage = tensor.untyped_storage()
    size, address = storage.nbytes(), storage.data_ptr()
    if not size:
        return torch.empty(tensor.size(), dtype=tensor.dtype)
    block = torch.frombuffer((ctypes.c_byte * size).from_address(address), dtype=torch.uint8)
    return torch.empty(0, dtype=tensor.dtype).set_(
        block.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def _to_host(value):
    """An operator is done later: what it reads of the host is read now, as when kernels are launched."""
    if isinstance(value, torch.Tensor):
        return _host(value) if value.is_cuda else value.clone()
    if isinstance(value, torch.device) and value.type == 'cuda':
        return _CPU
    return None if isinstance(value, torch.Generator) else value


def _do(function, args, kwargs, out):
    """On CPU tensors; what it returns goes where the device's results are."""
    with torch.no_grad():
        name = function._schema.name.split('::')[-1]
        kwargs.pop('pin_memory', None)
        instead = _instead.get(name)
        results = instead(*args, **kwargs) if instead else function(*args, **kwargs)
        for to, value in zip(out, tree_flatten(results)[0]):
            if isinstance(to, torch.Tensor) and isinstance(value, torch.Tensor) and to.shape == value.shape and \
                    to.numel() and to.data_ptr() != value.data_ptr():
                to.copy_(value)


@_FUNCTION
def _called(number):
    with _lock:
        work = _waiting.pop(number)
    try:
        _do(*work)
    except Exception as error:
        name = str(work[0])
        if name not in _failed:
            _failed[name] = str(error).split('\n')[0][:120]


_address = ctypes.cast(_called, ctypes.c_void_p)
# Operators whose results have a size that depends on values: they wait for their stream, as they do on a GPU.
_SIZED = ('nonzero', 'masked_select', '_unique2', 'unique_dim', 'unique_consecutive', 'bincount')


def do(function, args, kwargs):
    name = function._schema.name.split('::')[-1]
    if name in ('index', 'index_put_', 'index_put', '_index_put_impl_') and isinstance(args[1], (list, tuple)) and any(
            i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]):
        args = (args[0], _without_masks(args[1])) + tuple(args[2:])
    if name not in _SIZED or not any(isinstance(a, torch.Tensor) and a.is_cuda for a in args):
        return function(*args, **kwargs)
    return tree_map(lambda t: t.to('cuda') if isinstance(t, torch.Tensor) else t, _sized(function, args, kwargs))


def _sized(function, args, kwargs):
    torch.cuda.current_stream().synchronize()
    with torch.no_grad():
        return function(*tree_map(_to_host, tuple(args)), **tree_map(_to_host, kwargs))


def _without_masks(indices):
    out = []
    for index in indices:
        if index is not None and index.is_cuda and index.dtype in (torch.bool, torch.uint8):
            out.extend(_sized(_aten.nonzero.default, (index,), {}).to('cuda').unbind(1))
        else:
            out.append(index)
    return out


def _copy(name, args, out):
    """Of a copy between host and device: where to, and from where."""
    to, source = (out, args[0]) if name == '_to_copy' else args[:2] if name == 'copy_' else (None, None)
    return (to, source) if to is not None and to.is_cuda != source.is_cuda else (None, None)


def mirror(function, args, kwargs, out):
    """Behind the operator's kernels. A copy between host and device has moved its bytes itself, unless a kernel prepares
    them or what comes of them."""
    name = function._schema.name.split('::')[-1]
    to, source = _copy(name, args, out)
    if name in _SIZED or name == '_local_scalar_dense' or to is not None and to.dtype == source.dtype and \
            to.is_contiguous() and source.is_contiguous():
        return
    results = tree_flatten(out)[0]
    if not any(isinstance(a, torch.Tensor) and a.is_cuda for a in results + tree_flatten((args, kwargs))[0]):
        return
    known = [r if isinstance(r, torch.Tensor) and not r.is_cuda else _to_host(r) for r in results]
    work = (function, tree_map(_to_host, args), tree_map(_to_host, kwargs), known)
    if to is not None and not to.is_cuda and not (kwargs.get('non_blocking') or args[2:3] == (True,)):
        return _do(*work)  # the host has waited for it
    number = next(_numbers)
    with _lock:
        _waiting[number] = work
    _device.none_push_host(torch.cuda.current_stream().cuda_stream, _address, number)


@atexit.register
def _tell():
    for name, why in sorted(_failed.items()):
        print(f'swsim: --values: {name} is not computed: {why}', file=sys.stderr)
