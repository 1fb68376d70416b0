# SPDX-License-Identifier: Apache-2.0
# tests: the tests and the benchmarks.
#
# Every test speaks TAP. `make check-long` sets SWSIM_LONG=1, for which a test that could go on longer
# does. No suffix but .py, of the tests with partners, is special: t_x and t_x.sh are two tests with a log each.

# Begun first: what takes longest, so that no processor is idle at the end.
slow_tests_in_c = tests/check/t_random_plans tests/check/t_faults tests/gpu/t_gate tests/gpu/t_runtime
slow_tests_in_sh = tests/check/t_spin.sh tests/gpu/t_gpu_run.sh

tests_in_c = \
    tests/base/t_arena \
    tests/base/t_array \
    tests/machine/t_closure \
    tests/gpu/t_collector \
    tests/base/t_columns \
    tests/cmd/t_compare \
    tests/gpu/t_cores \
    tests/sim/t_critical_path \
    tests/plan/t_csv \
    tests/sim/t_cycle_ratio \
    tests/gpu/t_dense \
    tests/gpu/t_device \
    tests/base/t_early \
    tests/gpu/t_ends \
    tests/sim/t_engines \
    tests/machine/t_fixed_order \
    tests/plan/t_flow_lines \
    tests/whole/t_fuzz \
    tests/gpu/t_graph \
    tests/base/t_hash \
    tests/whole/t_injected \
    tests/gpu/t_journal \
    tests/base/t_json \
    tests/whole/t_kills \
    tests/import/t_json_reader \
    tests/base/t_locale \
    tests/machine/t_machine \
    tests/whole/t_no_memory tests/gpu/t_run_memory \
    tests/import/t_nsys \
    tests/gpu/t_mail \
    tests/machine/t_ops \
    tests/base/t_sort \
    tests/sim/t_steady \
    tests/base/t_ordered \
    tests/base/t_table \
    tests/plan/t_parse \
    tests/trace/t_plangraph \
    tests/sim/t_predict \
    tests/plan/t_print \
    tests/base/t_processors \
    tests/check/t_many_times \
    tests/check/t_one_run \
    tests/base/t_output \
    tests/plan/t_found \
    tests/plan/t_programs \
    tests/check/t_proof \
    tests/check/t_quantifiers \
    tests/machine/t_serial \
    tests/sim/t_random \
    tests/import/t_recorded_times \
    tests/check/t_reduce \
    tests/improve/t_repair \
    tests/base/t_repeats \
    tests/gpu/t_host_link \
    tests/gpu/t_rendezvous \
    tests/gpu/t_replay \
    tests/check/t_search \
    tests/sim/t_sharing \
    tests/gpu/t_result_wire \
    tests/check/t_states \
    tests/trace/t_store \
    tests/trace/t_store_steps \
    tests/check/t_structure \
    tests/gpu/t_swpipe \
    tests/gpu/t_swpipe_build \
    tests/gpu/t_swpipe_hostile \
    tests/gpu/t_swpipe_caller \
    tests/gpu/t_swpipe_calls \
    tests/gpu/t_swpipe_collectives \
    tests/gpu/t_swpipe_group \
    tests/gpu/t_swpipe_proof \
    tests/cmd/t_swsim \
    tests/gpu/t_swpipe_hooks \
    tests/gpu/t_swpipe_own \
    tests/gpu/t_swpipe_policy \
    tests/gpu/t_swpipe_turns \
    tests/trace/t_timeline \
    tests/base/t_units \
    tests/trace/t_whole \
    tests/base/t_wrap

