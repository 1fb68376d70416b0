#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No global variable is written but in cmd/: a program that uses the libraries twice, or from two threads, has two of
# everything. The exceptions are facts of a process, one a line; the test holds the list to these.
. "${srcdir:-.}/tests/tap.sh"
: "${INSTRUMENT_FLAGS:=}"
test -z "$INSTRUMENT_FLAGS" || skip_all "instrumented objects have variables of their own"
objdump --version >"$dir/out" 2>&1 || skip_all "no objdump"

# File, variable, what it says of the process.
cat >"$dir/known" <<'END'
base/processors known                how many processors the process may use, asked once
gpu/device/cores awake               threads of all pipelines that compete for the cores
gpu/device/cores processes           processes that share the cores
gpu/device/cuda/cuda_stream nvtxGlobals_v3 of NVTX's header
gpu/device/cuda/cuda_stream InitializeInjectionNvtx2_fnptr of NVTX's header
gpu/device/nvtx nvtxGlobals_v3       of NVTX's header
gpu/device/nvtx InitializeInjectionNvtx2_fnptr of NVTX's header
gpu/device/nvtx once                 NVTX is set up once
gpu/lib/collectives last             numbers that make names unique in a process
gpu/lib/swpipe describing            one pipeline at a time writes its error
END

# Each writable variable of an object, as "room/file name". Kernels have those of their compiler; the recorder is a process's
# own by its nature.
# shellcheck disable=SC2046
find $(source_folders) -maxdepth 1 -name '*.o' 2>/dev/null | grep -v -e '^cmd/' -e swrecord | sort >"$dir/objects"
while read -r object; do
    file=${object%.o}
    [ -e "$srcdir/${file%/*}/${file##*[/-]}.c" ] || continue # left by an older build
    objdump -t "$object" | awk -v file="${object%.o}" '
        $0 ~ / O \.(bss|data|tbss|tdata)/ && $0 !~ / O \.data\.rel\.ro/ && $NF !~ /^_Z|^DW\.ref|__cuda/ {
            sub(/\.[0-9]+$/, "", $NF)
            print file, $NF
        }'
done <"$dir/objects" | sort -u >"$dir/written"

check "objects were looked at" sh -c 'test "$(wc -l <"$1")" -gt 100' sh "$dir/objects"
no_other()
{
    awk 'NR == FNR { known[$1 " " $2] = 1; next } !known[$1 " " $2] { print; other = 1 } END { exit other }' \
        "$dir/known" "$dir/written" >&2
}
check "no other variable is written" no_other
done_testing
