#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# json.sh [TRACE] - how fast JSON of a trace is read: by swsim's reader, by a bare scan, by Python's json; inflation
# included. Without TRACE a trace of 35 MB is written, as PyTorch's profiler writes them.
set -eu
: "${READ_JSON:=tests/bench/read_json}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trace=${1:-$dir/trace.json.gz}
[ $# -gt 0 ] || awk 'BEGIN {
    print "{\"schemaVersion\": 1, \"traceEvents\": ["
    for (i = 0; i < 75000; i++) {
        printf "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 7, \"tid\": %d,\n", i % 3
        printf "    \"ts\": %d.%03d, \"dur\": %d.%03d,\n    \"args\": {\n      \"External id\": %d, \"cbid\": 211, \"correlation\": %d\n    }\n  },\n", i * 11, i % 1000, i % 90, i * 7 % 1000, i, i
        printf "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void at::native::vectorized_elementwise_kernel<4, float>(int, float)\", \"pid\": 0, \"tid\": 7,\n"
        printf "    \"ts\": %d.%03d, \"dur\": %d.%03d,\n    \"args\": {\n      \"device\": 0, \"stream\": 7, \"correlation\": %d, \"grid\": [%d, 1, 1]\n    }\n  },\n", i * 11 + 5, i % 1000, i % 60, i * 3 % 1000, i, i % 512
    }
    print "  {\"ph\": \"i\", \"name\": \"end\"}\n]}"
}' | gzip -6 >"$trace"
"$READ_JSON" "$trace"
if command -v python3 >/dev/null; then
    python3 - "$trace" <<'END'
import gzip, json, sys, time
best = 1e9
for _ in range(3):
    begin = time.process_time()
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    json.loads(text)
    best = min(best, time.process_time() - begin)
print(f"{'Python json':24} {len(text) / best / 1e6:6.0f} MB/s")
END
fi
