# SPDX-License-Identifier: Apache-2.0
# hangs.py CASE RANK RANKS FOLDER - one rank of a job that hangs over gloo, and its dump of PyTorch's flight recorder:
# nccl_trace_rank_RANK in FOLDER, and the same as RANK.json. The job runs in a thread; beside it the dump is written anew
# again and again, so that a rank that gloo ends has one too. After two seconds all ranks end.
import os, sys, threading, time

os.environ["TORCH_FR_BUFFER_SIZE"] = "64"
import torch, torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace as dump_pickle, _dump_fr_trace_json as dump_json

case, rank, ranks, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
x = torch.ones(1000)


def is_dumped(other, since):
    made = f"{folder}/{other}.json"
    return os.path.exists(made) and os.path.getmtime(made) > since


def step(group=None):
    dist.all_reduce(x, group=group)


def nothing():
    step()
    dist.broadcast(x, 0)
    step()


def skipped():
    step()
    if rank != 1:
        dist.broadcast(x, 0)
    step()


def short():
    step()
    step()
    if rank != 1:
        step()


def opposite():
    step()
    for group in groups if rank == 0 else groups[::-1]:
        step(group)


def opposite_later():
    for group in groups:
        step(group)
    opposite()


def size():
    step()
    since = time.time() + 0.5
    while rank == 1 and not is_dumped(0, since):  # rank 0, to which the size is too large, has a dump before
        time.sleep(0.02)
    dist.all_reduce(x if rank == 0 else torch.ones(2000))
    step()


def kind():
    step()
    dist.all_gather_into_tensor(torch.ones(1000 * ranks), x) if rank == 1 else step()


def sends():
    step()
    dist.send(x, 1 - rank)
    dist.recv(x, 1 - rank)
    step()


def message():
    step()
    if rank == 0:
        dist.send(x, 1)
    step()


def halves():
    step()
    step(groups[rank // 2])
    if rank != 3:
        step(groups[rank // 2])
    step()


def run():
    try:
        globals()[case]()
    except Exception as error:
        print("rank", rank, "of", case, "raises", str(error).splitlines()[0][:120], flush=True)


store = dist.FileStore(folder + "/store", ranks)
dist.init_process_group("gloo", rank=rank, world_size=ranks, store=store)
groups = [dist.new_group([0, 1]), dist.new_group([2, 3] if ranks == 4 else [0, 1])]
threading.Thread(target=run, daemon=True).start()
for _ in range(20):
    time.sleep(0.1)
    for name, dump in (f"nccl_trace_rank_{rank}", dump_pickle), (f"{rank}.json", dump_json):
        with open(f"{folder}/{name}.new", "wb") as out:
            out.write(dump(True, False))
        os.replace(f"{folder}/{name}.new", f"{folder}/{name}")
# The end of one rank would be an error of the others, and their calls would end.
open(f"{folder}/{rank}.done", "w").close()
for _ in range(100):
    if not all(os.path.exists(f"{folder}/{other}.done") for other in range(ranks)):
        time.sleep(0.02)
os._exit(0)
