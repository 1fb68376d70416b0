#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# words.sh SRCDIR: the words of the parser's tables as C strings: keys, values, properties, actions, SQL's names, traces' keys.
# A word is a text of these files without a space, which is what keys and values look like there.
cd "${1:-.}" || exit 1
{
    cat plan/text/parse*.c plan/text/keys*.c plan/text/fields.c plan/keywords.c plan/plan.h plan/host_op.h plan/machine_rules.h plan/pipeline.h plan/programs.h plan/work.h plan/ops.h plan/ops.c plan/dist.h plan/schedules/actions.c \
        base/units.c plan/schedules/generate.c |
        grep -v '#include' | grep -oE '"[a-zA-Z0-9_-]+"'
    sed -n 's/^ *" *\([a-z_]*\) [A-Z].*/"\1"/p; s/.*CREATE TABLE \([a-z]*\).*/"\1"/p' trace/schema.h
    grep -oE '"[a-z]+"' trace/trace.h
    grep -v '#include' trace/import/kineto.c trace/import/nsys.c trace/job/call_names.c |
        grep -oE '"[a-zA-Z0-9_#-]+"'
    sed -n 's/^ *X(\([A-Z_0-9]*\), .*/"\1"/p' trace/record/recorder/recording.h
} | sort -u | sed 's/$/,/'
