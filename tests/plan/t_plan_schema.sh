#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swsim schema plan: every plan of plans/ is as the JSON Schema says, and would not be with a misspelt key; doc/schema/plan.json,
# which editors find by the last line of each plan, is what the command prints. t_keys.sh holds it against every key.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3 to read JSON"
: "${PLAN_JSON:=tests/plan_json}"

"$SWSIM" schema plan >"$dir/schema.json"
check "doc/schema/plan.json is current: make plan-schema" cmp "$dir/schema.json" "$srcdir/doc/schema/plan.json"
# What `swsim explain` finds of each key in the text of the schema is what the schema says of it, wherever the key stands.
explained()
{
    python3 -c '
import collections, json, subprocess, sys
said = collections.defaultdict(set)
def walk(part):
    if isinstance(part, dict):
        for key, schema in part.get("properties", {}).items():
            said[key].add(schema["description"])
        for inner in part.values():
            walk(inner)
    elif isinstance(part, list):
        for inner in part:
            walk(inner)
walk(json.load(open(sys.argv[1])))
wrong = []
for key, meanings in said.items():
    told = json.loads(subprocess.run([sys.argv[2], "explain", "--json", key], check=True, capture_output=True).stdout)
    if {m["meaning"] for m in told["meanings"] if m["what"].startswith("key")} != meanings:
        wrong.append(key)
print(wrong)
sys.exit(not said or bool(wrong))' "$dir/schema.json" "$SWSIM"
}
check "explain says all that the schema says of each key" explained
plans=$(find "$srcdir/plans" -name '*.yaml')
check "all plans are plans" sh -c '"$0" $1 >"$2" && test "$(wc -l <"$2")" -eq "$(printf "%s\n" $1 | wc -l)"' \
    "$PLAN_JSON" "$plans" "$dir/lines"
check "they are as the schema says, and no others" python3 "$srcdir/tests/schema.py" plans "$dir/schema.json" "$dir/lines"
no_modeline()
{
    ! grep -L 'yaml-language-server: \$schema=\(\.\./\)*doc/schema/plan.json$' $plans | grep .
}
check "every plan names the schema" no_modeline
schema_exists()
{
    for plan in $plans; do
        test -f "$(dirname "$plan")/$(sed -n 's/.*yaml-language-server: \$schema=//p' "$plan")" || { echo "$plan"; return 1; }
    done
}
check "... where it is" schema_exists
python3 -c 'import jsonschema' 2>"$dir/null" && check "jsonschema agrees" python3 -c '
import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
sys.exit(any(list(validator.iter_errors(json.loads(line))) for line in open(sys.argv[2])))' "$dir/schema.json" "$dir/lines"

done_testing
