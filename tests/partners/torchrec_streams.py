# SPDX-License-Identifier: Apache-2.0
"""TorchRec's own pipeline on the device that is not there, under `swsim record --device=none` and torchrun:

    torchrec_streams.py PIPELINE

What it pushes has in the recording the name of the task that does it, TASK(BATCH), in the place of its line."""
import os, sys

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)

import swsim_torch
import torchrec.distributed.train_pipeline.train_pipelines as pipelines
import torchrec_order as order


def where():
    call = order.log.innermost()
    return f"{call[0]}({call[1]})" if call else None


name = sys.argv[1]
order.patch()
swsim_torch._caller = swsim_torch._operator_line = where
if name == "pt2":  # the whole exchange is in the model's forward
    from torchrec.distributed.embeddingbag import ShardedEmbeddingBagCollection
    order.wrap(ShardedEmbeddingBagCollection, "input_dist", "InputDistStart")
kernel = "replicated" if name in ("base", "staged") else "fused_uvm_caching" if "prefetch" in name else "fused"
try:
    order.drive(order.table(pipelines)[name], device, kernel, pinned=name != "pt2")
except AttributeError as error:
    print("no such pipeline" if "train_pipelines' has no attribute" in str(error) else error, flush=True)
    sys.exit(3)
torch.cuda.synchronize()
print("done", flush=True)
dist.destroy_process_group()