tests_in_sh = \
    tests/plan/t_arithmetic.sh tests/whole/t_bench.sh \
    tests/cmd/t_cli.sh \
    tests/base/t_columns.sh \
    tests/cmd/t_compare.sh \
    tests/trace/t_ledger.sh \
    tests/whole/t_package.sh \
    tests/trace/t_profiler_json.sh \
    tests/cmd/t_hardware.sh \
    tests/cmd/t_two_runs.sh \
    tests/cmd/t_watch.sh \
    tests/gpu/t_cuda_emulated.sh \
    tests/check/t_faults.sh \
    tests/whole/t_fuzz_clang.sh \
    tests/whole/t_headers.sh \
    tests/import/t_chakra.sh \
    tests/import/t_flight.sh \
    tests/cmd/t_from_python.sh \
    tests/python/t_module.sh \
    tests/cmd/t_ci.sh \
    tests/cmd/t_formats.sh \
    tests/import/t_import.sh \
    tests/import/t_import_accesses.sh \
    tests/import/t_import_cpu.sh \
    tests/import/t_import_figures.sh \
    tests/import/t_import_pipeline.sh \
    tests/import/t_standstill.sh \
    tests/whole/t_hardening.sh \
    tests/whole/t_instructions.sh \
    tests/gpu/t_mpi.sh \
    tests/gpu/t_nvtx.sh \
    tests/base/t_output.sh \
    tests/sim/t_greedy.sh \
    tests/sim/t_predict.sh \
    tests/plan/t_malformed.sh \
    tests/check/t_many_ranks.sh \
    tests/check/t_proof.sh \
    tests/whole/t_large.sh \
    tests/plan/t_published.sh \
    tests/gpu/t_ranks.sh tests/import/t_record.sh tests/import/t_record_dlrm.sh tests/import/t_record_times.sh tests/import/t_record_plans.sh \
    tests/import/t_record_threads.sh tests/import/t_record_turns.sh tests/import/t_record_pinned.sh tests/import/t_record_training.sh tests/import/t_record_calls.sh tests/import/t_record_queries.sh tests/import/t_record_steps.sh tests/import/t_record_tenants.sh tests/import/t_record_driver.sh tests/import/t_record_none.sh \
    tests/whole/t_docs.sh \
    tests/whole/t_man.sh \
    tests/plan/t_groups.sh \
    tests/check/t_pipeline.sh \
    tests/gpu/t_dlrm.sh \
    tests/gpu/t_dlrm_cuda.sh \
    tests/plan/t_driver_key.sh \
    tests/whole/t_environment.sh tests/whole/t_hostile.sh tests/whole/t_odd_files.sh \
    tests/check/t_oracle.sh tests/check/t_oracle_open.sh tests/check/t_oracle_times.sh \
    tests/plan/t_keys.sh \
    tests/whole/t_memcheck.sh tests/whole/t_newcomers.sh \
    tests/improve/t_repair.sh \
    tests/whole/t_globals.sh \
    tests/whole/t_rooms.sh \
    tests/plan/t_schedule.sh \
    tests/cmd/t_json_figures.sh \
    tests/plan/t_plan_schema.sh \
    tests/cmd/t_schema.sh \
    tests/check/t_search.sh \
    tests/sim/t_predict_host.sh \
    tests/sim/t_sharing.sh \
    tests/sim/t_timeouts.sh \
    tests/whole/t_signals.sh \
    tests/cmd/t_libraries.sh \
    tests/gpu/t_swpipe_lib.sh \
    tests/gpu/t_swpipe_ranks.sh \
    tests/cmd/t_swsim_lib.sh \
    tests/gpu/t_swrun.sh \
    tests/check/t_torchrec.sh \
    tests/improve/t_frontier.sh \
    tests/trace/t_gallery.sh tests/trace/t_page.sh tests/trace/t_pictures.sh tests/trace/t_render_options.sh \
    tests/trace/t_whole_pictures.sh \
    tests/trace/t_schedule_picture.sh \
    tests/check/t_branches.sh tests/check/t_stories.sh tests/improve/t_tune.sh \
    tests/check/t_verify.sh \
    tests/plan/t_lists.sh tests/plan/t_all_ranks.sh tests/plan/t_warnings.sh \
    tests/check/t_witness.sh

if CUDA
tests_in_c += tests/gpu/t_cuda_emulation tests/gpu/t_cuda_threads
endif

TESTS = $(slow_tests_in_sh) $(slow_tests_in_c) $(tests_in_c) $(tests_in_sh)
check_PROGRAMS = $(slow_tests_in_c) $(tests_in_c) $(examples) tests/spin/print_model tests/combine_keys \
    tests/plan_json tests/print_random_plan
check_LIBRARIES = tests/libtests.a
check_DATA =

# The CUDA device on emulated CUDA (tests/cuda_emulation): not a GPU, never installed. No program links libcudart
# here, and libnccl.so.2 finds the emulation in the program that opens it.
if CUDA
check_LIBRARIES += tests/cuda_emulation/libcuda.a
tests_cuda_emulation_libcuda_a_SOURCES = \
    tests/cuda_emulation/copies.c \
    tests/cuda_emulation/default_stream.c \
    tests/cuda_emulation/emulation.h \
    tests/cuda_emulation/fault.c \
    tests/cuda_emulation/graph.c \
    tests/cuda_emulation/handles.c \
    tests/cuda_emulation/kernels.c \
    tests/cuda_emulation/memory.c \
    tests/cuda_emulation/pool.c \
    tests/cuda_emulation/runtime.c \
    tests/cuda_emulation/stream.c \
    tests/cuda_emulation/texture.c
