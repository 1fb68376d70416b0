#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Hangs by more than the flight recorder's dumps: stacks of py-spy and gdb, counts of NCCL's RAS, logs of its Inspector, read beside
# the dumps, and the counts alone. The files have the layout that these programs write.
. "${srcdir:-.}/tests/tap.sh"

# Four ranks; rank 2 lacks the last call: its main thread waits for data.
mkdir "$dir/job"
python3 - "$dir/job" <<'END'
import json, sys
for rank in range(4):
    entries = [{"record_id": i, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": i + 1, "p2p_seq_id": 0, "op_id": i,
                "profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "output_sizes": [[4]], "input_dtypes": ["Float"],
                "output_dtypes": ["Float"], "state": "completed" if i < 4 else "started", "is_p2p": False,
                "frames": [{"name": "all_reduce", "filename": "/x/site-packages/torch/distributed/c10d.py", "line": 9},
                           {"name": "step", "filename": "/home/me/train.py", "line": 57}]} for i in range(4 if rank == 2 else 5)]
    with open(f"{sys.argv[1]}/nccl_trace_rank_{rank}", "w") as file:
        json.dump({"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}, "entries": entries}, file)
END
spy()
{
    cat <<END
Process $1: python train.py
Python v3.12.3 (/usr/bin/python3.12)

Thread $1 (idle): "MainThread"
$2
Thread 99 (active): "Thread-1 (_pin_memory_loop)"
    select (selectors.py:415)
    other (other.py:1)
END
}
spy 70 '    wait (torch/distributed/distributed_c10d.py:2806)
    step (train.py:57)
    main (train.py:90)' >"$dir/job/stack_0.txt"
spy 72 '    poll (selectors.py:415)
    get (queue.py:180)
    next_batch (data.py:12)
    main (train.py:88)' >"$dir/job/stack_2.txt"
cat >"$dir/job/stack_1.json" <<'END'
[{"pid": 71, "thread_id": 5, "thread_name": "Thread-1", "frames": [{"name": "other", "filename": "other.py", "line": 1}]},
 {"pid": 71, "thread_id": 1, "thread_name": "MainThread", "active": false, "owns_gil": false,
  "frames": [{"name": "wait", "filename": "/x/site-packages/torch/distributed/distributed_c10d.py", "short_filename": "c10d.py", "line": 2806},
             {"name": "step", "filename": "/home/me/train.py", "short_filename": "train.py", "line": 57}]}]
END
cat >"$dir/job/stack_3.gdb" <<'END'
[New LWP 731]

Thread 2 (Thread 0x7f22 (LWP 731) "pt_nccl_watchdg"):
#0  0x00007f11 in pthread_cond_wait () from /lib/x86_64-linux-gnu/libc.so.6

Thread 1 (Thread 0x7f11 (LWP 73) "python"):
#0  0x00007f10 in cudaStreamSynchronize () from /usr/lib/libcudart.so.12
#1  0x00007f12 in c10d::ProcessGroupNCCL::WorkNCCL::synchronize (this=0x1) at ProcessGroupNCCL.cpp:812
#2  main (argc=1, argv=0x2) at train.c:41
END
import_job()
{
    "$SWSIM" import -o "$dir/plan.yaml" "$@" >"$dir/out" 2>"$dir/err"
}
check "stacks are read beside the dumps" import_job "$dir/job"
check "py-spy: the innermost line of the program" found "rank 2: MainThread at data.py:12 in next_batch, innermost poll" "$dir/err"
check "... as text or JSON; those at one line are one note" found "ranks 0, 1: MainThread at train.py:57 in step, innermost wait" "$dir/err"
check "gdb: the innermost frame" found "rank 3: python in cudaStreamSynchronize" "$dir/err"
check "the rank that lacks the call has its line in the plan" found "{host: 0s, name: stands in next_batch, at: 'data.py:12'}" "$dir/plan.yaml"
check "... and no other has" test "$(grep -c 'stands in' "$dir/plan.yaml")" = 1
"$SWSIM" verify "$dir/plan.yaml" >"$dir/out" 2>&1
check "... which the story tells" found "stands in next_batch (data.py:12)" "$dir/out"
check "... and the repair comes behind it" found "Fix (proved): rank 2 thread main: add collective all_reduce" "$dir/out"
rm "$dir/job/nccl_trace_rank_2"
import_job "$dir/job"
check "a rank without a dump has its line, too" found "{host: 0s, name: stands in next_batch, at: 'data.py:12'}" "$dir/plan.yaml"
check "... beside what is said of it" found "rank 2 has no dump, and all others of process group 0 stand in all_reduce, number 5" "$dir/err"

# As src/ras/client_support.cc and plugins/profiler/inspector/inspector_json.cc of NCCL 2.29 write them: the JSON of ncclras on many
# lines, the log of the Inspector one object a line, whose numbers count each kind of collectives from 0. Two communicators of four
# processes, a tensor-parallel pair beside all.
python3 - "$dir" <<'END'
import json, sys
folder = sys.argv[1]
def rank(number, process, status={}, **counts):
    return {"rank": number, "host": "10.0.0.1", "pid": 500 + process, "cuda_dev": process, "nvml_dev": process,
            "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False, **status},
            "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": 0, **counts}}
def comm(number, size, ranks, missing=[]):
    return {"hash": number, "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e", "size": size, "ranks_count": len(ranks),
            "missing_ranks_count": len(missing), "ranks": ranks, "missing_ranks": missing}
def ras(name, *comms):
    with open(f"{folder}/{name}", "w") as file:
        json.dump({"nccl_version": "2.29.1", "cuda_runtime_version": 13000, "cuda_driver_version": 13000, "timestamp": "2026-11-30 05:00:00",
                   "communicators_count": len(comms), "communicators": comms,
                   "ras": {"collection_time_sec": 0.1, "timeouts_count": 0}}, file, indent=2)
lost = {"rank": 1, "host": "10.0.0.1", "pid": 501, "cuda_dev": 1, "nvml_dev": 1, "status": {"unresponsive": True, "considered_dead": False}}
world = comm("0xa11", 4, [rank(i, i, AllReduce=6649 if i == 2 else 6650) for i in range(4)])
ras("ras.json", world)
ras("ras2.json", world, comm("0xb01", 2, [rank(0, 0, {"async_error": 6}, AllGather=7)], [lost]))
ras("ras3.json", comm("0xa11", 2, [rank(0, 0, AllReduce=10, AllGather=4), rank(1, 1, AllReduce=9, AllGather=5)]))

def line(process, kind, **perf):
    return json.dumps({"header": {"id": "0xa11", "comm_name": "dp", "rank": process, "n_ranks": 4, "nnodes": 1},
                       "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "9019a1912", "rec_mechanism": "nccl_profiler_interface",
                                    "dump_timestamp_us": 1752867229276385, "hostname": "node", "pid": 500 + process},
                       kind: perf}, separators=(",", ":")) + "\n"
