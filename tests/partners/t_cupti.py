# SPDX-License-Identifier: Apache-2.0
# An export of Nsight Systems holds records of CUPTI: the numbers and names that swsim reads beside the headers of CUPTI's
# packages, those of cupti/ in the partners' environment and those that came with PyTorch.
import pathlib, re, sqlite3, sys

from tap import check, done, folder, here, skip, swsim

environment = pathlib.Path(sys.prefix)
headers = sorted([*environment.glob("cupti/*/nvidia/*/include/cupti_activity.h"),
                  *environment.glob("lib/python*/site-packages/nvidia/*/include/cupti_activity.h")])
sources = here.parent.parent / "import"


# {"HTOD": 1, ...} of CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1
def numbers(text, enumeration):
    found = re.findall(rf"\b{enumeration}_(\w+)\s*=\s*(\d+)\s*,", text)
    return {name: int(number) for name, number in found}


# An export with a copy of each kind, one after the other, on a stream of its own.
def export(kinds):
    path = folder / "copies.sqlite"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringIds(id, value)")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, streamId, globalPid, bytes, copyKind)")
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(?, ?, 0, ?, 16777216, 4096, ?)",
                       [(1000 * kind, 1000 * kind + 500, kind, kind) for kind in kinds])
    return path


# The direction that import gives the copy of each kind: that of the operation on its stream.
def directions(kinds):
    made = swsim("import", export(kinds))
    found = {int(stream): direction for direction, stream in re.findall(r"copy: (\w+).*?stream: s(\d+)", made.stdout)}
    return found, made.stdout + made.stderr


def expected(name):
    return "h2d" if name in ("HTOD", "HTOA") else "d2h" if name in ("DTOH", "ATOH") else "d2d"


def compare(path):
    text = path.read_text(errors="replace")
    interface = re.search(r"CUPTI_API_VERSION (\d+)", (path.parent / "cupti_version.h").read_text()).group(1)
    version = f"{path.parts[-5]}, interface {interface}" if "cupti" in path.parts else f"of PyTorch, interface {interface}"
    kinds = {name: number for name, number in numbers(text, "CUPTI_ACTIVITY_MEMCPY_KIND").items() if number > 0}
    found, told = directions(kinds.values())
    check(f"CUPTI {version}: the direction of {len(kinds)} kinds of copies",
          kinds and found == {number: expected(name) for name, number in kinds.items()}, f"{kinds}\n{found}\n{told}")
    ours = dict(re.findall(r"(EVENT_SYNC|STREAM_WAITS|STREAM_SYNC) = (\d)", (sources / "nsys.c").read_text()))
    syncs = numbers(text, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE")
    theirs = [syncs.get(name) for name in ("EVENT_SYNCHRONIZE", "STREAM_WAIT_EVENT", "STREAM_SYNCHRONIZE")]
    check(f"CUPTI {version}: the kinds of waits", theirs == [int(ours[name]) for name in ours], f"{ours} {syncs}")
    calls = (path.parent / "cupti_runtime_cbid.h").read_text() + (path.parent / "cupti_driver_cbid.h").read_text()
    words = re.findall(r'\{"(\w+)", CALL_', (sources / "call_names.c").read_text())
    check(f"CUPTI {version}: the calls that wait or record: {len(words)} names",
          words and all(re.search(rf"CBID_cu(da)?{word}", calls) for word in words), words)


for header in headers:
    compare(header)
if not headers:
    skip("no CUPTI in the partners' environment")
done()