# libnccl.so.2 and preloaded libraries look for its functions.
tests_cuda_emulation_libcuda_a_CFLAGS = $(AM_CFLAGS) -fvisibility=default
emulated_stdcxx = -lstdc++ -lm
emulated_libs = $(run_libs) tests/cuda_emulation/libcuda.a $(required_libs) $(emulated_stdcxx)
emulated_ldflags = $(AM_LDFLAGS) -rdynamic
check_PROGRAMS += tests/overhead_emulated tests/swrun_emulated tests/gpu/t_device_emulated
tests_gpu_t_cuda_emulation_LDADD = tests/libtests.a $(emulated_libs)
tests_gpu_t_cuda_emulation_LDFLAGS = $(emulated_ldflags)
tests_gpu_t_cuda_threads_LDADD = tests/libtests.a $(emulated_libs)
tests_gpu_t_cuda_threads_LDFLAGS = $(emulated_ldflags)
check_DATA += tests/cuda_emulation/libnccl.so.2
nccl_emulation = tests/cuda_emulation/nccl.c tests/cuda_emulation/nccl_group.c tests/cuda_emulation/nccl_kernel.c \
    tests/cuda_emulation/nccl_link.c tests/cuda_emulation/nccl_make.c
tests/cuda_emulation/libnccl.so.2: $(nccl_emulation) tests/cuda_emulation/emulation.h \
    tests/cuda_emulation/nccl_impl.h tests/cuda_emulation/nccl_link.h gpu/device/numbers.h Makefile
	$(AM_V_CCLD)cd $(srcdir) && $(CC) $(DEFS) -I'$(abs_builddir)' -I. $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) \
	    $(CFLAGS) -fvisibility=default -shared -Wl,-Bsymbolic -Wl,-soname,libnccl.so.2 -o '$(abs_builddir)/$@' \
	    $(nccl_emulation)
CLEANFILES += tests/cuda_emulation/libnccl.so.2

# The same as shared libraries of the real names, for programs that link them as they would link CUDA's: what
# `swsim record` sees.
check_DATA += tests/cuda_emulation/libcudart.so
tests/cuda_emulation/libcudart.so: $(tests_cuda_emulation_libcuda_a_SOURCES) Makefile
	$(AM_V_CCLD)number=`echo CUDART_VERSION | $(CC) $(CUDA_CPPFLAGS) -include cuda_runtime_api.h -E -P - | tail -n 1` && \
	    name=libcudart.so.`expr $$number / 1000` && cd $(srcdir) && \
	    $(CC) $(DEFS) -I'$(abs_builddir)' -I. $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fvisibility=default -shared \
	    -Wl,-soname,$$name -o '$(abs_builddir)/tests/cuda_emulation/'$$name \
	    $(filter %.c,$(tests_cuda_emulation_libcuda_a_SOURCES)) -lpthread && \
	    ln -sf $$name '$(abs_builddir)/$@'
CLEANFILES += tests/cuda_emulation/libcudart.so tests/cuda_emulation/libcudart.so.*
# A program that is linked with CUDA's own runtime, for the device that is not there.
check_DATA += tests/record/dry
tests/record/dry: tests/record/dry.cu Makefile
	$(AM_V_NVCC)$(NVCC) $(NVCC_FLAGS) $(NVCCFLAGS) -cudart shared -o $@ $(srcdir)/tests/record/dry.cu -ldl
CLEANFILES += tests/record/dry
# CUPTI, which the program's emulated CUDA tells of its operations.
check_DATA += tests/cuda_emulation/libcupti.so
tests/cuda_emulation/libcupti.so: tests/cuda_emulation/cupti.c tests/cuda_emulation/emulation.h trace/record/recorder/cupti.h Makefile
	$(AM_V_CCLD)cd $(srcdir) && $(CC) $(DEFS) -I'$(abs_builddir)' -I. $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) \
	    -fvisibility=default -shared -Wl,-soname,libcupti.so -o '$(abs_builddir)/$@' tests/cuda_emulation/cupti.c -lpthread
