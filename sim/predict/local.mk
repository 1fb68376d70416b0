# SPDX-License-Identifier: Apache-2.0
# sim/predict: predictions: replications, reports, profiles, comparisons.
libsim_a_SOURCES += \
    sim/predict/account.c sim/predict/account.h \
    sim/predict/arrivals.c sim/predict/arrivals.h \
    sim/predict/compare.c sim/predict/compare.h \
    sim/predict/critical_path.c sim/predict/critical_path.h \
    sim/predict/difference.c sim/predict/difference.h \
    sim/predict/explained.c sim/predict/explained.h \
    sim/predict/fits.c sim/predict/fits.h \
    sim/predict/hardware_times.c sim/predict/hardware_times.h \
    sim/predict/foretold.c sim/predict/foretold.h \
    sim/predict/measured_program.c sim/predict/measured_program.h \
    sim/predict/pass_chart.c sim/predict/pass_chart.h \
    sim/predict/pipeline_figures.c sim/predict/pipeline_figures.h \
    sim/predict/predict.c sim/predict/predict.h \
    sim/predict/profile.c sim/predict/profile.h \
    sim/predict/profile_ranks.c \
    sim/predict/profile_steps.c \
    sim/predict/record.c sim/predict/record.h \
    sim/predict/report.c sim/predict/report.h \
    sim/predict/report_internal.h \
    sim/predict/report_json.c \
    sim/predict/report_pipeline.c \
    sim/predict/report_streams.c \
    sim/predict/result_wire.c sim/predict/result_wire.h \
    sim/predict/span_words.h \
    sim/predict/time_limits.c sim/predict/time_limits.h
