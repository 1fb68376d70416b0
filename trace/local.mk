# SPDX-License-Identifier: Apache-2.0
# trace: recorded runs: store, pictures.
libtrace_a_SOURCES += \
    trace/apart.c trace/apart.h \
    trace/chart.c trace/chart.h \
    trace/colors.c trace/colors.h \
    trace/draw.c trace/draw.h \
    trace/foreign_sql.c trace/foreign_sql.h \
    trace/graphviz.c trace/graphviz.h \
    trace/lanes.c trace/lanes.h \
    trace/look.c trace/look.h \
    trace/page.c trace/page.h \
    trace/page_chart.c trace/page_chart.h \
    trace/page_column.c trace/page_column.h \
    trace/plangraph.c trace/plangraph.h \
    trace/profiler_json.c trace/profiler_json.h \
    trace/schedule_boxes.c \
    trace/schedule_picture.c trace/schedule_picture.h \
    trace/schedule_sheet.h \
    trace/schema.h \
    trace/step_bar.c trace/step_bar.h \
    trace/store.c trace/store.h \
    trace/store_load.c \
    trace/store_progress.c trace/store_progress.h \
    trace/store_sql.c trace/store_sql.h \
    trace/store_steps.c \
    trace/storyboard.c trace/storyboard.h \
    trace/svg.c trace/svg.h \
    trace/timeline.c trace/timeline.h \
    trace/timeline_boxes.c \
    trace/timeline_view.h \
    trace/trace.c trace/trace.h \
    trace/whole.c trace/whole.h

# The page that zooms, as bytes in C.
trace/page.$(OBJEXT): trace/page_html.inc trace/page_js.inc
trace/page_html.inc: trace/page.html
	$(AM_V_GEN)$(MKDIR_P) trace && od -An -v -tx1 $(srcdir)/trace/page.html | sed 's/ \(..\)/0x\1,/g' >$@.new && mv $@.new $@
trace/page_js.inc: trace/page.js
	$(AM_V_GEN)$(MKDIR_P) trace && od -An -v -tx1 $(srcdir)/trace/page.js | sed 's/ \(..\)/0x\1,/g' >$@.new && mv $@.new $@