CLEANFILES += tests/cuda_emulation/libcupti.so
# The driver, by the runtime.
check_DATA += tests/cuda_emulation/libcuda.so
driver_emulation = tests/cuda_emulation/driver.c tests/cuda_emulation/driver_memory.c
tests/cuda_emulation/libcuda.so: $(driver_emulation) tests/cuda_emulation/emulation.h gpu/device/cuda/kernels.h Makefile
	$(AM_V_CCLD)cd $(srcdir) && $(CC) $(DEFS) -I'$(abs_builddir)' -I. $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) \
	    -fvisibility=default -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o '$(abs_builddir)/tests/cuda_emulation/libcuda.so.1' \
	    $(driver_emulation) && ln -sf libcuda.so.1 '$(abs_builddir)/$@'
CLEANFILES += tests/cuda_emulation/libcuda.so tests/cuda_emulation/libcuda.so.1
check_PROGRAMS += tests/record/driver_program
tests_record_driver_program_SOURCES = tests/record/driver_program.c tests/record/check.h
tests_record_driver_program_LDADD = libgpu.a tests/cuda_emulation/libcuda.so tests/cuda_emulation/libcudart.so \
    -lpthread $(emulated_stdcxx)
tests_record_driver_program_LDFLAGS = $(AM_LDFLAGS) -rdynamic -Wl,-rpath,'$(abs_builddir)/tests/cuda_emulation' \
    -Wl,-u,kernels_load -Wl,-u,kernels_axpy -Wl,-u,kernels_fill_f32
check_PROGRAMS += tests/record/driver_calls
tests_record_driver_calls_SOURCES = tests/record/driver_calls.c tests/record/check.h
tests_record_driver_calls_LDADD = $(tests_record_driver_program_LDADD)
tests_record_driver_calls_LDFLAGS = $(tests_record_driver_program_LDFLAGS)
check_PROGRAMS += tests/record/threads
tests_record_threads_SOURCES = tests/record/threads.c tests/record/check.h
tests_record_threads_LDADD = libgpu.a tests/cuda_emulation/libcudart.so -lpthread $(emulated_stdcxx)
tests_record_threads_LDFLAGS = $(AM_LDFLAGS) -Wl,-rpath,'$(abs_builddir)/tests/cuda_emulation'
check_PROGRAMS += tests/record/turns
tests_record_turns_SOURCES = tests/record/turns.c tests/record/check.h tests/record/small.h
tests_record_turns_LDADD = $(tests_record_threads_LDADD)
tests_record_turns_LDFLAGS = $(tests_record_threads_LDFLAGS)
check_PROGRAMS += tests/record/pinned
tests_record_pinned_SOURCES = tests/record/pinned.c tests/record/check.h tests/record/small.h
tests_record_pinned_LDADD = $(tests_record_threads_LDADD)
tests_record_pinned_LDFLAGS = $(tests_record_threads_LDFLAGS)
check_PROGRAMS += tests/record/tensors
tests_record_tensors_SOURCES = tests/record/tensors.c tests/record/check.h
tests_record_tensors_LDADD = -ldl
check_PROGRAMS += tests/record/training
tests_record_training_SOURCES = tests/record/training.c tests/record/check.h tests/record/small.h
tests_record_training_LDADD = $(tests_record_threads_LDADD)
tests_record_training_LDFLAGS = $(tests_record_threads_LDFLAGS)
check_PROGRAMS += tests/record/calls
tests_record_calls_SOURCES = tests/record/calls.c tests/record/check.h tests/record/small.h
tests_record_calls_LDADD = $(tests_record_program_LDADD)
tests_record_calls_LDFLAGS = $(tests_record_program_LDFLAGS)
check_PROGRAMS += tests/record/queries
tests_record_queries_SOURCES = tests/record/queries.c tests/record/check.h tests/record/small.h
tests_record_queries_LDADD = $(tests_record_threads_LDADD)
tests_record_queries_LDFLAGS = $(tests_record_threads_LDFLAGS)
check_PROGRAMS += tests/record/ranks
tests_record_ranks_SOURCES = tests/record/ranks.c tests/record/check.h tests/record/small.h
tests_record_ranks_LDADD = $(tests_record_program_LDADD)
tests_record_ranks_LDFLAGS = $(tests_record_program_LDFLAGS)
check_PROGRAMS += tests/swrun_shared tests/record/program
tests_record_program_SOURCES = tests/record/program.c tests/record/check.h tests/record/small.h
tests_record_program_LDADD = libgpu.a tests/cuda_emulation/libcudart.so tests/cuda_emulation/libnccl.so.2 -lpthread \
    $(emulated_stdcxx)
