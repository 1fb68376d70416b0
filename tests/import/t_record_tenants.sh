#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# import of recordings: tensors that have the same memory one after another. A program with an allocator like that of PyTorch does
# random work on tensors, on three streams, with waits and record_stream or without. Told of the tensors, --repeat=like gives many of them buffers
# of their own, and misses no race of the same run by addresses. It leaves answers of queries out, so a tensor that keeps its address
# may be a false alarm.
. "${srcdir:-.}/tests/tap.sh"
export SWSIM_RECORD_TIMES=0
[ -e "$PWD/none/libcudart.so.13" ] || skip_all "built without the imitated device"

# tenants SEED TELLS OPS
cat >"$dir/tenants.c" <<'END'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "trace/record/recorder/swsim_ops.h"
enum { PLACES = 3, BYTES = 1024, STREAMS = 3, EVENTS = STREAMS };
struct device { int8_t type, index; };
static uint32_t (*text)(const char *);
static void (*op)(const void *, uint32_t, const struct swsim_access *, size_t);
static void (*tell)(void *, int64_t, size_t, size_t, struct device);
static int (*record)(void *, void *), (*await)(void *, void *, unsigned), (*query)(void *), (*make_event)(void **), (*sync_event)(void *);
static char *memory;
static void *streams[STREAMS], *events[EVENTS], *kept[PLACES][STREAMS];
static int tells, home[PLACES], live[PLACES], used[PLACES][STREAMS], held[PLACES][STREAMS];
static uint64_t state;
static int draw(int limit) { return (int)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % limit; }
static void use(int place, int stream, int write, int part)
{
    struct swsim_access access = {(uint64_t)(uintptr_t)(memory + place * BYTES + (part == 2 ? BYTES / 2 : 0)),
                                  (part ? BYTES / 2 : BYTES) | (write ? SWSIM_OPS_WRITE : 0)};
    op(streams[stream], text(write ? "write" : "read"), &access, 1);
    used[place][stream] = 1;
}
static void begin(int place)
{
    for (int s = 0; s < STREAMS; s++) {
        if (held[place][s] && query(kept[place][s]))
            return;
        held[place][s] = used[place][s] = 0;
    }
    home[place] = draw(12) ? place % STREAMS : draw(STREAMS);
    live[place] = 1;
    if (tells)
        tell(memory + place * BYTES, BYTES, 0, 0, (struct device){1, 0});
    use(place, draw(12) ? home[place] : draw(STREAMS), 1, 0);
}
static void end(int place, int marks)
{
    live[place] = 0;
    for (int s = 0; marks && s < STREAMS; s++)
        if (used[place][s] && s != home[place]) {
            record(kept[place][s], streams[s]);
            held[place][s] = 1;
        }
    if (tells)
        tell(memory + place * BYTES, -BYTES, 0, 0, (struct device){1, 0});
}
int main(int count, char **argv)
{
    void *self = dlopen(NULL, RTLD_NOW), *cuda = dlopen("libcudart.so.13", RTLD_NOW);
    int (*alloc)(void **, size_t) = dlsym(cuda, "cudaMalloc"), (*make)(void **, unsigned) = dlsym(cuda, "cudaStreamCreateWithFlags");
    int (*sync)(void) = dlsym(cuda, "cudaDeviceSynchronize");
    text = dlsym(self, "swsim_text"), op = dlsym(self, "swsim_op");
    tell = dlsym(self, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    record = dlsym(cuda, "cudaEventRecord"), await = dlsym(cuda, "cudaStreamWaitEvent"), query = dlsym(cuda, "cudaEventQuery");
    make_event = dlsym(cuda, "cudaEventCreate"), sync_event = dlsym(cuda, "cudaEventSynchronize");
    state = (uint64_t)atoi(argv[1]), tells = atoi(argv[2]);
    const int careless = draw(3);
    if (count < 4 || !tell || alloc((void **)&memory, PLACES * BYTES))
        return 1;
    for (int s = 0; s < STREAMS; s++) {
        make(&streams[s], 1);
        make_event(&events[s]);
        for (int p = 0; p < PLACES; p++)
            make_event(&kept[p][s]);
    }
    for (int i = atoi(argv[3]); i > 0; i--) {
        const int place = draw(PLACES), stream = draw(STREAMS), other = draw(STREAMS), kind = draw(8);
        const int ordered = careless ? draw(6) : 1;
        if (!live[place])
            begin(place);
        else if (kind < 3) {
            if (ordered && stream != home[place]) { /* behind the other streams, and these behind it */
                record(events[home[place]], streams[home[place]]);
                await(streams[stream], events[home[place]], 0);
            }
            use(place, stream, !draw(3), draw(3));
            if (ordered && stream != home[place] && draw(2)) {
                record(events[stream], streams[stream]);
                await(streams[home[place]], events[stream], 0);
            }
        } else if (kind < 5)
            end(place, careless == 2 ? draw(4) : 1);
        else if (kind == 5 && !draw(4))
            sync_event(events[stream]);
        else if (kind == 6) {
            record(events[stream], streams[stream]);
            await(streams[other], events[stream], 0);
        }
    }
    return sync();
}
END
"$CC" -I"$srcdir" -o "$dir/tenants" "$dir/tenants.c" -ldl >"$dir/log" 2>&1 || { cat "$dir/log"; check "the program is built" false; done_testing; exit; }

# verdict TELLS SEED REPEAT: its status; $dir/run.yaml
verdict()
{
    rm -rf "$dir/run.swr"
    "$SWSIM" record --device=none -q -o "$dir/run.swr" -- "$dir/tenants" "$2" "$1" 60 >"$dir/log" 2>&1 || { cat "$dir/log"; return 9; }
    "$SWSIM" import -q --repeat="$3" -o "$dir/run.yaml" "$dir/run.swr" >"$dir/log" 2>&1 || { cat "$dir/log"; return 8; }
    "$SWSIM" verify --no-fix "$dir/run.yaml" >"$dir/$1.txt" 2>&1
}
runs=${SWSIM_PLANS:-40}
[ -z "${SWSIM_LONG-}" ] || runs=1000
seed=${SWSIM_SEED:-1} last=$((${SWSIM_SEED:-1} + runs)) right=0 wrong=0 differ=0 own=0 placed=0 alarms=0
while [ "$seed" -lt "$last" ]; do
    verdict 0 "$seed" never; by_address=$?
    verdict 1 "$seed" like; told=$?
    [ $by_address != 0 ] || [ $told != 1 ] || alarms=$((alarms + 1))
    if [ $by_address -gt $told ] || [ $told -gt 1 ]; then
        differ=$((differ + 1))
        echo "# SWSIM_SEED=$seed: by addresses $by_address, told of tensors $told"
    fi
    [ $told != 0 ] || right=$((right + 1))
    [ $told != 1 ] || wrong=$((wrong + 1))
    own=$((own + $(grep -c 'tensor[0-9]' "$dir/run.yaml")))
    placed=$((placed + $(grep -c 'device0' "$dir/run.yaml")))
    seed=$((seed + 1))
done
echo "# $runs runs, $right proved, $wrong violated; $own operations by tensors, $placed by addresses, $alarms false alarms"
check "no race is missed" test $differ = 0
check "there are few false alarms" test $((alarms * 10)) -le "$runs"
check "some runs are right, and some wrong" test $right -gt 0 -a $wrong -gt 0
check "some tensors have buffers of their own, and some have addresses" test $own -gt 0 -a $placed -gt 0
done_testing
