# SPDX-License-Identifier: Apache-2.0
# hang.py FOLDER RANKS STEPS - dumps of the flight recorder, as pickle, of a job with groups of eight across and along: four
# all-reduces and a reduce-scatter a step, of which the rank in the middle lacks the last. Prints how long pickle.load takes.
import glob, os, pickle, sys, time

folder, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
across = [list(range(first, first + 8)) for first in range(0, ranks, 8)]
along = [list(range(first, ranks, 8)) for first in range(8)]
groups = {str(number): {"name": str(number), "desc": f"{'tp' if number < len(across) else 'dp'}{number}", "ranks": str(members)}
          for number, members in enumerate(across + along)}
os.makedirs(folder, exist_ok=True)
for rank in range(ranks):
    entries, counts = [], {}
    for step in range(steps):
        for call in range(5):
            last = step == steps - 1
            if call == 4 and last and rank == ranks // 2 + 5:
                continue
            group = str(rank // 8 if call < 4 else len(across) + rank % 8)
            counts[group] = counts.get(group, 0) + 1
            entries.append({
                "record_id": len(entries), "pg_id": int(group), "process_group": (group, groups[group]["desc"]),
                "collective_seq_id": counts[group], "p2p_seq_id": 0, "op_id": len(entries), "is_p2p": False, "retired": not last,
                "profiling_name": "nccl:all_reduce" if call < 4 else "nccl:_reduce_scatter_base", "timeout_ms": 600000,
                "time_created_ns": 1700000000000000000 + 1000 * len(entries), "duration_ms": None,
                "input_sizes": [[1024, 1024]], "output_sizes": [[1024, 1024]], "input_dtypes": ["Float"], "output_dtypes": ["Float"],
                "state": "scheduled" if last and call > 0 else "completed", "time_discovered_started_ns": None,
                "time_discovered_completed_ns": None, "frames": [{"name": "step", "filename": "train.py", "line": 40 + call}]})
    with open(f"{folder}/nccl_trace_rank_{rank}", "wb") as file:
        pickle.dump({"version": "2.8", "nccl_version": "2.21.5", "pg_config": groups, "pg_status": {}, "entries": entries}, file, protocol=2)
begun = time.time()
for name in glob.glob(f"{folder}/nccl_trace_rank_*"):
    pickle.load(open(name, "rb"))
print(f"pickle.load of {ranks} x {5 * steps} entries: {time.time() - begun:.2f} s")
