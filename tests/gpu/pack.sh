#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pack.sh - all files that tests/gpu/run.sh needs, in a folder for a machine with a GPU (`make gpu-pack`), and PACK.tar.gz.
#
#     tests/gpu/pack.sh [PACK]        PACK: the folder (default gpu-pack/)
#     SWSIM_GPU_EMULATED=1            with the programs that try it out without a GPU
#
#     PACK/swrun swsim tests/gpu/t_device tests/bench/overhead            for the GPU
#          libswrecord.so tests/gpu/record_probe.cu                    to record a program, and one that is compiled there
#          tests/gpu/rows                                             rows with a program of their own
#          tests/gpu/t_swpipe_*                                           programs with the library, for the GPU
#          doc/examples/dlrm/dlrm dlrm_cuda                            the DLRM, on the host and with cuBLAS
#          tests/*_emulated tests/record/program                      to try it out without one, where that was asked for
#          tests/cuda_emulation/lib*.so.*
#          libsqlite3.so.0                                            for all programs
#          tests/gpu/run.sh tests/bench/ plans/ commit                the script, its inputs and the commit
#
# Copy the archive, unpack it and run `PACK/tests/gpu/run.sh` there. The
# programs need only the C library, of this machine's version or newer: CUDA's
# runtime, libyaml, zlib and libstdc++ are linked statically, SQLite lies beside them. Loaded there when needed: the driver
# (libcuda.so.1), NCCL (libnccl.so.2, also in Python's nvidia/nccl), cuBLAS for one row (in the toolkit, or Python's
# nvidia/cublas), and Graphviz for pictures, which run.sh
# does not draw. Packing needs CUDA, but no GPU.
set -eu
cd "$(dirname "$0")/../.."
top=$PWD
pack=${1:-gpu-pack}
: "${CC:=cc}"
: "${MAKEFLAGS:=-j2}"
export MAKEFLAGS

# library NAME: a library by its full name: NAME says whether it is a static or a shared one.
library()
{
    file=$($CC -print-file-name="$1")
    case $file in
    /*) echo "$file" ;;
    *) echo "pack.sh: no $1 here; its -dev package has it" >&2; exit 1 ;;
    esac
}

yaml=$(library libyaml.a)
sqlite=$(library libsqlite3.so)
zlib=$(library libz.a)
stdcxx=$(library libstdc++.a)
[ -x configure ] || ./autogen.sh
mkdir -p "$pack"
pack=$(cd "$pack" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Every program has a copy of what it uses of the libraries, and no more.
"$top/configure" -q CFLAGS="-O2 -g -ffunction-sections -fdata-sections" --with-cuda=guess --with-mpi=guess --with-nvtx=guess YAML_LIBS="$yaml" SQLITE_LIBS="$sqlite" ZLIB_LIBS="$zlib" ${NVCC_GENCODE:+NVCC_GENCODE="$NVCC_GENCODE"}
cudart=$(sed -n 's/^CUDA_LIBS = \([^ ]*libcudart_static.a\).*/\1/p' Makefile)
[ -n "$cudart" ] || { echo "pack.sh: configure found no CUDA runtime" >&2; exit 1; }

of_library="tests/gpu/t_swpipe_hooks tests/gpu/t_swpipe_own tests/gpu/t_swpipe_collectives tests/gpu/t_swpipe_group"
programs="swrun swsim libswrecord.so tests/gpu/t_device tests/bench/overhead tests/gpu/rows $of_library"
emulated="tests/swrun_emulated tests/gpu/t_device_emulated tests/overhead_emulated tests/gpu/rows_emulated $(printf '%s_emulated ' $of_library) tests/record/program"
# The DLRM takes libswpipe.a; static libraries of the system do not go into libswpipe.so.
export ARCHIVE_ONLY=yes
home=doc/examples/dlrm
dlrm= dlrm_emulated=
if grep -q '^CUBLAS_LIBS = .*-lcublas' Makefile; then
    dlrm="$home/dlrm $home/dlrm_cuda" dlrm_emulated=tests/dlrm_emulated
fi
programs="$programs $dlrm" emulated="$emulated $dlrm_emulated"
# NCCL, which finds the emulation in the program that opens it; what a recorded program is linked to, and CUPTI
plugin="tests/cuda_emulation/libnccl.so.2 tests/cuda_emulation/libcudart.so tests/cuda_emulation/libcupti.so"
[ -n "${SWSIM_GPU_EMULATED:-}" ] || emulated= plugin=
system="-lrt -lpthread -ldl"
beside='$$ORIGIN:$$ORIGIN/..:$$ORIGIN/../..' # where a program of the pack looks for SQLite
make -s CUDA_LIBS="$cudart $stdcxx $system" LDFLAGS="-static-libgcc -s -Wl,--gc-sections -Wl,-rpath,'$beside'" emulated_stdcxx="$stdcxx $system" \
    examples_libs='libswpipe.a $(required_libs) $(CUDA_LIBS)' \
    $programs $emulated $plugin
for file in $programs $emulated $plugin; do
    mkdir -p "$pack/$(dirname "$file")"
    cp "$file" "$pack/$file"
    extra=$(ldd "$file" | grep -Ev 'linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|sqlite3)\.so|statically linked' || true)
    # cuBLAS is the GPU's machine's, with what it needs itself
    [ "$file" != tests/record/program ] || extra=$(echo "$extra" | grep -v cuda_emulation || true)
    [ "$file" != $home/dlrm_cuda ] || extra=$(echo "$extra" | grep -Ev 'libcublas(Lt)?\.so|libgcc_s\.so' || true)
    [ -z "$extra" ] || { echo "pack.sh: $file still needs $extra" >&2; exit 1; }
done

[ -z "$plugin" ] || cp tests/cuda_emulation/libcudart.so.* "$pack/tests/cuda_emulation/"
cp -L "$sqlite" "$pack/libsqlite3.so.0"

cd "$top"
mkdir -p "$pack/tests/gpu" "$pack/tests/bench" "$pack/plans/torchrec" "$pack/plans/reference" \
    "$pack/plans/examples" "$pack/$home"
cp tests/gpu/run.sh tests/gpu/record_probe.cu "$pack/tests/gpu/"
cp tests/bench/*.sh "$pack/tests/bench/"
for file in tests/bench/*.yaml; do [ ! -e "$file" ] || cp "$file" "$pack/tests/bench/"; done
cp plans/torchrec/*.yaml "$pack/plans/torchrec/"
cp plans/reference/*.yaml "$pack/plans/reference/"
cp plans/examples/*.yaml "$pack/plans/examples/"
cp $home/*.yaml "$pack/$home/"
git describe --always --dirty --abbrev=12 >"$pack/commit" 2>/dev/null || echo unknown >"$pack/commit"
tar -czf "$pack.tar.gz" -C "$(dirname "$pack")" "$(basename "$pack")"
echo "packed: $pack.tar.gz, $(du -sk "$pack.tar.gz" | cut -f 1) KiB, unpacked $(du -sk "$pack" | cut -f 1), for glibc $(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2) or newer"
