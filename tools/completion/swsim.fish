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

# The --help of the words, each option with all of its words on one line.
function __swsim_help
    command $argv --help 2>/dev/null | awk '
        /^ +(-., )?--[a-z]/ { if (entry) print held; held = $0; words = /--[^ ]+  +[^ ]/; entry = 1; next }
        entry && match($0, /[^ ]/) == 31 && !/not with --/ { sub(/^ +/, words ? " " : "  "); held = held $0; words = 1; next }
        { if (entry) print held; entry = 0; print }
        END { if (entry) print held }'
end

# The values of an option: `--color=auto|always|never`, or words behind `LIST`.
function __swsim_choices
    set -l command (__swsim_command)
    if test $argv[1] = --schedule
        command $command[1] generate --help 2>/dev/null | sed -n '/NAME is one of/,/^Options/ { s/^  \([a-z0-9_][a-z0-9_]*\) .*/\1/p; }'
        return
    end
    __swsim_help $command | awk -v option=$argv[1] '
        function words(list, separator,   items, n, i) {
            n = split(list, items, separator)
            for (i = 1; i <= n; i++) if (items[i] !~ /^[a-z0-9_.-]+$/) return
            for (i = 1; n > 1 && i <= n; i++) print items[i]
        }
        function explained(text) {
            if (sub(/.*separated by commas: */, "", text)) return words(text, " +")
            sub(/ *\(default.*/, "", text); sub(/.*: /, "", text)
            words(text, ", *")
        }
        match($0, /^ +(-., )?--[a-z0-9-]+/) {
            name = substr($0, RSTART, RLENGTH); sub(/.*--/, "--", name)
            if (name != option) next
            rest = substr($0, RSTART + RLENGTH)
            value = rest; sub(/ .*/, "", value); gsub(/[][=]/, "", value)
            sub(/^[^ ]* */, "", rest)
            if (value == "LIST") explained(rest)
            else { n = split(value, items, "|"); for (i = 1; n > 1 && i <= n; i++) if (items[i] ~ /^[a-z0-9]/) print items[i] }
        }'
end

# Options and their words, with = where a value follows; of an option whose value is begun, its choices.
function __swsim_options
    set -l command (__swsim_command)
    set -l current (commandline -ct)
    if string match -q -- '--*=*' $current
        set -l option (string split -m 1 = -- $current)[1]
        set -l before (string match -r -- '=(.*,)' $current)[2]
        for choice in (__swsim_choices $option)
            echo "$option=$before$choice"
        end
        return
    end
    __swsim_help $command | awk '
        function say() { if (name != "") print name "\t" words; name = words = "" }
        match($0, /^ +(-., )?--[a-z0-9-]+/) {
            say()
            name = substr($0, RSTART, RLENGTH); sub(/.*--/, "--", name)
            rest = substr($0, RSTART + RLENGTH)
            if (rest ~ /^=/) name = name "="
            words = match(rest, /  +[^ ]/) ? substr(rest, RSTART + RLENGTH - 1) : ""
            next
        }
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

# The words that `swsim explain` knows.
function __swsim_explained
    command $argv[1] explain 2>/dev/null | sed -n '/^[^ ].* (/ { s/ (.*//; s/, */\n/g; p; }'
end

function __swsim_words
    set -l command (__swsim_command)
    if string match -q -- '-*' (commandline -ct)
        __swsim_options
    else if string match -qr '(^|/)swsim$' -- $command[1]; and test (count $command) -eq 1
        __swsim_verbs $command[1]
    else if test "$command[2]" = generate
        __swsim_schedules
    else if test "$command[2]" = help
        __swsim_verbs $command[1]
    else if test "$command[2]" = explain
        __swsim_explained $command[1]
    else if test "$command[2]" = schema
        __swsim_schemas $command[1]
    else
        __fish_complete_path (commandline -ct)
    end
end

for program in swsim swrun swcheck
    complete -c $program -f -a '(__swsim_words)'
end
