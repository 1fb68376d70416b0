#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# job.sh STEPS - on standard output, a plan as `swsim import` writes it of a training job: per step 248 operations of a
# training thread, which launches forwards on s7, hands over to the thread of autograd and waits for it, and of a
# prefetching thread; copies on s22 and communication on s20 and s21, joined by events, none of them used twice.
# 4,000 steps are a million operations.
set -eu
awk -v steps="${1:?how many steps}" '
function kernel(stream, i)
{
    printf "  - {launch: kernel%d, stream: s%d, time: %dus, host_time: %dus}\n",
        i * 7 % 40, stream, 5 + i * 37 % 90, 4 + i * 13 % 25
}
function record(event, stream) { printf "  - {record: e%d_%d, stream: s%d}\n", step, event, stream }
function wait(event, stream) { printf "  - {wait: e%d_%d, stream: s%d}\n", step, event, stream }
function copy(kind, stream, us)
{
    printf "  - {copy: %s, name: Memcpy, stream: s%d, bytes: 256KiB, time: %dus, host_time: 20us}\n",
        kind, stream, us
}
function hand_over(name) { printf "  - {signal: %s%d}\n", name, step }
function take_over(name, of) { printf "  - {await: %s%d}\n", name, of }

function train()
{
    take_over("batch", step)
    wait(0, 7)
    for (i = 0; i < 100; i++)
        kernel(7, i)
    record(1, 7); wait(1, 21); kernel(21, 3); record(2, 21); wait(2, 7)
    hand_over("forward")
    take_over("backward", step)
    wait(3, 7)
    for (i = 0; i < 10; i++)
        kernel(7, i)
    copy("d2h", 7, 3)
    print "  - {sync: stream, stream: s7}"
}
function go_back()
{
    take_over("forward", step)
    for (i = 0; i < 80; i++) {
        kernel(7, i)
        if (i % 20 == 19) { record(4 + i, 7); wait(4 + i, 20); kernel(20, i) }
    }
    record(3, 20)
    hand_over("backward")
}
function prefetch()
{
    if (step >= 2) take_over("backward", step - 2)
    print "  - {host: 300us, name: read}"
    for (i = 0; i < 20; i++)
        copy("h2d", 22, 10 + i)
    record(0, 22)
    print "  - {sync: stream, stream: s22}"
    hand_over("batch")
}
BEGIN {
    print "swplan: 1\nname: job\nmachine: {launch_queue: 1024}\nthreads:\n  r0.t0:"
    for (step = 0; step < steps; step++) train()
    print "  r0.t1:"
    for (step = 0; step < steps; step++) go_back()
    print "  r0.t2:"
    for (step = 0; step < steps; step++) prefetch()
}'
