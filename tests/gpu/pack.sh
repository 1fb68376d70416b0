#!/bin/sh
# pack.sh - what tests/gpu/run.sh needs, in a folder to carry to a machine with a GPU (`make gpu-pack`).
#
#     tests/gpu/pack.sh [PACK]        PACK: the folder (default gpu-pack/), laid out as a build folder
#
# swrun, swsim and the device suite, linked so that they need nothing there but the C library, of this
# machine's version or newer: CUDA's runtime, SQLite, libyaml and libstdc++ are inside. Opened when needed,
# and looked for there: the driver (libcuda.so.1), NCCL (libnccl.so.2, also in Python's nvidia/nccl), and
# Graphviz for pictures, which run.sh does not draw. CUDA is needed here, a GPU is not.
set -eu
cd "$(dirname "$0")/../.."
top=$PWD
pack=${1:-gpu-pack}
: "${CC:=cc}"
: "${MAKEFLAGS:=-j2}"
export MAKEFLAGS

# archive NAME: a static library by its full name, that no shared one is taken instead.
archive()
{
    file=$($CC -print-file-name="$1")
    case $file in
    /*) echo "$file" ;;
    *) echo "pack.sh: no $1 here; its -dev package has it" >&2; exit 1 ;;
    esac
}

yaml=$(archive libyaml.a)
sqlite=$(archive libsqlite3.a)
stdcxx=$(archive libstdc++.a)
[ -x configure ] || ./autogen.sh
mkdir -p "$pack"
pack=$(cd "$pack" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$top/configure" -q --with-cuda YAML_LIBS="$yaml" SQLITE_LIBS="$sqlite -lm -ldl -lpthread" ${NVCC_GENCODE:+NVCC_GENCODE="$NVCC_GENCODE"}
cudart=$(sed -n 's/^CUDA_LIBS = \([^ ]*libcudart_static.a\).*/\1/p' Makefile)
[ -n "$cudart" ] || { echo "pack.sh: configure found no CUDA runtime" >&2; exit 1; }
make -s CUDA_LIBS="$cudart $stdcxx -lrt -lpthread -ldl" LDFLAGS="-static-libgcc -s" swrun swsim tests/t_device
mkdir -p "$pack/tests"
cp swrun swsim "$pack/"
cp tests/t_device "$pack/tests/"

for program in swrun swsim tests/t_device; do
    extra=$(ldd "$pack/$program" | grep -Ev 'linux-vdso|ld-linux|lib(c|m|dl|rt|pthread)\.so' || true)
    [ -z "$extra" ] || { echo "pack.sh: $program still needs $extra" >&2; exit 1; }
done
echo "packed: $pack, $(du -sk "$pack" | cut -f 1) KiB, for glibc $(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2) or newer"
