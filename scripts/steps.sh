# steps.sh - run the steps of a script quietly; sourced by quickstart and runtests.
#
# The output of a step goes to the file $log. When the step fails, the end of what it said is shown.

# step "What is being done" COMMAND...: returns the command's exit status.
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
        tail -n "+$step_from" "$log" | tail -n 40 | sed 's/^/    /'
        echo "The whole log is in $log"
    fi
    return "$step_status"
}

# in_dir DIR COMMAND...: a command in another directory.
in_dir()
{
    (cd "$1" && shift && "$@")
}

# build_configured DIR OPTION...: `configure` in DIR, which lies in the checkout, unless it was run
# there with the same options and nothing that it is made from is newer.
build_configured()
{
    build_dir=$1
    shift
    if [ ! -x configure ] || [ configure.ac -nt configure ]; then
        ./autogen.sh || return
    fi
    if [ "$*" != "$(cat "$build_dir/options" 2>/dev/null)" ] || [ ! -f "$build_dir/Makefile" ] ||
        [ configure -nt "$build_dir/config.status" ]; then
        rm -rf "$build_dir/Makefile" "$build_dir/config.status" "$build_dir/core"
        mkdir -p "$build_dir"
        in_dir "$build_dir" ../configure "$@" || return
        echo "$*" >"$build_dir/options"
        make -C "$build_dir" clean
    fi
}
