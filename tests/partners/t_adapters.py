# SPDX-License-Identifier: Apache-2.0
# The Python package's plans of objects, beside the plans of plans/ and the commands that make them: pipelines of TorchRec made on
# the CPU, schedules of torch.distributed.pipelining, Megatron's parallel state.
import json, os, subprocess, sys, types

from tap import check, comment, done, folder, here, needs, skip, swsim

source = here.parent.parent
site = folder / "site" / "swsim"
subprocess.run([sys.executable, source / "python/generate.py", source, site], check=True)
for file in (source / "python/swsim").glob("*.py"):
    (site / file.name).write_text(file.read_text())
(site / "plans").symlink_to(source / "plans")
sys.path.insert(0, str(site.parent))
os.environ["PATH"] = str(os.path.dirname(os.path.abspath(os.environ.get("SWSIM", "./swsim")))) + os.pathsep + os.environ["PATH"]
needs("torch")
import swsim as package
import torch


def exported(*words, stdin=""):
    made = swsim(*words, stdin=stdin)
    assert made.returncode == 0, made.stderr
    return made.stdout


def proved(plan):
    verdict = package.verify(plan, no_fix=True)
    return verdict.proved, verdict


# ---- TorchRec: each class, each option that has a plan, and all of them hold ---------------------

def torchrec():
    try:
        import torchrec.distributed.train_pipeline.train_pipelines as pipelines
    except (ImportError, OSError) as error:
        skip(f"TorchRec cannot be loaded: {error}".splitlines()[0])
        return
    model, device = torch.nn.Linear(2, 2), torch.device("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = {
        "base": lambda: pipelines.TrainPipelineBase(model, optimizer, device),
        "sparse_dist": lambda: pipelines.TrainPipelineSparseDist(model, optimizer, device),
        "sparse_dist.after_forward":
            lambda: pipelines.TrainPipelineSparseDist(model, optimizer, device, enqueue_batch_after_forward=True),
        "fused_sparse_dist": lambda: pipelines.TrainPipelineFusedSparseDist(model, optimizer, device),
        "fused_sparse_dist.after_data_dist":
            lambda: pipelines.TrainPipelineFusedSparseDist(model, optimizer, device, embedding_lookup_after_data_dist=True),
        "fused_sparse_dist.current":
            lambda: pipelines.TrainPipelineFusedSparseDist(model, optimizer, device, emb_lookup_stream="current"),
        "semi_sync": lambda: pipelines.TrainPipelineSemiSync(model, optimizer, device),
        "prefetch": lambda: pipelines.PrefetchTrainPipelineSparseDist(model, optimizer, device),
        "comp_autograd": lambda: pipelines.TrainPipelineSparseDistCompAutograd(model, optimizer, device),
        "eval_sparse_dist": lambda: pipelines.EvalPipelineSparseDist(model, optimizer, device),
        "pt2": lambda: pipelines.TrainPipelinePT2(model, optimizer, device),
    }
    for name, make in made.items():
        try:
            pipeline = make()
        except (AttributeError, TypeError, RuntimeError) as error:
            skip(f"from_torchrec, {name}: not in this version: {error}".splitlines()[0])
            continue
        plan, named = package.from_torchrec(pipeline), json.loads(exported("export", "--json", source / f"plans/torchrec/{name}.yaml"))
        check(f"from_torchrec, {type(pipeline).__name__}: plans/torchrec/{name}.yaml",
              {**plan, "name": named["name"]} == named, f"{plan}\n{named}")
    stages = [pipelines.PipelineStage(name=name, runnable=lambda batch: batch, stream=torch.cpu.Stream())
              for name in ("data_copy", "gpu_postproc")]
    staged = pipelines.StagedTrainPipeline.__new__(pipelines.StagedTrainPipeline)  # its constructor asks for a GPU
    staged._pipeline_stages = stages
    plan = package.from_staged(staged)
    theirs = json.loads(exported("export", "--json", source / "plans/reference/staged.yaml"))
    check("from_staged: a task for each stage, on a stream of its own, and the plan is proved",
          [task for task in plan.to_dict()["schedule"]] == ["data_copy", "gpu_postproc", "Train"] and proved(plan)[0], plan)
    comment(f"plans/reference/staged.yaml has {list(theirs['schedule'])}")


