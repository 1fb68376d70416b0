# SPDX-License-Identifier: Apache-2.0
# The NCCL of Python's packages beside our loader: that of the environment, and those in nccl/ of it, a folder for each
# version, as this command makes them:
#
#     pip install --no-deps --target partners/nccl/2.20.5 nvidia-nccl-cu12==2.20.5
#
# Does the library have the functions that swsim calls, and does the loader take it? Without a GPU: swrun on emulated
# CUDA comes as far as the first call that needs one, and tells the version. SWRUN_EMULATED names it (default:
# tests/swrun_emulated in the folder of the build).
import ctypes, os, pathlib, re, subprocess, sys

from tap import check, done, folder, here, skip

PLAN = """swplan: 1
name: one_collective
schedule:
  Sum: {stage: 0, time: 100us, writes: [x], work: {collective: all_reduce, comm: dp, bytes: 4KiB}}
buffers: {x: {scope: iteration}}
"""
header = here.parent.parent / "gpu/device/cuda/nccl_load.h"
functions = re.search(r"define NCCL_FUNCTION_LIST\(X\)(.*?)\n\n", header.read_text(), re.S).group(1)
functions = ["nccl" + name for name in re.findall(r"X\((\w+)\)", functions)]
swrun = pathlib.Path(os.environ.get("SWRUN_EMULATED", "tests/swrun_emulated")).resolve()
environment = pathlib.Path(sys.prefix)
libraries = [*environment.glob("nccl/*/nvidia/nccl/lib/libnccl.so.2"),
             *environment.glob("lib/python*/site-packages/nvidia/nccl/lib/libnccl.so.2")]


def version_of(library):
    number = ctypes.c_int()
    assert library.ncclGetVersion(ctypes.byref(number)) == 0
    scale = 1000 if number.value < 10000 else 10000
    return f"{number.value // scale}.{number.value % scale // 100}.{number.value % 100}"


def loads(path, version):
    (folder / "plan.yaml").write_text(PLAN)
    run = subprocess.run([swrun, "--device", "cuda", "--ranks", "1", "-n", "1", folder / "plan.yaml"],
                         env={**os.environ, "SWSIM_NCCL": str(path)}, capture_output=True, text=True)
    check(f"NCCL {version}: our loader takes it", f"(NCCL {version})" in run.stderr,
          f"status {run.returncode}: {run.stdout}{run.stderr}")


for path in sorted(libraries):
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        skip(f"{path.parts[-5]}: does not load here: {error}")
        continue
    version = version_of(library)
    missing = [name for name in functions if not hasattr(library, name)]
    check(f"NCCL {version}: the {len(functions)} functions that swsim calls", not missing, missing)
    if swrun.exists():
        loads(path, version)
    else:
        skip(f"NCCL {version}: no emulated CUDA, which needs CUDA's toolkit")
if not libraries:
    skip("no NCCL in the partners' environment")
done()
