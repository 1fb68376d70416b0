# SPDX-License-Identifier: Apache-2.0
# trace/record/none: the device that is not there, for `swsim record --device=none`; its libraries have the names of CUDA's.
none_engine_objects = none_engine.o none_kernels.o none_memory.o none_models.o
none_runtime_objects = none_runtime.o none_launches.o none_missing_runtime.o
none_blas_objects = none_blas.o none_missing_blas.o
none_blas_lt_objects = none_blas_lt.o none_missing_blas_lt.o
none_nccl_objects = none_nccl.o none_nccl_comm.o none_nccl_sums.o none_missing_nccl.o
none_driver_objects = none_driver.o none_missing_driver.o
none_all_objects = $(none_engine_objects) $(none_runtime_objects) $(none_blas_objects) $(none_blas_lt_objects) \
    $(none_nccl_objects) $(none_driver_objects) none_nvml.o none_audit.o none_major12.o none_major13.o

none_libraries = none/libswnone.so none/libswnone-audit.so none/libcudart.so.12 none/libcudart.so.13 none/libcublas.so.12 \
    none/libcublas.so.13 none/libcublasLt.so.12 none/libcublasLt.so.13 none/libnccl.so.2 none/libcuda.so.1 \
    none/libnvidia-ml.so.1
nonedir = $(pkglibexecdir)/none
none_DATA = $(none_libraries)
nonepythondir = $(nonedir)/python
nonepython_DATA = trace/record/none/python/sitecustomize.py trace/record/none/python/swsim_torch.py \
    trace/record/none/python/swsim_values.py
none_headers = trace/record/none/none.h trace/record/none/models.h trace/record/none/runtime.h \
    trace/record/none/nccl.h trace/record/recorder/swsim_ops.h
EXTRA_DIST += $(none_headers) $(nonepython_DATA) trace/record/none/audit.c trace/record/none/blas.c trace/record/none/blas_lt.c \
    trace/record/none/driver.c trace/record/none/engine.c trace/record/none/kernels.c \
    trace/record/none/launches.c trace/record/none/memory.c trace/record/none/missing.c \
    trace/record/none/models.c trace/record/none/nccl.c trace/record/none/nccl_comm.c trace/record/none/nccl_sums.c \
    trace/record/none/nvml.c trace/record/none/runtime.c trace/record/none/runtime_major.c
CLEANFILES += $(nonepython_DATA:trace/record/none/%=none/%) $(none_libraries) $(none_all_objects:%=none/%)

none_compile = $(AM_V_CC)$(MKDIR_P) none && $(CC) $(DEFS) -I. -I$(srcdir) $(CPPFLAGS) -D_GNU_SOURCE -std=c11 -O2 -g -fPIC -Wall -Wextra \
    -Wshadow -Wconversion -Wstrict-prototypes $(WERROR_CFLAGS) $(HARDENING_CFLAGS) $(FOLDER_CFLAGS)
none_link = $(AM_V_CCLD)$(CC) $(CFLAGS) $(HARDENING_LDFLAGS) $(LDFLAGS) -shared

none/none_%.o: trace/record/none/%.c $(none_headers) Makefile
	$(none_compile) -c -o $@ $<
none/none_missing_%.o: trace/record/recorder/missing_%.inc trace/record/none/missing.c $(none_headers) Makefile
	$(none_compile) -DMISSING='"$<"' -c -o $@ $(srcdir)/trace/record/none/missing.c
none/none_major12.o none/none_major13.o: trace/record/none/runtime_major.c $(none_headers) Makefile
	$(none_compile) -DNONE_MAJOR=`echo $@ | tr -dc 0-9` -c -o $@ $<

# Where the program finds them without an installation.
all-local: none/python.done
none/python.done: $(nonepython_DATA)
	$(AM_V_GEN)$(MKDIR_P) none/python && for file in $(nonepython_DATA); do cp $(srcdir)/$$file none/python/ || exit 1; done && \
	    touch $@
CLEANFILES += none/python.done

none/libswnone.so: $(none_engine_objects:%=none/%)
	$(none_link) -Wl,-soname,libswnone.so -o $@ $(none_engine_objects:%=none/%) -ldl -lpthread
none/libswnone-audit.so: none/none_audit.o
	$(none_link) -o $@ none/none_audit.o

# A library NAME.so.N has the versions of symbols that programs ask for, and is beside the engine.
none_face = -Wl,-soname,$(notdir $@) -Wl,-rpath,'$$ORIGIN' -Wl,-Bsymbolic -o $@
none_versions = echo '$(notdir $@) { global: cu*; __cuda*; local: *; };' >$@.map
none/libcudart.so.12: none/none_major12.o
none/libcudart.so.13: none/none_major13.o
none/libcudart.so.12 none/libcudart.so.13: none/libswnone.so $(none_runtime_objects:%=none/%)
	@$(none_versions)
	$(none_link) -Wl,--version-script,$@.map $(none_face) $(filter %.o,$^) none/libswnone.so -ldl && rm $@.map
none/libcublas.so.12: none/none_major12.o
none/libcublas.so.13: none/none_major13.o
none/libcublas.so.12 none/libcublas.so.13: none/libswnone.so $(none_blas_objects:%=none/%)
	@$(none_versions)
	$(none_link) -Wl,--version-script,$@.map $(none_face) $(filter %.o,$^) none/libswnone.so && rm $@.map
none/libcublasLt.so.12: none/none_major12.o
none/libcublasLt.so.13: none/none_major13.o
none/libcublasLt.so.12 none/libcublasLt.so.13: none/libswnone.so $(none_blas_lt_objects:%=none/%)
	@$(none_versions)
	$(none_link) -Wl,--version-script,$@.map $(none_face) $(filter %.o,$^) none/libswnone.so && rm $@.map
none/libnccl.so.2: none/libswnone.so $(none_nccl_objects:%=none/%)
	$(none_link) $(none_face) $(filter %.o,$^) none/libswnone.so -lrt -lm
none/libcuda.so.1: none/libswnone.so $(none_driver_objects:%=none/%)
	$(none_link) $(none_face) $(filter %.o,$^) none/libswnone.so -ldl
none/libnvidia-ml.so.1: none/libswnone.so none/none_nvml.o
	$(none_link) $(none_face) $(filter %.o,$^) none/libswnone.so