# ---- torch.distributed.pipelining --------------------------------------------------------------

# The order that PyTorch makes for a class, without processes: its own functions on an object without stages.
def order(kind, ranks, microbatches, chunks):
    from torch.distributed.pipelining import schedules
    made = getattr(schedules, kind).__new__(getattr(schedules, kind))
    made.pp_group_size, made._n_microbatches, made.n_local_stages = ranks, microbatches, chunks
    made._num_stages, made.enable_zero_bubble = ranks * chunks, kind == "ScheduleInterleavedZeroBubble"
    made._stages = [None] * chunks
    made.number_of_rounds = max(1, microbatches // ranks)
    made.microbatches_per_round = microbatches // made.number_of_rounds
    made.pipeline_order = {rank: made._calculate_single_rank_operations(rank) for rank in range(ranks)}
    return made


def pipelining():
    try:
        from torch.distributed.pipelining import schedules
    except ImportError as error:
        skip(f"torch.distributed.pipelining: {error}")
        return
    for kind, name in (("ScheduleInterleaved1F1B", "interleaved_1f1b"), ("ScheduleLoopedBFS", "looped_bfs")):
        for ranks, microbatches in ((2, 4), (4, 8)):
            plan = package.from_schedule(order(kind, ranks, microbatches, 2))
            ours = exported("generate", name, f"-p{ranks}", f"-m{microbatches}", "-v2")
            theirs = [[word for word in line.split(",") if word]
                      for line in exported("export", "--format=csv", "-", stdin=ours).splitlines()]
            programs = plan["programs"].values() if isinstance(plan["programs"], dict) else plan["programs"]
            read = [[word for word in (program.split() if isinstance(program, str) else program) if word] for program in programs]
            check(f"from_schedule, {kind}, {ranks} ranks: as swsim generate {name}", read == theirs, f"{read}\n{theirs}")
            holds, verdict = proved(plan)
            check("... and it is proved", holds, verdict)


# ---- Megatron ------------------------------------------------------------------------------------

def megatron():
    try:
        from megatron.core import parallel_state
    except ImportError as error:
        skip(f"Megatron: {error}")
        return
    # What initialize_model_parallel sets; the functions that are asked are Megatron's own.
    for ranks, chunks, tp, dp in ((2, None, 1, 1), (4, None, 2, 2), (2, 2, 2, 1), (4, 2, 1, 1)):
        parallel_state.set_pipeline_model_parallel_world_size(ranks)
        parallel_state.set_virtual_pipeline_model_parallel_world_size(chunks)
        parallel_state.set_tensor_model_parallel_world_size(tp)
        parallel_state.set_expert_model_parallel_world_size(1)
        group = lambda size: types.SimpleNamespace(size=lambda: size, rank=lambda: 0)
        parallel_state._DATA_PARALLEL_GROUP = parallel_state._DATA_PARALLEL_GROUP_WITH_CP = group(dp)
        parallel_state._CONTEXT_PARALLEL_GROUP = group(1)
        torch.distributed.is_initialized = lambda: True
        plan = package.from_megatron(parallel_state, 4 * ranks)
        check(f"from_megatron: {ranks} stages, {chunks or 1} chunks, tp {tp}, dp {dp}",
              plan["generate"].get("chunks", 1) == (chunks or 1) and plan["generate"]["ranks"] == ranks
              and plan.get("parallel", {}).get("tp", 1) == tp and plan.get("parallel", {}).get("dp", 1) == dp, plan)
        holds, verdict = proved(plan)
        if chunks and ranks == 2:  # Megatron refuses this: "to avoid having multiple p2p sends and recvs between same 2 ranks per batch"
            check("... two ranks with chunks need messages that overlap", verdict.violation == "mismatch", verdict)
            holds, verdict = proved(package.from_megatron(parallel_state, 4 * ranks, messages="overlap_p2p"))
        check("... its groups and messages are proved", holds, verdict)


torchrec()
pipelining()
megatron()
done()
