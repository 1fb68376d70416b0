# SPDX-License-Identifier: Apache-2.0
"""nccl_times.py SYSTEM HARDWARE SWSIM - the model of collectives beside the times of NCCL in an installed aiconfigurator-core:
one line a collective and number of ranks, least, most and median of how far `swsim predict --hardware=HARDWARE` is from the
newest table of SYSTEM. The table counts elements, of an all-gather and a reduce-scatter those of all ranks together."""
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import pyarrow.parquet

NAMES = {"alltoall": "all_to_all"}
PARTS = ("all_gather", "reduce_scatter")  # a plan has the bytes of one rank
LEAST_BYTES = 2048
LAUNCH_NS = 3800  # of the host, which the prediction has and the table has not


def table(system):
    """[op_name, num_gpus, message_size, latency in ms] of the newest NCCL, in f16."""
    package = pathlib.Path(importlib.util.find_spec("aiconfigurator_core").origin).parent
    files = package.glob(f"systems/data/{system}/comm/nccl/*/nccl_perf.parquet")
    newest = max(files, key=lambda file: [int(part) for part in file.parts[-2].split(".")])
    print(f"NCCL {newest.parts[-2]}, {system}")
    rows = pyarrow.parquet.read_table(newest).to_pylist()
    return [(row["op_name"], row["num_gpus"], row["message_size"], row["latency"]) for row in rows
            if row["nccl_dtype"] == "half"]


def predicted_ns(swsim, hardware, kind, ranks, size):
    members = ", ".join(map(str, range(ranks)))
    calls = f"{{collective: c, op: {kind}, comm: all, bytes: {size}B, stream: s}}"
    threads = "".join(f"\n  r{rank}.main: [{calls}]" for rank in range(ranks))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as plan:
        plan.write(f"swplan: 1\ncomms: {{all: [{members}]}}\nthreads:{threads}\n")
        plan.flush()
        out = subprocess.run([swsim, "predict", "--json", f"--hardware={hardware}", plan.name],
                             capture_output=True, text=True, check=True).stdout
    return json.loads(out.splitlines()[0])["makespan_ns"] - LAUNCH_NS


def main(system, hardware, swsim):
    distances = {}
    for name, ranks, elements, milliseconds in table(system):
        kind, size = NAMES.get(name, name), 2 * elements
        if size >= LEAST_BYTES:
            own = size // ranks if kind in PARTS else size
            ratio = predicted_ns(swsim, hardware, kind, ranks, own) / (1e6 * milliseconds)
            distances.setdefault((kind, ranks), []).append(ratio - 1)
    for (kind, ranks), found in sorted(distances.items(), key=lambda item: min(item[1])):
        print(f"{kind:15} {ranks} ranks  {len(found)} sizes  {min(found):+.0%} to {max(found):+.0%}, "
              f"median {statistics.median(map(abs, found)):.0%}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