def coll(process, name, number):
    return line(process, "coll_perf", coll=name, coll_sn=number, coll_msg_size_bytes=1 << 20, coll_exec_time_us=61,
                coll_timing_source="kernel_gpu", coll_algobw_gbs=277.210914, coll_busbw_gbs=485.119099)
logs = {process: [] for process in range(4)}
for process, log in logs.items():
    for number in range(6640, 6649 if process == 2 else 6650):
        log.append(coll(process, "AllReduce", number))
        log.append(coll(process, "AllGather", number // 2))
    log.append(line(process, "p2p_perf", p2p="Send", p2p_sn=9000, p2p_peer=1, p2p_msg_size_bytes=1 << 20, p2p_exec_time_us=5))
for name, chosen in ("all", 9), ("three", 3):
    with open(f"{folder}/{name}.log", "w") as file:
        file.writelines(text for process, log in logs.items() if process != chosen for text in log)
with open(f"{folder}/none.log", "w") as file:
    file.writelines(coll(process, "AllReduce", 6648) for process in range(4))
END
check "the counts of RAS alone are a plan" import_job "$dir/ras.json"
check "... with the calls that not all have launched" found "{collective: AllReduce, comm: comm0xa11, stream: nccl.comm0xa11, at: '#6650'}" "$dir/plan.yaml"
"$SWSIM" verify "$dir/plan.yaml" >"$dir/out" 2>&1
check "... which hangs always, for the one that is behind" found "rank 2 thread main" "$dir/out"
check "... as a sentence says" found "rank 2 of communicator 0xa11 (process 502 on 10.0.0.1) has launched AllReduce 6649 times, others 6650" "$dir/err"
import_job "$dir/ras2.json"
check "a process that does not answer is named" found "rank 1 of communicator 0xb01 (process 501 on 10.0.0.1) does not answer" "$dir/err"
check "... and an error that NCCL has seen" found "rank 0 of communicator 0xb01 (process 500 on 10.0.0.1) has the asynchronous error 6" "$dir/err"
import_job "$dir/ras3.json"
check "as many calls, of other kinds, are told" found "rank 1 of communicator 0xa11 (process 501 on 10.0.0.1) has launched AllReduce 9 times, others 10" "$dir/err"
check "... and do not fit together" says "mismatch, always: #5 AllGather meets #10 AllReduce" "$SWSIM" verify --no-fix "$dir/plan.yaml"
import_job "$dir/job" "$dir/all.log"
check "a log of the Inspector beside dumps" found "rank 2 of communicator 0xa11 (dp) (process 502 on node) has completed AllReduce 6649 times, others 6650" "$dir/err"
check "the log alone is a plan" import_job "$dir/all.log"
check "... which says who is behind" found "rank 2 of communicator 0xa11 (dp) (process 502 on node) has completed AllReduce 6649 times, others 6650" "$dir/err"
check "... and that it cannot tell who waits" says "except calls that are not over: the Inspector logs those that are" "$SWSIM" verify "$dir/plan.yaml"
import_job "$dir/three.log"
check "a rank without a log is named" found "rank 3 of communicator 0xa11 (dp): no log of the Inspector is there" "$dir/err"
import_job "$dir/none.log"
check "what all have completed" found "all 4 ranks of communicator 0xa11 (dp) that have a log have completed AllReduce 6649 times" "$dir/err"
check "logs beside the counts of RAS" import_job "$dir/none.log" "$dir/ras.json"
check "... tell who stands in which call" found "ranks 0, 1, 3 of communicator 0xa11 (dp) launched AllReduce number 6650, and did not complete it" "$dir/err"
"$SWSIM" verify "$dir/plan.yaml" >"$dir/out" 2>&1
check "... and the plan is that of the launched ones" found "rank 2 thread main" "$dir/out"
head -c 800 "$dir/all.log" >"$dir/cut.log"
import_job "$dir/cut.log"
check "the last line of a process that was ended may be cut off" found "cut.log: its last line is cut off, and left out" "$dir/err"
(head -c 300 "$dir/all.log" && echo && cat "$dir/all.log") >"$dir/damaged.log"
check "another may not" complains 3 "damaged.log: byte 301: the JSON text ends" "$SWSIM" import "$dir/damaged.log"
check "stacks alone are refused" complains 3 "expected dumps of the flight recorder" "$SWSIM" import "$dir/job/stack_0.txt"
done_testing
