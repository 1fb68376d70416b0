# SPDX-License-Identifier: Apache-2.0
# swsim.fish - completion of swsim, swrun and swcheck for fish. It reads the programs' own --help, and so completes
# every verb, option and choice that they accept, with the help's words.

# The program and, of swsim, the verb before the cursor.
function __swsim_command
    set -l words (commandline -opc)
    echo $words[1]
    if string match -qr '(^|/)swsim$' -- $words[1]
        string match -r '^[a-z].*' -- $words[2..-1] | head -n 1
    end
end

# Options and their words, with = where a value follows; of an option whose value is begun, its choices.
function __swsim_options
    set -l command (__swsim_command)
    set -l current (commandline -ct)
    if string match -q -- '--*=*' $current
        set -l option (string split -m 1 = -- $current)[1]
        for choice in (command $command --help 2>/dev/null | string match -rg -- "$option\[?=([a-z]+\|[a-z|]+)" | head -n 1 | string split '|')
            echo "$option=$choice"
        end
        return
    end
    command $command --help 2>/dev/null | awk '
        function say() { if (name != "") print name "\t" words; name = words = "" }
        match($0, /^ +(-., )?--[a-z0-9-]+/) {
            say()
            name = substr($0, RSTART, RLENGTH); sub(/.*--/, "--", name)
            rest = substr($0, RSTART + RLENGTH)
            if (rest ~ /^=/) name = name "="
            words = match(rest, /  +[^ ]/) ? substr(rest, RSTART + RLENGTH - 1) : ""
            next
        }
        name != "" && words == "" && /^   / { sub(/^ +/, ""); words = $0 }
        END { say() }'
end

function __swsim_verbs
    command $argv[1] --help 2>/dev/null | sed -n '/^Verbs:/,/^$/ { s/^  \([a-z]*\) *\(.*\)/\1\t\2/p; }'
end

function __swsim_schedules
    set -l command (__swsim_command)
    command $command --help 2>/dev/null | sed -n '/NAME is one of/,/^Options/ { s/^  \([a-z0-9_][a-z0-9_]*\) *\(.*\)/\1\t\2/p; }'
end

# The kinds of objects in `swsim schema`.
function __swsim_schemas
    command $argv[1] schema 2>/dev/null | sed -n '1d; s/^\([a-z_]*\) *[0-9]* *\(.*\)/\1\t\2/p'
end

function __swsim_words
    set -l command (__swsim_command)
    if string match -q -- '-*' (commandline -ct)
        __swsim_options
    else if string match -qr '(^|/)swsim$' -- $command[1]; and test (count $command) -eq 1
        __swsim_verbs $command[1]
    else if test "$command[2]" = generate
        __swsim_schedules
    else if test "$command[2]" = schema
        __swsim_schemas $command[1]
    else
        __fish_complete_path (commandline -ct)
    end
end

for program in swsim swrun swcheck
    complete -c $program -f -a '(__swsim_words)'
end