tests_record_program_LDFLAGS = $(AM_LDFLAGS) -Wl,-rpath,'$(abs_builddir)/tests/cuda_emulation'
tests_swrun_shared_SOURCES = $(swrun_SOURCES)
tests_swrun_shared_LDADD = $(run_libs) tests/cuda_emulation/libcudart.so $(required_libs) $(emulated_stdcxx)
tests_swrun_shared_LDFLAGS = $(AM_LDFLAGS) -Wl,-rpath,'$(abs_builddir)/tests/cuda_emulation'
tests_overhead_emulated_SOURCES = tests/bench/overhead.c
tests_overhead_emulated_LDADD = $(emulated_libs)
tests_overhead_emulated_LDFLAGS = $(emulated_ldflags)
tests_swrun_emulated_SOURCES = $(swrun_SOURCES)
tests_swrun_emulated_LDADD = $(emulated_libs)
tests_swrun_emulated_LDFLAGS = $(emulated_ldflags)
check_PROGRAMS += tests/gpu/rows_emulated
tests_gpu_rows_emulated_SOURCES = tests/gpu/rows.c
tests_gpu_rows_emulated_LDADD = $(emulated_libs)
tests_gpu_rows_emulated_LDFLAGS = $(emulated_ldflags)
check_PROGRAMS += tests/gpu/t_swpipe_group_emulated
tests_gpu_t_swpipe_group_emulated_SOURCES = tests/gpu/t_swpipe_group.c
tests_gpu_t_swpipe_group_emulated_LDADD = tests/libtests.a $(emulated_libs)
tests_gpu_t_swpipe_group_emulated_LDFLAGS = $(emulated_ldflags)
check_PROGRAMS += tests/gpu/t_swpipe_collectives_emulated
tests_gpu_t_swpipe_collectives_emulated_SOURCES = tests/gpu/t_swpipe_collectives.c
tests_gpu_t_swpipe_collectives_emulated_LDADD = tests/libtests.a $(emulated_libs)
tests_gpu_t_swpipe_collectives_emulated_LDFLAGS = $(emulated_ldflags)
check_PROGRAMS += tests/gpu/t_swpipe_own_emulated
tests_gpu_t_swpipe_own_emulated_SOURCES = tests/gpu/t_swpipe_own.c
tests_gpu_t_swpipe_own_emulated_LDADD = tests/libtests.a $(emulated_libs) -ldl
tests_gpu_t_swpipe_own_emulated_LDFLAGS = $(emulated_ldflags)
check_PROGRAMS += tests/gpu/t_swpipe_policy_emulated
tests_gpu_t_swpipe_policy_emulated_SOURCES = tests/gpu/t_swpipe_policy.c
tests_gpu_t_swpipe_policy_emulated_LDADD = tests/libtests.a $(emulated_libs)
tests_gpu_t_swpipe_policy_emulated_LDFLAGS = $(emulated_ldflags)
check_PROGRAMS += tests/gpu/t_swpipe_hooks_emulated
tests_gpu_t_swpipe_hooks_emulated_SOURCES = tests/gpu/t_swpipe_hooks.c
tests_gpu_t_swpipe_hooks_emulated_LDADD = tests/libtests.a $(emulated_libs)
tests_gpu_t_swpipe_hooks_emulated_LDFLAGS = $(emulated_ldflags)
tests_gpu_t_device_emulated_SOURCES = tests/gpu/t_device.c
tests_gpu_t_device_emulated_LDADD = tests/libtests.a $(emulated_libs)
tests_gpu_t_device_emulated_LDFLAGS = $(emulated_ldflags)
endif

# Failures by machine: the preloaded library and the test that starts commands with it.
check_DATA += tests/faults/inject.so
CLEANFILES += tests/faults/inject.so
tests/faults/inject.so: tests/faults/inject.c tests/faults/inject.h Makefile
	$(AM_V_CCLD)$(MKDIR_P) tests/faults && $(CC) -D_GNU_SOURCE -std=c11 -Wall -Wextra $(WERROR_CFLAGS) -O1 -g \
	    -U_FORTIFY_SOURCE -fPIC -shared -o $@ $(srcdir)/tests/faults/inject.c -ldl
tests_whole_t_injected_SOURCES = \
    tests/faults/attempt.c tests/faults/attempt.h \
    tests/faults/commands.h \
    tests/faults/inject.h \
    tests/whole/t_injected.c
