# SPDX-License-Identifier: Apache-2.0
"""Measured times of operators for `swsim predict --operators`, from the tables of an installed aiconfigurator-core.

    python -m swsim.operators h100_sxm >h100.csv
    swsim predict --hardware=h100-sxm --operators=h100.csv job.yaml

The tables are read where the package is installed. They have products of matrices in bf16, as serving frameworks run them."""
from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Iterator


def _folder() -> pathlib.Path:
    found = importlib.util.find_spec("aiconfigurator_core")
    if found is None or found.origin is None:
        sys.exit("swsim.operators: aiconfigurator-core is not installed: pip install aiconfigurator-core")
    return pathlib.Path(found.origin).parent / "systems" / "data"


def products(system: str) -> Iterator[str]:
    """The lines of the table."""
    folder = _folder()
    files = sorted(folder.glob(f"{system}/gemm/*/*/gemm_perf.parquet"))
    if not files:
        names = ", ".join(sorted({file.parts[-5] for file in folder.glob("*/gemm/*/*/gemm_perf.parquet")}))
        sys.exit(f"swsim.operators: aiconfigurator-core has no table for '{system}': it has {names or 'none'}")
    import pyarrow.parquet  # aiconfigurator-core needs it, too
    yield "operator,shapes,device_us"
    for file in files:
        print(f"swsim.operators: {file}", file=sys.stderr)
        table = pyarrow.parquet.read_table(file, columns=["gemm_dtype", "m", "n", "k", "latency"]).to_pydict()
        for kind, m, n, k, milliseconds in zip(*table.values()):
            if kind == "bfloat16":
                yield f"aten::mm,bf16[{m}x{k}] bf16[{k}x{n}],{1000 * milliseconds:.6g}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for line in products(sys.argv[1]):
        print(line)
