# SPDX-License-Identifier: Apache-2.0
# kineto.py FILE BYTES - a trace of that size as PyTorch's profiler writes one of a training loop with shapes and stacks: 4 KB of JSON
# for each kernel, four operators, three functions of Python. Prints how many kernels it has.
import sys

shapes='"Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"], "Input Strides": [[1], [4096, 1], [1, 4096], [], []], "Input Dims": [[4096], [8192, 4096], [4096, 4096], [], []]'
def one(c,t):
    ops=''.join(f'''  {{
    "ph": "X", "cat": "cpu_op", "name": "{n}", "pid": 4001, "tid": 4001,
    "ts": {t+d}.125, "dur": {u}.250,
    "args": {{
      "External id": {c*4+k},"Record function id": 0, "Sequence number": {c}, "Fwd thread id": 0, {shapes}, "Ev Idx": {c*8+k}
    }}
  }},
''' for k,(n,d,u) in enumerate((("aten::linear",0,18),("aten::matmul",1,16),("aten::mm",2,13),("aten::as_strided",1,1))))
    py=''.join(f'''  {{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py(1747): _wrapped_call_impl_{k}", "pid": 4001, "tid": 4001,
    "ts": {t}.0{k}0, "dur": {19-k}.500,
    "args": {{
      "Python id": {c*4+k}, "Python parent id": {c*4+k-1}, "Python module id": {k}, "Ev Idx": {c*8+4+k}
    }}
  }},
''' for k in range(3))
    return ops+py+f'''  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4001, "tid": 4001,
    "ts": {t+4}.500, "dur": 5.000,
    "args": {{
      "External id": {c*4+2}, "cbid": 211, "correlation": {c}
    }}
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x5_nn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x5_nn_align8::Params)", "pid": 0, "tid": 7,
    "ts": {t+12}.000, "dur": 18.500,
    "args": {{
      "External id": {c*4+2}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {c}, "registers per thread": 128, "shared memory": 49152, "blocks per SM": 1.2, "warps per SM": 9.5, "grid": [8, 4, 1], "block": [128, 1, 1], "est. achieved occupancy %": 25
    }}
  }},
  {{
    "ph": "s", "id": {c}, "pid": 4001, "tid": 4001, "ts": {t+4}.500, "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "f", "id": {c}, "pid": 0, "tid": 7, "ts": {t+12}.000, "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
'''
with open(sys.argv[1], 'w') as f:
    f.write('{\n"schemaVersion": 1, "deviceProperties": [], "distributedInfo": {"rank": 0, "world_size": 1},\n"traceEvents": [\n')
    n=4000; step=0; c=0
    while f.tell() < int(sys.argv[2]):
        base=5159094000000+step*100000
        f.write(f'  {{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": 4001, "tid": 4001, "ts": {base}, "dur": 90000, "args": {{"External id": 1}} }},\n')
        for k in range(20): f.write(f'  {{"ph": "X", "cat": "python_function", "name": "train.py({k}): step", "pid": 4001, "tid": 4001, "ts": {base+k}, "dur": {89000-2*k}, "args": {{"Python parent id": {k}, "Python id": {k+1}, "Ev Idx": {k}}} }},\n')
        for i in range(n):
            c+=1; f.write(one(c,base+i*20))
        step+=1
    f.write('  {"ph": "M", "name": "process_name", "pid": 4001, "tid": 0, "args": {"name": "python"}}\n]}\n')
print(c)
