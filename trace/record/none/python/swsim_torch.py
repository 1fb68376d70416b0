# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's operators access, and from which line they are called, told to the recorder of `swsim record`.

A dispatch mode sees every operator below autograd. Its schema says which arguments it writes; new tensors among its
results are written, too; the kernels that it launches are then one operation with these accesses. An operator of the
backward pass comes from the line of the forward operator whose gradient it computes. Calls that are no operators (events,
streams, graphs, waits of torch.distributed) have the line of their caller. With SWSIM_NONE_VALUES the operator is done on
the CPU, too, in the order of its stream, on tensors that are the device's memory."""
import array
import ctypes
import functools
import os
import sys
import sysconfig
import threading
import weakref
import zlib

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import flop_registry

_recorder = ctypes.CDLL(None)
_WRITE = 1 << 63
_PLAIN = torch.Tensor.__torch_dispatch__  # of the types that leave it to us what an operator does
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(torch.__file__) + os.sep
_LIBRARIES = tuple({os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ('purelib', 'platlib')})
_STANDARD = os.path.dirname(os.__file__) + os.sep
# Operators of other libraries' work: NCCL's calls tell their own accesses.
_OTHERS = ('c10d', '_c10d_functional', 'profiler', 'symm_mem')

# ---- where ------------------------------------------------------------------------------------------------

_texts = {}
_forward = {}  # numbers of autograd's nodes, texts of the lines of their operators


def _text(text):
    number = _texts.get(text)
    if number is None:
        number = _texts[text] = _recorder.swsim_text(text.encode())
    return number


def _is_own(name):
    """True of the files of the program: no library's, no code without a file."""
    return not name.startswith(_LIBRARIES + (_STANDARD, _TORCH, _OWN, '<'))


def _line(frame):
    return f'{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}'


def _caller():
    """The program's own line, and the innermost one outside PyTorch where that is a library's; None: neither is there."""
    frame, inner = sys._getframe(2), None
    while frame:
        name = frame.f_code.co_filename
        if _is_own(name):
            return f'{_line(frame)} ({_line(inner)})' if inner else _line(frame)
        if inner is None and not name.startswith((_TORCH, _STANDARD, _OWN, '<')):
            inner = frame
        frame = frame.f_back
    return _line(inner) if inner else None


def _operator_line():
    node = torch._C._current_autograd_node()
    if node is not None:
        forward = _forward.get(node._sequence_nr())
        return f'{forward} backward' if forward else _caller() or f'backward of {node.name()}'
    line = _caller()
    if line:
        _forward.setdefault(torch.autograd._get_sequence_nr() - 1, line)
    return line


def _with_line(function):
    """The function, whose calls of CUDA come from its caller's line."""
    def call(*args, **kwargs):
        line = _caller()
        _recorder.swsim_where(_text(line) if line else 0)
        try:
            return function(*args, **kwargs)
        finally:
            _recorder.swsim_where(0)
    call.__name__ = getattr(function, '__name__', 'call')
    call.__doc__ = getattr(function, '__doc__', None)
    call.__wrapped__ = function
    return call


def _patch(owner, *names):
    for name in names:
        function = getattr(owner, name, None)
        if function is not None:
            try:
                setattr(owner, name, _with_line(function))
            except (AttributeError, TypeError):
                pass  # a type that takes no attributes: its calls have no line


# ---- accesses -----------------------------------------------------------------------------------------------

_schemas = {}
# Arguments that are written, though the schema does not say so.
_WRITTEN = {('fsdp::all_gather_copy_in', 'all_gather_output')}


def _written(function):
    """For each argument of the operator whose values it accesses: its place, its name, and whether it is written."""
    found = _schemas.get(function)
    if found is None:
        name = function._schema.name.split('::')[-1]
        model = 0 if name.endswith('_like') or name.startswith('new_') else None  # only its shape is looked at
        found = _schemas[function] = [(i, a.name, a.alias_info is not None and a.alias_info.is_write or
                                       (function._schema.name, a.name) in _WRITTEN)
                                      for i, a in enumerate(function._schema.arguments) if i != model]
    return found


def _tensors(value, out):
    if isinstance(value, torch.Tensor):
        if value.is_cuda and value.layout is torch.strided and type(value) not in _without_memory():
            out.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _tensors(item, out)
    return out


