#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A result that one thread gives to another, recorded on emulated CUDA: in every way of the C library that the recorder sees
# the right program is proved, and the one that gives too early is found out. Other ways are told.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0
program=$PWD/tests/record/threads
[ -x "$program" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"

# record CASE [fixed]: leaves $dir/run.yaml.
record()
{
    rm -rf "$dir/run.swr"
    races=
    case $1 in c_* | *clock*) races=report_bugs=0 ;; esac # the thread sanitizer does not know these locks
    TSAN_OPTIONS="${TSAN_OPTIONS-} $races" "$SWSIM" record -o "$dir/run.swr" -- "$program" "$@" >"$dir/log" 2>&1 &&
        "$SWSIM" import -o "$dir/run.yaml" "$dir/run.swr" 2>>"$dir/log" || { cat "$dir/log"; return 1; }
}
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" || record "$1" || record "$1"; } && prints 1 'race.*fill' "$SWSIM" verify --no-fix "$dir/run.yaml"; }
# A lock may be taken in another order, and a call with a time limit may give up, which the verdict says; what waits for a
# signal waits in every run.
orders='other orders of locks in [0-9]* places\{0,1\}: threads take them as in the run' gives_up='waits that give up in [0-9]* places\{0,1\}: in the run each ended in time'
proves()
{
    record "$1" fixed || return
    case $1 in
    sem_* | try_joined | timed_joined | clock_joined) but_for="except $gives_up" ;;
    cond_* | c_cond_*) but_for="proved    .*\|except $orders\|except \($orders, \)\{0,1\}$gives_up" ;; # it may come too late to wait
    *) but_for="proved    .*\|except $orders" ;;
    esac
    prints 0 "\($but_for\)  " joined "$SWSIM" verify --no-fix "$dir/run.yaml"
}
# A race, and in the same breath that unseen means may order the threads; the order of time has none.
tells()
{
    record "$1" fixed && prints 1 'not in the plan: what orders threads in 2 places: .*--order=seen' "$SWSIM" verify --no-fix "$dir/run.yaml" &&
        prints 1 '"but_for":."what orders threads' "$SWSIM" verify --no-fix --json "$dir/run.yaml" &&
        "$SWSIM" import --order=seen -o "$dir/run.yaml" "$dir/run.swr" && prints 0 'proved  ' "$SWSIM" verify "$dir/run.yaml"
}
in_three_tries() { "$@" || "$@" || "$@"; }
unseen=' pipe socket eventfd signal futex atomic '

for case in $("$program"); do
    case "$case ${INSTRUMENT_FLAGS-}" in
    "c_joined "*-fsanitize=thread* | "c_created "*-fsanitize=thread*)
        skip "the thread sanitizer ends a program whose threads are made by thrd_create: $case"; continue ;;
    esac
    check "$case: given too early" finds "$case"
    case $unseen in *" $case "*) check "$case: in order, which is not seen" tells "$case"; continue ;; esac
    # Where it sees what the lock protects at its first look, nothing tells that it would have looked again.
    check "$case: in order" in_three_tries proves "$case"
done
for case in joined created sem barrier many_meet once lock_excludes readers_alone relayed; do
    check "$case needs no lock" sh -c '"$0" record -o "$3/run.swr" -- "$1" "$2" fixed && "$0" import -o "$3/run.yaml" "$3/run.swr" && "$0" verify "$3/run.yaml" | grep "proved  "' \
        "$SWSIM" "$program" "$case" "$dir"
done
check "a lock that is held for several calls excludes" record lock_excludes fixed
check "which the plan says" grep -q '{lock: 0.lock1}' "$dir/run.yaml"
check "a thread that hands on what it was given" record relayed fixed
check "is not in the plan" sh -c "[ \$(grep -c '^  r0' '$dir/run.yaml') = 2 ]"
check "a lock that is held for several calls, again" record lock_excludes fixed
check "its order in the run can be taken instead" "$SWSIM" import -o "$dir/run.yaml" --order=locks "$dir/run.swr"
check "and is no lock then" prints 0 'except other orders of locks in 1 place' "$SWSIM" verify "$dir/run.yaml"
check "two that take a lock without a call" record lock_alone fixed
check "tell each other nothing by it" sh -c '"$0" import -o "$1/run.yaml" "$1/run.swr" && ! grep -q "{lock" "$1/run.yaml"' "$SWSIM" "$dir"
check "nor where each takes one of its own within it" record lock_inner fixed
check "that the other never takes" sh -c '"$0" import -o "$1/run.yaml" "$1/run.swr" && ! grep -q "{lock" "$1/run.yaml"' "$SWSIM" "$dir"
check "a lock that excludes, and is taken without a call" record lock_emptied fixed
check "has no empty section" sh -c '"$0" import -o "$1/run.yaml" "$1/run.swr" && [ $(grep -c "{lock: 0.lock1}" "$1/run.yaml") = 2 ]' "$SWSIM" "$dir"

# A thread waits for the first time while another one has the loader's lock: it reads a library from a pipe that is empty.
cat >"$dir/loads.c" <<'END'
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>
static void *load(void *pipe) { return dlopen(pipe, RTLD_NOW); }
int main(int argc, char **argv)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    pthread_t loader;
    alarm(30);
    if (pthread_create(&loader, NULL, load, argv[argc - 1]) != 0)
        return 1;
    usleep(200000);
    pthread_mutex_lock(&lock);
    clock_gettime(CLOCK_REALTIME, &until);
    pthread_cond_timedwait(&condition, &lock, &until);
    pthread_mutex_unlock(&lock);
    return close(open(argv[argc - 1], O_WRONLY)) != 0 || pthread_join(loader, NULL) != 0;
}
END
if "$CC" -o "$dir/loads" "$dir/loads.c" -lpthread -ldl 2>"$dir/log" && mkfifo "$dir/library.so"; then
    check "the first wait of a thread does not need the loader's lock" \
        sh -c '"$0" record -o "$1/loads.swr" -- "$1/loads" "$1/library.so" 2>"$1/log"; ! grep "ended by signal" "$1/log"' \
        "$SWSIM" "$dir"
else
    skip "nothing can be linked here"
fi

# Room for two threads of many, the first and last one among them.
cat >"$dir/full.c" <<'END'
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
int posix_fallocate(int fd, off_t from, off_t bytes) { return from >= 2 << 18 ? ENOSPC : ftruncate(fd, from + bytes) ? errno : 0; }
END
cut()
{
    complains 2 'run.swr: later calls are missing: they could not be written' \
        env LD_PRELOAD="$dir/full.so${LD_PRELOAD:+:$LD_PRELOAD}" "$SWSIM" record -o "$dir/run.swr" -- "$program" many_meet fixed
}
if "$CC" -shared -fPIC -o "$dir/full.so" "$dir/full.c" 2>"$dir/log"; then
    check "no room for all calls" cut
    check "the mark is gone" sh -c '! ls -A "$0" | grep -q "cut\|run.swr\."' "$dir"
    check "what is there has a plan" "$SWSIM" import -o "$dir/run.yaml" "$dir/run.swr"
    check "which says what it lacks" sh -c '"$0" verify --no-fix "$1" | grep "later calls of 1 process: it was ended, or its calls were not written"' \
        "$SWSIM" "$dir/run.yaml"
else
    skip "nothing can be linked here"
fi
done_testing