tests_whole_t_injected_CPPFLAGS = $(AM_CPPFLAGS) -DINJECT_LIBRARY='"$(abs_builddir)/tests/faults/inject.so"' \
    -DLIBRARY_USER='"$(abs_builddir)/tests/faults/library_user"'
check_PROGRAMS += tests/faults/library_user
tests_faults_library_user_CPPFLAGS = -I$(srcdir)/api -I$(srcdir)/gpu/lib
tests_faults_library_user_LDADD = libswsim.a libswpipe.a $(required_libs) $(CUDA_LIBS)

# As a user builds them: nothing but the library and its header.
examples_cppflags = -I$(srcdir)/gpu/lib
examples_libs = libswpipe.a $(YAML_LIBS) $(SQLITE_LIBS) $(CUDA_LIBS)
doc_examples_double_buffer_CPPFLAGS = $(examples_cppflags)
doc_examples_double_buffer_LDADD = $(examples_libs)
doc_examples_exchange_CPPFLAGS = $(examples_cppflags)
doc_examples_exchange_LDADD = $(examples_libs)
doc_examples_phases_CPPFLAGS = $(examples_cppflags)
doc_examples_phases_LDADD = $(examples_libs)
doc_examples_policy_CPPFLAGS = $(examples_cppflags)
doc_examples_policy_LDADD = $(examples_libs)
doc_examples_split_forward_CPPFLAGS = $(examples_cppflags)
doc_examples_split_forward_LDADD = $(examples_libs)
doc_examples_staged_CPPFLAGS = $(examples_cppflags)
doc_examples_staged_LDADD = $(examples_libs)
doc_examples_judge_CPPFLAGS = -I$(srcdir)/api
doc_examples_judge_LDADD = libswsim.a $(required_libs)
dlrm_sources = \
    doc/examples/dlrm/app.h \
    doc/examples/dlrm/data.c \
    doc/examples/dlrm/device.h \
    doc/examples/dlrm/dlrm.c \
    doc/examples/dlrm/kernels.h \
    doc/examples/dlrm/model.c doc/examples/dlrm/model.h \
    doc/examples/dlrm/plain.c \
    doc/examples/dlrm/shape.h \
    doc/examples/dlrm/tables.c \
    doc/examples/dlrm/tasks.c
doc_examples_dlrm_dlrm_SOURCES = $(dlrm_sources) doc/examples/dlrm/device_host.c
# In the C of a compiler without -std.
dlrm_cppflags = $(examples_cppflags) -D_DEFAULT_SOURCE
doc_examples_dlrm_dlrm_CPPFLAGS = $(dlrm_cppflags)
doc_examples_dlrm_dlrm_LDADD = $(examples_libs) -lm
if BLAS
check_PROGRAMS += doc/examples/dlrm/dlrm_blas
doc_examples_dlrm_dlrm_blas_SOURCES = $(dlrm_sources) doc/examples/dlrm/device_host.c
doc_examples_dlrm_dlrm_blas_CPPFLAGS = $(dlrm_cppflags) -DDLRM_BLAS
doc_examples_dlrm_dlrm_blas_LDADD = $(examples_libs) $(BLAS_LIBS) -lm
endif
# For a GPU, and on emulated CUDA: there cuBLAS and the threads of the kernels are the tests'.
if CUBLAS
check_PROGRAMS += doc/examples/dlrm/dlrm_cuda tests/dlrm_emulated
doc_examples_dlrm_dlrm_cuda_SOURCES = $(dlrm_sources) doc/examples/dlrm/device_cuda.cu
doc_examples_dlrm_dlrm_cuda_CPPFLAGS = $(dlrm_cppflags)
doc_examples_dlrm_dlrm_cuda_LDADD = $(examples_libs) $(CUBLAS_LIBS) -lm
doc/examples/dlrm/device_cuda.$(OBJEXT): doc/examples/dlrm/device.h doc/examples/dlrm/kernels.h \
    doc/examples/dlrm/shape.h Makefile
tests_dlrm_emulated_SOURCES = $(dlrm_sources) doc/examples/dlrm/device_cuda.cu \
    tests/cuda_emulation/cublas.c tests/dlrm_kernels.c
