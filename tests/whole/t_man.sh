#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual pages: mandoc finds no fault, every line fits a terminal of 80 columns, each command of an
# example does its work (exit status 0 or 1), and examples in YAML, C and Python hold what the page says.
. "${srcdir:-.}/tests/tap.sh"
programs=$(cd "$(dirname "$SWSIM")" && pwd) || exit 1
top=$(cd "$srcdir" && pwd) || exit 1
PATH=$programs:$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
ln -s "$top/plans" "$top/doc" "$dir"
cp "$top/plans/reference/sparse_dist.yaml" "$dir/plan.yaml"

# Pages that are not in the folder of the system's are no fault here, nor are long lines of the source.
faultless()
{
    ! mandoc -T lint -W warning "$1" | grep .
}

# A line of a terminal's page, of more than 80 columns.
too_wide()
{
    mandoc -T ascii -O width=80 "$1" | sed 's/.\x08//g' | grep -E '.{81}'
}
narrow()
{
    ! too_wide "$1"
}

for page in "$top"/doc/*.[1-8]; do # the layout of a page
    if command -v mandoc >/dev/null; then
        check "$(basename "$page"): no fault" faultless "$page"
        check "$(basename "$page"): 80 columns" narrow "$page"
    else
        skip "no mandoc here"
    fi
done

# The commands of a page, in order, with what they need.
works()
{
    (cd "$dir" && eval "$1") >"$dir/out" 2>&1 </dev/null
    status=$?
    cat "$dir/out"
    [ "$status" -le 1 ]
}
# The memory that MPI leaves behind cannot be excepted: t_mpi.sh.
mpirun()
{
    ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}" command mpirun "$@"
}
mpi=no
if mpirun -n 2 swsim predict --quiet "$dir/plan.yaml" >"$dir/mpi" 2>&1 && ! grep -q 'works alone' "$dir/mpi"; then mpi=yes; fi
for page in swsim-verify.1 swsim-predict.1 swsim-compare.1 swsim-generate.1 swrun.1; do
    while IFS= read -r command; do
        case $command in
        nsys*) # a GPU's program, for the CUDA device
            if command -v nsys >/dev/null && command -v nvidia-smi >/dev/null; then
                check "$page: $command" works "$command"
            else
                skip "$page: no nsys and GPU here for $command"
            fi
            ;;
        *mpirun*) if [ $mpi = yes ]; then check "$page: $command" works "$command"; else skip "$page: no MPI for $command"; fi ;;
        *) check "$page: $command" works "$command" ;;
        esac
    done < <(sed -n 's/^\.Dl \$ //p' "$top/doc/$page")
done

# blocks PAGE: each literal block of its EXAMPLES in a file of its own, $dir/PAGE.N.
blocks()
{
    awk -v out="$dir/$1." '
        /^\.Sh/ { here = /EXAMPLES/ }
        here && /^\.Bd/ { file = out (++n); next }
        /^\.Ed/ { file = "" }
        file { gsub(/\\e/, "\\"); print >file }' "$top/doc/$1"
}
blocks swplan.5
for plan in "$dir"/swplan.5.[0-9]*; do
    mv "$plan" "$plan.yaml"
    check "swplan.5: example ${plan##*.} has the verdicts it expects" swsim verify --expect "$plan.yaml"
done

blocks libswsim.3
grep -L '^import' "$dir"/libswsim.3.[0-9]* | sort -V | xargs cat >"$dir/statements"
{
    echo '#include "api/swsim.h"'
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    echo 'struct swsim_result *runs, *ledger, *picture;'
    cat "$dir/statements"
    echo '}'
} >"$dir/example.c"
check "libswsim.3: its examples are C" "$CC" -std=c11 -Wall -Werror -fsyntax-only -I"$top" "$dir/example.c"

# Its examples run: in C each as one program, in Python with the library of the build.
judged() # judged COMMAND...: it works, and says what was proved
{
    (cd "$dir" && "$@") >"$dir/out" 2>&1 </dev/null || { cat "$dir/out"; return 1; }
    grep -q proved "$dir/out" || { cat "$dir/out"; return 1; }
}
cp "$dir/plan.yaml" "$dir/train.yaml"
{
    echo '#include "api/swsim.h"'
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    cat "$dir/libswsim.3.1"
    echo 'return 0; }'
} >"$dir/first.c"
case ${INSTRUMENT_FLAGS-} in
*-fsanitize*) skip "libswsim.3: a program with the sanitizer's libraries is tests/cmd/t_swsim_lib.sh" ;;
*)
    check "libswsim.3: its first example is compiled" "$CC" -std=c11 -Wall -Werror -I"$top" "$dir/first.c" -L"$programs" -lswsim -o "$dir/first"
    check "and runs" judged env LD_LIBRARY_PATH="$programs" "$dir/first"
    if command -v python3 >/dev/null && python3 -c 'import ctypes' 2>/dev/null; then
        check "libswsim.3: its example in Python runs" judged env LD_LIBRARY_PATH="$programs" \
            python3 "$(grep -l '^import' "$dir"/libswsim.3.[0-9]*)"
    else
        skip "no python3 with ctypes here"
    fi
    ;;
esac
done_testing
