# SPDX-License-Identifier: Apache-2.0
# words.awk - the words that `swsim explain` knows, as C, from the tables of doc/semantics.md: properties and their answers,
# causes of stalls; from doc/glossary.md: terms; and from swsim-verify(1): warnings.
function plain(text)
{
    gsub(/`|\*/, "", text)
    gsub(/\[|\]\([^)]*\)/, "", text)
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    return text
}
function put(words, meaning)
{
    if (words != "")
        printf "{\"%s\", \"%s\", \"%s\"},\n", plain(words), what, plain(meaning)
}
function end_answer()
{
    put(answer, meaning)
    answer = ""
}
/^\| property \| violated when \|/ { what = "property, violated when" }
/^\| cause \| the stream is idle because \|/ { what = "cause of a stall: the stream is idle because" }
/^\| term \| meaning \|/ { what = "term" }
/^For each property the answer is one of/ { answers = 1; next }
answers && /^- `/ {
    end_answer()
    what = "answer for a property"
    answer = meaning = $0
    sub(/^- /, "", answer)
    sub(/`:.*/, "", answer)
    sub(/^[^:]*: */, "", meaning)
    next
}
answers && /^  / { sub(/^ +/, " "); meaning = meaning $0; next }
answers && /^[^-]/ { end_answer(); answers = 0; what = "" }
/^$/ { if (!answers) what = ""; next }
what != "" && /^\|/ && !/^\|---/ && !/^\| (property|cause|term) \|/ {
    split($0, cell, / *\| */)
    put(cell[2], cell[3])
}

# swsim-verify(1), the list of warnings
function end_warning()
{
    sub(/[,;] *$/, "", warning)
    what = "warning"
    put(name, warning)
    name = ""
}
/^\.It Cm never_recorded/ { warnings = 1 }
warnings && /^\.(It|El)/ {
    if (name != "")
        end_warning()
    warnings = !/^\.El/
    name = $0
    sub(/^\.It Cm /, "", name)
    gsub(/ ,/, ",", name)
    warning = ""
    next
}
warnings && name != "" {
    sub(/^\.[A-Z][a-z] /, "")
    warning = warning (warning != "" && !/^[,.;]/ ? " " : "") $0
    gsub(/ ,/, ",", warning)
}
