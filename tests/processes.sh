# processes.sh - who is still there: for shell tests that kill processes. Sourced.

# children PID: the processes it started.
children()
{
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        pid_=${line%% *} rest=${line##*) }
        rest=${rest#* }
        test "${rest%% *}" = "$1" && echo "$pid_"
    done 2>/dev/null
}
# runs PID: it is there, and no zombie.
runs()
{
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    rest=${line##*) }
    case $rest in [ZX]*) return 1 ;; esac
}