tests_dlrm_emulated_CPPFLAGS = $(AM_CPPFLAGS) $(examples_cppflags)
tests_dlrm_emulated_LDADD = libswpipe.a tests/cuda_emulation/libcuda.a $(required_libs) $(emulated_stdcxx) -lm
tests_dlrm_emulated_LDFLAGS = $(emulated_ldflags)
# With shared libraries, of which a recording sees CUDA's runtime and not cuBLAS, as of a real program.
check_DATA += tests/cuda_emulation/libcublas.so
tests/cuda_emulation/libcublas.so: tests/cuda_emulation/cublas.c tests/cuda_emulation/emulation.h Makefile
	$(AM_V_CCLD)cd $(srcdir) && $(CC) $(DEFS) -I'$(abs_builddir)' -I. $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) \
	    -fvisibility=default -shared -Wl,-soname,libcublas.so -o '$(abs_builddir)/$@' tests/cuda_emulation/cublas.c
CLEANFILES += tests/cuda_emulation/libcublas.so
check_PROGRAMS += tests/dlrm_shared
tests_dlrm_shared_SOURCES = $(dlrm_sources) doc/examples/dlrm/device_cuda.cu tests/dlrm_kernels.c
tests_dlrm_shared_CPPFLAGS = $(tests_dlrm_emulated_CPPFLAGS)
tests_dlrm_shared_LDADD = libswpipe.a tests/cuda_emulation/libcublas.so tests/cuda_emulation/libcudart.so \
    $(required_libs) $(emulated_stdcxx) -lm
tests_dlrm_shared_LDFLAGS = $(emulated_ldflags) -Wl,-rpath,'$(abs_builddir)/tests/cuda_emulation'
endif
doc_examples_train_step_CPPFLAGS = $(examples_cppflags)
doc_examples_train_step_LDADD = $(examples_libs)

# Promela models, for t_spin.sh and bench-spin.
tests_spin_print_model_SOURCES = \
    tests/spin/export_promela.c tests/spin/export_promela.h \
    tests/spin/lean.h \
    tests/spin/lean_device.c \
    tests/spin/lean_host.c \
    tests/spin/lean_program.c \
    tests/spin/print_model.c \
    tests/spin/promela.h \
    tests/spin/promela_drivers.c \
    tests/spin/promela_ops.c
tests_spin_print_model_LDADD = $(judge_libs) $(required_libs)

tests_libtests_a_SOURCES = \
    tests/case_file.c tests/case_file.h \
    tests/closed_sets.c tests/closed_sets.h \
    tests/harness.c tests/harness.h tests/refused.h tests/refused_sql.h \
    tests/mutants.c tests/mutants.h \
    tests/processes.c tests/processes.h \
    tests/random_draw.h \
    tests/random_costs.c tests/random_costs.h \
    tests/random_plan.c tests/random_plan.h \
    tests/random_wide.c \
    tests/same_tree.c tests/same_tree.h \
    tests/tame_plan.c tests/tame_plan.h \
    tests/tap.c tests/tap.h \
    tests/trial.c tests/trial.h

# What is fuzzed (tests/fuzz/targets.h): for t_fuzz, and for `make fuzz`. The words of mutations are those of the
# parser's tables.
check_LIBRARIES += tests/fuzz/libfuzz.a
tests_fuzz_libfuzz_a_SOURCES = \
    cmd/yaml_json.c cmd/yaml_json.h \
    tests/fuzz/common.c \
    tests/fuzz/fuzz_action.c \
    tests/fuzz/fuzz_certificate.c \
    tests/fuzz/fuzz_csv.c \
    tests/fuzz/fuzz_dump.c \
    tests/fuzz/fuzz_json.c \
    tests/fuzz/fuzz_mail.c \
    tests/fuzz/fuzz_plan.c \
    tests/fuzz/fuzz_recording.c \
    tests/fuzz/fuzz_records.c \
    tests/fuzz/fuzz_store.c \
    tests/fuzz/fuzz_traces.c \
    tests/fuzz/fuzz_units.c \
    tests/fuzz/fuzz_whole.c \
    tests/fuzz/mutate.c tests/fuzz/mutate.h \
    tests/fuzz/sql.c tests/fuzz/sql.h \
    tests/fuzz/tape_lines.c tests/fuzz/tape_lines.h \
    tests/fuzz/targets.h
tests_whole_t_no_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
tests_gpu_t_run_memory_LDFLAGS = $(tests_whole_t_no_memory_LDFLAGS)
tests_base_t_early_LDFLAGS = $(tests_whole_t_no_memory_LDFLAGS)
tests_plan_json_LDADD = tests/fuzz/libfuzz.a $(LDADD)
tests_combine_keys_LDADD = tests/fuzz/libfuzz.a $(LDADD)
tests_whole_t_fuzz_LDADD = tests/fuzz/libfuzz.a $(LDADD)
tests_check_t_proof_LDADD = tests/fuzz/libfuzz.a $(LDADD)
tests_import_t_recorded_times_LDADD = tests/fuzz/libfuzz.a $(LDADD)