def _extent(tensor):
    """Address and bytes, from the first element to the last."""
    elements = 1
    for size, stride in zip(tensor.size(), tensor.stride()):
        if size == 0:
            return 0, 0
        elements += (size - 1) * stride
    return tensor.data_ptr(), elements * tensor.element_size()


def _put(accesses, tensors, write):
    for tensor in tensors:
        address, size = _extent(tensor)
        if size:
            accesses.append(address)
            accesses.append(size | (_WRITE if write else 0))


_TYPES = {torch.float64: 'f64', torch.float32: 'f32', torch.float16: 'f16', torch.bfloat16: 'bf16', torch.int64: 'i64', torch.int32: 'i32',
          torch.int16: 'i16', torch.int8: 'i8', torch.uint8: 'u8', torch.bool: 'b8'}


def _shapes(function, args, kwargs):
    """Types and sizes of its tensors, in the order of the schema, as the reader of profiles has them (trace/import/kineto_operators.c)."""
    found = []
    for i, a in enumerate(function._schema.arguments):
        value = args[i] if i < len(args) else kwargs.get(a.name)
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, torch.Tensor) and tensor.dim() > 0:
                kind = '' if isinstance(value, (list, tuple)) else _TYPES.get(tensor.dtype, '?')
                found.append(f"{kind}[{'x'.join(map(str, tensor.shape))}]")
    text = ' '.join(found)
    return text if len(text) <= 110 else f'#{zlib.crc32(text.encode()):08x}'


