# SPDX-License-Identifier: Apache-2.0
# accesses.py RANK RANKS FOLDER PORT - each case does something with a tensor between an asynchronous call of gloo and the wait
# for it, under PyTorch's profiler with an ExecutionTraceObserver: FOLDER/CASE/k-RANK.json and FOLDER/CASE/et-RANK.json.
import os, pathlib, sys

# Case: what is called, what is done before the wait, and whether that is a race.
cases = {
    "nothing": ("dist.all_reduce(t, async_op=True)", "pass", False),
    "others": ("dist.all_reduce(t, async_op=True)", "other.add_(1); other.sum()", False),
    "view": ("dist.all_reduce(t, async_op=True)", "t.view(16, -1).t()[3:]", False),
    "read": ("dist.all_reduce(t, async_op=True)", "t + 1", True),
    "read_view": ("dist.all_reduce(t, async_op=True)", "t.view(16, -1)[2].sum()", True),
    "in_place": ("dist.all_reduce(t, async_op=True)", "t[5:].mul_(2)", True),
    "out": ("dist.all_reduce(t, async_op=True)", "torch.add(other, other, out=t)", True),
    "foreach": ("dist.all_reduce(t, async_op=True)", "torch._foreach_add_([other, t], 1)", True),
    "read_sent": ("dist.all_gather_into_tensor(both, t, async_op=True)", "t + 1", False),
    "write_sent": ("dist.all_gather_into_tensor(both, t, async_op=True)", "t.zero_()", True),
    "read_gathered": ("dist.all_gather_into_tensor(both, t, async_op=True)", "both.sum()", True),
    "message": ("(dist.isend(t, 1) if rank == 0 else dist.irecv(t, 0))", "t.sum()", True),
    "read_message": ("(dist.isend(t, 1) if rank == 0 else dist.irecv(other, 0))", "t.sum()", False),
}

if __name__ == "__main__":
    import torch, torch.distributed as dist
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function

    rank, ranks, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for case, (called, done, _) in cases.items():
        place = folder / case
        place.mkdir(exist_ok=True)
        t, other, both = torch.ones(1 << 16), torch.ones(1 << 16), torch.ones(ranks << 16)
        observer = ExecutionTraceObserver().register_callback(str(place / f"et-{rank}.json"))
        dist.barrier()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, execution_trace_observer=observer) as p:
            with record_function("step"):
                t.fill_(1), other.fill_(1), both.fill_(1)
                work = eval(called)
                exec(done)
                work.wait()
                t + other
                both + 1
        p.export_chrome_trace(str(place / f"k-{rank}.json"))
    dist.destroy_process_group()