tests/fuzz/mutate.$(OBJEXT): tests/fuzz/words.inc
tests/fuzz/words.inc: tests/fuzz/words.sh plan/plan.h plan/host_op.h plan/pipeline.h plan/programs.h plan/work.h plan/ops.h plan/keywords.c trace/schema.h trace/import/kineto.c trace/import/nsys.c trace/record/recorder/recording.h
	$(AM_V_GEN)$(MKDIR_P) tests/fuzz && $(SHELL) $(srcdir)/tests/fuzz/words.sh $(srcdir) >$@.new && mv $@.new $@
CLEANFILES += tests/fuzz/words.inc

LDADD = tests/libtests.a $(import_libs) $(run_libs) $(required_libs) \
    $(CUDA_LIBS)

TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(SHELL) $(srcdir)/tests/partners/python.sh
PY_LOG_DRIVER = $(LOG_DRIVER)
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/tools/timed_driver.sh \
    $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
AM_TESTS_ENVIRONMENT = \
    LSAN_OPTIONS='suppressions=$(abs_srcdir)/tests/lsan.supp:print_suppressions=0'; \
    export LSAN_OPTIONS; \
    srcdir='$(abs_srcdir)'; export srcdir; \
    SWSIM='$(abs_builddir)/swsim$(EXEEXT)'; export SWSIM; \
    SWRUN='$(abs_builddir)/swrun$(EXEEXT)'; export SWRUN; \
    SWCHECK='$(abs_builddir)/swcheck$(EXEEXT)'; export SWCHECK; \
    CC='$(CC)'; export CC; \
    CFLAGS='$(CFLAGS)'; export CFLAGS; \
    INSTRUMENT_FLAGS='$(INSTRUMENT_FLAGS)'; export INSTRUMENT_FLAGS; \
    TSAN_OPTIONS="suppressions=$(abs_srcdir)/tests/tsan.supp $$TSAN_OPTIONS"; export TSAN_OPTIONS; \
    TEST_CPPFLAGS='$(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS)'; export TEST_CPPFLAGS;

# The slowest tests; ./runtests shows all of them.
check-local: check-TESTS
	@test -z '$(TESTS)' || $(SHELL) $(srcdir)/tools/test_times.sh 10 $(TEST_LOGS:.log=.trs)

check-long:
	SWSIM_LONG=1; export SWSIM_LONG; $(MAKE) $(AM_MAKEFLAGS) check

# Beside programs of others, in the Python environment SWSIM_PARTNERS; without one it is made in partners/ here.
partner_tests = \
    tests/partners/t_accesses.py \
    tests/partners/t_adapters.py \
    tests/partners/t_c_programs.py \
    tests/partners/t_cupti.py \
    tests/partners/t_dry.py \
    tests/partners/t_dry_mutants.py \
    tests/partners/t_hangs.py \
    tests/partners/t_hta.py \
    tests/partners/t_loops.py \
    tests/partners/t_groups.py \
    tests/partners/t_megatron.py \
    tests/partners/t_megatron_messages.py \
    tests/partners/t_nccl.py \
    tests/partners/t_perfetto.py \
    tests/partners/t_pipeline_runs.py \
    tests/partners/t_schedules.py \
    tests/partners/t_torchrec.py \
    tests/partners/t_torchrec_dry.py \
    tests/partners/t_tracelens.py \
    tests/partners/t_z3.py

partner_files = \
    tests/partners/accesses.py \
    tests/partners/c_program.py \
    tests/partners/dry_program.py tests/partners/dry_right.py \
    tests/partners/executed.py \
    tests/partners/hangs.py \
    tests/partners/loops.py \
    tests/partners/install.sh \
    tests/partners/pipeline_run.py \
    tests/partners/pipelining.py \
    tests/partners/python.sh \
    tests/partners/random_host.py \
    tests/partners/versions.txt \
    tests/partners/tap.py \
    tests/partners/torchrec_order.py \
    tests/partners/torchrec_streams.py

check-partners:
	test -n "$$SWSIM_PARTNERS" || $(SHELL) $(srcdir)/tests/partners/install.sh partners || :
	SWSIM_PARTNERS=$${SWSIM_PARTNERS:-$(abs_builddir)/partners}; export SWSIM_PARTNERS; \
	    $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(partner_tests)'
