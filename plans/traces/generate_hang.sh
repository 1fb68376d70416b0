#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# generate_hang.sh FOLDER - what PyTorch's flight recorder dumps of a hang on four ranks: rank0.json to rank3.json in
# FOLDER, in the recorder's JSON form. It is plans/traces/hang, on which doc/hangs.md shows what a dump is good for.
#
# A step gathers the features of all ranks, and sums the gradients in two buckets and a metric. In step 3 rank 2 has an
# empty batch and leaves the metric out: `if len(batch): dist.all_reduce(metric)`.
set -eu
folder=${1:?usage: generate_hang.sh FOLDER}
mkdir -p "$folder"
exec awk -v folder="$folder" '
# One call of rank r on the group of all, over or not.
function call(r, name, input, output, over)
{
    printf("%s\n  {\"record_id\": %d, \"pg_id\": 0, \"process_group\": [\"0\", \"default_pg\"], \"collective_seq_id\": %d,\n" \
        "   \"op_id\": %d, \"is_p2p\": false, \"profiling_name\": \"nccl:%s\", \"state\": \"%s\", \"retired\": %s,\n" \
        "   \"input_sizes\": [[%d]], \"input_dtypes\": [\"Float\"], \"output_sizes\": [[%d]], \"output_dtypes\": [\"Float\"]}",
        calls ? "," : "", calls, calls + 1, calls + 1, name, over ? "completed" : "scheduled", over ? "true" : "false",
        input, output) >(folder "/rank" r ".json")
    calls++
}
BEGIN {
    for (r = 0; r < 4; r++) {
        calls = 0
        printf("{\"version\": \"2.10\", \"rank\": %d,\n \"pg_config\": {\"0\": {\"name\": \"0\", \"desc\": \"default_pg\", " \
            "\"ranks\": \"[0, 1, 2, 3]\"}},\n \"entries\": [", r) >(folder "/rank" r ".json")
        for (step = 1; step <= 3; step++) {
            call(r, "_all_gather_base", 4096, 16384, 1)
            call(r, "all_reduce", 1048576, 1048576, 1)
            call(r, "all_reduce", 786432, 786432, 1)
            if (step < 3 || r != 2)
                call(r, "all_reduce", 1, 1, step < 3)
        }
        if (r == 2)
            call(r, "_all_gather_base", 4096, 16384, 0)
        print "\n ]}" >(folder "/rank" r ".json")
    }
}'