def _pass(accesses):
    address, count = accesses.buffer_info()
    return ctypes.c_void_p(address), ctypes.c_size_t(count // 2)


_SCALAR = torch.ops.aten._local_scalar_dense.default
_told = []


def _tell_of_value(line):
    """Once: the host reads a number that no kernel has computed."""
    if 'value' not in _told and line:
        _told.append('value')
        print(f'swsim: process {os.getpid()}: {line} reads a value that no kernel has computed, since kernels do not run; '
              'if the program goes by it, record with --values', file=sys.stderr, flush=True)


def _tell_of_compiler(compile):
    """torch.compile, which under a dispatch mode leaves functions as they are."""
    def call(*args, **kwargs):
        if 'compiler' not in _told:
            _told.append('compiler')
            print(f'swsim: process {os.getpid()}: {_caller() or "a library"} calls torch.compile, which compiles nothing here: '
                  'operators run one by one, in the order of the program', file=sys.stderr, flush=True)
        return compile(*args, **kwargs)
    return functools.update_wrapper(call, compile)


def _without_memory():
    """Tensors of those who look what an operator would do."""
    if not _unreal:
        from torch._subclasses.fake_tensor import FakeTensor
        from torch._subclasses.functional_tensor import FunctionalTensor
        _unreal.update((FakeTensor, FunctionalTensor))
    return _unreal


_unreal = set()


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for kind in types:
            if kind in _without_memory():
                return function(*args, **kwargs)
            if kind.__torch_dispatch__ is not _PLAIN:
                return NotImplemented  # it does its operators on plain tensors
        line = _operator_line()
        _recorder.swsim_where(_text(line) if line else 0)
        if not _values and function is _SCALAR:
            _tell_of_value(line)
        if function.namespace in _OTHERS:
            try:
                return function(*args, **kwargs)
            finally:
                _recorder.swsim_where(0)
        reads, writes = [], []
        for i, name, is_written in _written(function):
            value = args[i] if i < len(args) else kwargs.get(name)
            if value is not None:
                _tensors(value, writes if is_written else reads)
        accesses = array.array('Q')
        _put(accesses, reads, False)
        _put(accesses, writes, True)
        name = str(function)
        name = name[:-8] if name.endswith('.default') else name
        _recorder.swsim_op_begin(_text(f'{name}\t{_shapes(function, args, kwargs)}'), *_pass(accesses))
        more = array.array('Q')
        try:
            out = _values.do(function, args, kwargs) if _values else function(*args, **kwargs)
            _tell_work(function, args, kwargs, out)
            known = {t.untyped_storage().data_ptr() for t in reads + writes}
            made = [t for t in _tensors(out, []) if t.untyped_storage().data_ptr() not in known]
            _put(more, made, True)
            _tell_tensors(_BACKWARD if torch._C._current_autograd_node() is not None else
                          _STEP if getattr(_stepping, 'on', False) else _FORWARD, _addresses(made))
        finally:
            launched = _recorder.swsim_op_end(*_pass(more))
            _recorder.swsim_where(0)
        if _values and launched:
            _values.mirror(function, args, kwargs, out)
        return out


# ---- tensors ----------------------------------------------------------------------------------------------

# As enum recording_tensor.
_PARAMETER, _GRADIENT, _OPTIMIZER, _FORWARD, _BACKWARD, _STEP = range(6)
_parameters = weakref.WeakValueDictionary()  # all that a module has had, by id
_stepping = threading.local()


def _addresses(tensors):
    """Of the memory on the device, of DTensors that of their own part."""
    found = array.array('Q')
    for tensor in tensors:
        tensor = getattr(tensor, '_local_tensor', tensor)
        if isinstance(tensor, torch.Tensor) and tensor.is_cuda and type(tensor) not in _without_memory():
            try:
                address = tensor.untyped_storage().data_ptr()
            except (NotImplementedError, RuntimeError):
                continue  # a subclass that has no memory of its own
            if address:
                found.append(address)
    return found


def _tell_tensors(what, addresses):
    if addresses:
        address, count = addresses.buffer_info()
        _recorder.swsim_tensors(what, ctypes.c_void_p(address), ctypes.c_size_t(count))


def _tell_parameters(parameters):
    _tell_tensors(_PARAMETER, _addresses(parameters))
    _tell_tensors(_GRADIENT, _addresses([p.grad for p in parameters if p.grad is not None]))


def _register(register):
    def call(module, name, parameter):
        if parameter is not None:
            _parameters[id(parameter)] = parameter
        return register(module, name, parameter)
    return functools.update_wrapper(call, register)


def _backward(backward):
    """Gradients are there, and no optimizer need look at them."""
    def call(*args, **kwargs):
        backward(*args, **kwargs)
        _tell_parameters(list(_parameters.values()))
    return functools.update_wrapper(call, backward)


def _begin_step(optimizer, args, kwargs):
    _stepping.on = True
    _tell_parameters([p for group in optimizer.param_groups for p in group['params']])


def _end_step(optimizer, args, kwargs):
    _stepping.on = False
    _recorder.swsim_step()
    _tell_tensors(_OPTIMIZER, _addresses(tree_flatten(list(optimizer.state.values()))[0]))


# As enum recording_rate.
_RATES = {torch.float64: 0, torch.float32: 1, torch.float16: 3, torch.bfloat16: 3}


def _tell_work(function, args, kwargs, out):
    """What attention computes; products of matrices are told by cuBLAS."""
    count = flop_registry.get(function._overloadpacket) if 'attention' in function._schema.name else None
    if count:
        _recorder.swsim_work(ctypes.c_uint64(count(*args, **kwargs, out_val=out)), _RATES.get(args[0].dtype, 3))


_values = None
_first = []  # PyTorch takes modes off its stack and back, and does not keep them alive meanwhile


def begin():
    """After the import of torch."""
    global _values
    if torch.version.cuda is None:
        return
    _recorder.swsim_op_end.restype = ctypes.c_size_t
    _recorder.swsim_text.restype = ctypes.c_uint32
    torch.backends.cudnn.enabled = False  # its kernels come from a library that does not say what they access
    if os.environ.get('SWSIM_NONE_VALUES'):
        import swsim_values
        _values = swsim_values
    _first.append(_Mode())
    _first[0].__enter__()
    start = threading.Thread._bootstrap_inner

    def bootstrap(thread):
        with _Mode():
            start(thread)

    threading.Thread._bootstrap_inner = bootstrap
    _patch(torch.cuda.Event, 'record', 'wait', 'query', 'synchronize', 'elapsed_time')
    _patch(torch.cuda.Stream, 'wait_event', 'wait_stream', 'record_event', 'synchronize', 'query')
    _patch(torch.cuda.CUDAGraph, 'replay', 'capture_begin', 'capture_end')
    _patch(torch.cuda, 'synchronize')
    torch.nn.Module.register_parameter = _register(torch.nn.Module.register_parameter)
    torch.autograd.backward = _backward(torch.autograd.backward)
    register_optimizer_step_pre_hook(_begin_step)
    register_optimizer_step_post_hook(_end_step)
    torch.compile = _tell_of_compiler(torch.compile)
    _patch(torch.Tensor, 'record_stream')
    if torch.distributed.is_available():
        _patch(torch._C._distributed_c10d.Work, 'wait', 'synchronize')
