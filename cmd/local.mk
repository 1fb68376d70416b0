# SPDX-License-Identifier: Apache-2.0
# cmd: the three commands: options in, one call, text or JSON out.
swcheck_SOURCES = \
    cmd/swcheck.c
swsim_SOURCES = \
    cmd/app.c cmd/app.h \
    cmd/cmd_compare.c \
    cmd/cmd_dry.c \
    cmd/cmd_explain.c \
    cmd/cmd_export.c \
    cmd/cmd_generate.c \
    cmd/cmd_groups.c \
    cmd/cmd_import.c \
    cmd/cmd_lower.c \
    cmd/cmd_mcp.c \
    cmd/cmd_predict.c \
    cmd/cmd_record.c \
    cmd/cmd_render.c \
    cmd/cmd_runs.c \
    cmd/cmd_schedule.c \
    cmd/cmd_schema.c \
    cmd/cmd_stages.c \
    cmd/cmd_tune.c \
    cmd/cmd_verify.c \
    cmd/cmd_watch.c \
    cmd/cmd_why.c \
    cmd/hardware_choice.c cmd/hardware_choice.h \
    cmd/limits.c cmd/limits.h \
    cmd/mpi_workers.c cmd/mpi_workers.h \
    cmd/options.c cmd/options.h \
    cmd/plan_out.c cmd/plan_out.h \
    cmd/render_choice.c cmd/render_choice.h \
    cmd/show_channels.c cmd/show_channels.h \
    cmd/starter.c cmd/starter.h \
    cmd/swsim.c \
    cmd/two_runs.c cmd/two_runs.h \
    cmd/verdict_formats.c cmd/verdict_formats.h \
    cmd/witness.c cmd/witness.h \
    cmd/yaml_json.c cmd/yaml_json.h \
    trace/record/none/models.h trace/record/recorder/launched.c trace/record/recorder/launched.h
swrun_SOURCES = \
    cmd/app.c cmd/app.h \
    cmd/launch.c cmd/launch.h \
    cmd/library_runs.c cmd/library_runs.h \
    cmd/limits.c cmd/limits.h \
    cmd/measured.c cmd/measured.h \
    cmd/options.c cmd/options.h \
    cmd/replayed.c cmd/replayed.h \
    cmd/starter.c cmd/starter.h \
    cmd/swrun.c
