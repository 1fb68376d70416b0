# SPDX-License-Identifier: Apache-2.0
# traces.sh - profiler traces and plans that tests of imported jobs write; times in microseconds. Read after tap.sh.

# call NAME TID TS DUR ID, work CATEGORY NAME STREAM TS DUR ID [ARGS], range NAME TID TS DUR, step NUMBER TS DUR: events.
call()
{
    echo ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"$1\",\"pid\":7,\"tid\":$2,\"ts\":$3,\"dur\":$4,\"args\":{\"correlation\":$5}}"
}
work()
{
    echo ",{\"ph\":\"X\",\"cat\":\"$1\",\"name\":\"$2\",\"pid\":0,\"tid\":$3,\"ts\":$4,\"dur\":$5,\"args\":{\"stream\":$3,\"device\":0,\"correlation\":$6${7:-}}}"
}
range()
{
    echo ",{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"$1\",\"pid\":7,\"tid\":$2,\"ts\":$3,\"dur\":$4,\"args\":{}}"
}
# act CATEGORY NAME TID TS DUR: an operator, or a function of Python.
act()
{
    echo ",{\"ph\":\"X\",\"cat\":\"$1\",\"name\":\"$2\",\"pid\":7,\"tid\":$3,\"ts\":$4,\"dur\":$5,\"args\":{}}"
}
step()
{
    range "ProfilerStep#$1" 1 "$2" "$3"
}
# trace [RANK]: the events of standard input as a file of the profiler.
trace()
{
    echo "{\"schemaVersion\": 1, ${1:+\"distributedInfo\": {\"rank\": $1, \"world_size\": 2\}, }\"traceEvents\": ["
    echo '{"ph":"M","name":"process_name","pid":7,"tid":0,"args":{"name":"python"}}'
    cat
    echo ']}'
}

# imports [OPTION|FILE]...: an import into $dir/plan.yaml, in the form that $form says.
imports()
{
    "$SWSIM" import ${form:+--form="$form"} -o "$dir/plan.yaml" "$@" 2>"$dir/err" || { cat "$dir/err"; return 1; }
}
# has PATTERN FILE...: the plan of these files has such a line.
has()
{
    pattern=$1
    shift
    imports "$@" && grep -E -- "$pattern" "$dir/plan.yaml" || { cat "$dir/plan.yaml"; return 1; }
}

# A pipeline of a copy and of work on it, for predictions and runs beside an import.
two_tasks()
{
    cat <<'PLAN'
swplan: 1
name: two_tasks
schedule:
  Copy: {stage: 0, stream: memcpy, time: 400us, host_time: 50us, writes: [batch]}
  Work: {stage: 1, time: 800us, host_time: 50us, reads: [batch]}
intra_iter_deps: [[Work, Copy]]
buffers: {batch: {scope: iteration, bytes: 4KiB}}
PLAN
}
