#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim export --format=chakra`: host programs as execution traces of Chakra, with the order of streams, and `swsim import` of
# these and of others. The traces are read and written here by the test's own few lines of protobuf.
. "${srcdir:-.}/tests/tap.sh"

cat >"$dir/chakra.py" <<'END'
# chakra.py order FILE: every operation of a stream has a data dependence on the one before it; chakra.py foreign PREFIX: a
# trace of two ranks as other programs write them.
import struct, sys

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at

def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 in (0, 2)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value

def messages(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        length, at = varint(data, at)
        yield list(fields(data[at:at + length]))
        at += length

def put(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])

def number(field, value):
    return put(field << 3) + put(value)

def piece(field, data):
    data = data if isinstance(data, bytes) else data.encode()
    return put(field << 3 | 2) + put(len(data)) + data

def order(path):
    last, seen, chained = {}, 0, 0
    for message in list(messages(path))[1:]:
        attributes = {}
        for field, value in message:
            if field == 10:
                inner = dict(fields(value))
                attributes[inner[1].decode()] = inner.get(29, inner.get(9, inner.get(27)))
        if attributes.get("is_cpu_op") != 0:
            continue
        id = next(value for field, value in message if field == 1)
        deps = [value for field, value in message if field == 5]
        stream = attributes["stream"]
        seen += 1
        chained += stream not in last or last[stream] in deps
        last[stream] = id
    print(f"{seen} operations, {chained} in order, {len(last)} streams")

def foreign(prefix):
    for rank in range(2):
        nodes = [("fwd", 4, 100, [], 0), ("grad", 4, 200, [1], 0), ("ar", 7, 50, [2], 0), ("opt", 4, 30, [3], 0), ("log", 4, 10, [4], 1)]
        messages = [piece(1, "0.0.4")]
        for at, (name, kind, us, deps, cpu) in enumerate(nodes, 1):
            messages.append(number(1, at) + piece(2, name) + number(3, kind) + piece(5, b"".join(map(put, deps))) + number(7, us) +
                            piece(10, piece(1, "is_cpu_op") + number(27, cpu)) + piece(10, piece(1, "comm_size") + number(9, 1024)))
        with open(f"{prefix}.{rank}.et", "wb") as file:
            for message in messages:
                file.write(put(len(message)) + message)

{"order": order, "foreign": foreign}[sys.argv[1]](sys.argv[2])
END
# same PLAN: exported and imported it prints the same, and takes the same time.
same()
{
    "$SWSIM" export --format=chakra -o "$dir/once" "$1" || return
    "$SWSIM" import --name=same -o "$dir/same.yaml" "$dir"/once.*.et || return
    "$SWSIM" export "$1" | sed 's/^name: .*/name: same/' >"$dir/a"
    "$SWSIM" export "$dir/same.yaml" | diff "$dir/a" - || return
    [ "$("$SWSIM" predict --json "$1" | field makespan_ns)" = "$("$SWSIM" predict --json "$dir/same.yaml" | field makespan_ns)" ]
}

mkdir "$dir/job"
python3 "$srcdir/tests/import/job_with_accesses.py" "$dir/job"
"$SWSIM" import -q --repeat=never -o "$dir/job.yaml" "$dir/job"
check "a job on a GPU is imported back equal" same "$dir/job.yaml"
check "... with the order of its streams" says "20 operations, 20 in order, 2 streams" python3 "$dir/chakra.py" order "$dir/once.0.et"
check "... and what it reads and writes" says "proved     for every interleaving  " "$SWSIM" verify --no-fix "$dir/same.yaml"
"$SWSIM" import -q -o "$dir/folded.yaml" "$dir/job"
"$SWSIM" export --format=chakra -o "$dir/folded" "$dir/folded.yaml"
"$SWSIM" import --name=same -o "$dir/same.yaml" "$dir/folded.0.et"
check "a repeat is written step by step, with a buffer a step" found "reads: \[step.0.3, only.s7\]" "$dir/same.yaml"
check "... and is proved, too" says "proved     for every interleaving  " "$SWSIM" verify --no-fix "$dir/same.yaml"
"$SWSIM" import -q --force -o "$dir/cpu.yaml" "$srcdir"/tests/dumps/cpu_pipe/rank?.json 2>/dev/null
check "messages of two ranks are imported back equal" same "$dir/cpu.yaml"
"$SWSIM" import -q --force -o "$dir/cpu.yaml" "$srcdir"/tests/dumps/cpu_data/rank?.json 2>/dev/null
check "collectives and waits, too" same "$dir/cpu.yaml"
cat >"$dir/threads.yaml" <<'END'
swplan: 1
name: threads
comms: {left: [0], world: [0, 1]}
threads:
  r0.a:
  - {launch: f, stream: s, time: 1ms, host_time: 5us, sm: 2, at: 'train.py:41'}
  - {record: e, stream: s}
  - {signal: ready}
  - {collective: bcast, comm: world, stream: c, op: broadcast, root: 1, bytes: 4KiB, time: 10us}
  - {sync: device}
  r0.b:
  - {await: ready}
  - {wait: e, stream: t}
  - {group: [{send: x, peer: 1, bytes: 64B}, {recv: y, peer: 1, bytes: 64B}], comm: world, stream: t}
  r1.a:
  - {collective: bcast, comm: world, stream: c, op: broadcast, root: 1, bytes: 4KiB, time: 10us}
  - {group: [{send: y, peer: 0, bytes: 64B}, {recv: x, peer: 0, bytes: 64B}], comm: world, stream: t}
END
check "threads, flags, roots, slots and lines, too" same "$dir/threads.yaml"
python3 "$dir/chakra.py" foreign "$dir/foreign"
"$SWSIM" import -o "$dir/plan.yaml" "$dir"/foreign.?.et
check "a trace of another program: its dependences are events" found "wait: e3, stream: compute" "$dir/plan.yaml"
check "... and work of the CPU waits for the device" found "sync: event, event: e4" "$dir/plan.yaml"
check "... it takes what its longest chain does" test "$("$SWSIM" predict --json "$dir/plan.yaml" | field makespan_ns)" = 390000
head -c 200 "$dir/foreign.0.et" >"$dir/cut.et"
check "a trace that is cut off is refused" complains 3 "the trace ends before its last node does" "$SWSIM" import "$dir/cut.et"
check "an operation without a node is refused" complains 3 "Chakra has no node for" \
    "$SWSIM" export --format=chakra -o "$dir/x" "$srcdir/plans/bugs/lmcache_gil_callback_broken.yaml"
check "other forms are lowered first" complains 3 "'swsim lower' makes them" \
    "$SWSIM" export --format=chakra -o "$dir/x" "$srcdir/plans/examples/hello.yaml"
check "it needs a prefix" complains 2 "expected --output=PREFIX" "$SWSIM" export --format=chakra "$dir/threads.yaml"
done_testing
