# SPDX-License-Identifier: Apache-2.0
# steps.sh - run the steps of a script quietly; sourced by quickstart and runtests.
#
# The output of a step goes to the file $log. If the step fails, its failures and the end of its output are shown.

# step "Heading" COMMAND...: returns the command's exit status.
step()
{
    step_name=$1
    shift
    step_from=$(($(wc -l <"$log") + 1))
    step_began=$(date +%s)
    printf '%s ... ' "$step_name"
    step_status=0
    "$@" >>"$log" 2>&1 </dev/null || step_status=$?
    if [ "$step_status" -eq 0 ]; then
        echo "done ($(($(date +%s) - step_began)) s)"
    else
        echo "FAILED (exit status $step_status)"
        tail -n "+$step_from" "$log" | grep -E '^(FAIL|XPASS|ERROR):|error:' | head -n 100 | sed 's/^/    /'
        tail -n "+$step_from" "$log" | tail -n 20 | sed 's/^/    /'
        echo "The whole log is in $log"
    fi
    return "$step_status"
}

# in_dir DIR COMMAND...: a command in another directory.
in_dir()
{
    (cd "$1" && shift && "$@")
}

# The optional parts that this machine has.
parts_found="--with-blas=guess --with-cuda=guess --with-mpi=guess --with-nvtx=guess"

# build_configured DIR OPTION...: `configure` in DIR, which is in the checkout, unless it was run
# there with the same options; make runs it again when it has changed.
build_configured()
{
    build_dir=$1
    shift
    if [ ! -x configure ] || [ configure.ac -nt configure ] || [ Makefile.am -nt Makefile.in ]; then
        ./autogen.sh || return
    fi
    mkdir -p "$build_dir"
    if [ ! -f "$build_dir/options" ] || [ "$*" != "$(cat "$build_dir/options")" ]; then
        rm -f "$build_dir/options"
        in_dir "$build_dir" ../configure "$@" && make -C "$build_dir" clean || return
        echo "$*" >"$build_dir/options"
    fi
}
