# VPPS: `make help` lists targets and variables.

MAKEFLAGS += --no-builtin-rules

BUILD   ?= build
OBJ     ?= $(BUILD)/obj
CC      ?= cc
CFLAGS  ?= -O2 -g
WERROR  ?= 0
PREFIX  ?= /usr/local
SANITIZE ?=
RUN_ARGS ?=
BENCH_ARGS ?=
FUZZ_SECONDS ?= 20
MUTANTS ?=
GPU_STEPS ?=
V       ?= 0
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
export VPPS_DATA ?= ../shared/data

VERSION := $(shell sed -n 's/^\#define VPPS_VERSION "\(.*\)"/\1/p' include/vpps.h)
SONAME  := libvpps.so.$(firstword $(subst ., ,$(VERSION)))
Q       := $(if $(filter 1,$(V)),,@)

# ---------------------------------------------------------------- flags

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
            -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wimplicit-fallthrough
SANITIZE_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)

# _GNU_SOURCE is defined empty, exactly as a source file would write it.
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE= $(CFLAGS) $(WARNINGS) \
              $(if $(filter 1,$(WERROR)),-Werror) -fPIC -fvisibility=hidden -pthread $(SANITIZE_FLAGS) -MMD -MP
INCLUDES   := -Iinclude -Isrc -Imodels -Itests

LIBS      := -ljansson -lz -lzstd -lpthread -ldl -lm
SHARED_FLAGS := -shared -Wl,-z,defs -Wl,-soname,$(SONAME) -Wl,--exclude-libs,ALL
ALL_LDFLAGS := -pthread $(SANITIZE_FLAGS) -Wl,--as-needed $(LDFLAGS)
CHECK_LIBS = $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck)

# The CPU kernels are compiled once an instruction set and chosen between at run time.
# Optimised builds under a sanitizer take minutes for these files alone; then clang must not mind what stays scalar.
KERNEL_FLAGS  := $(if $(SANITIZE),-O1 -Wno-pass-failed,-O3 -fno-var-tracking) -fno-math-errno -fno-trapping-math -ffp-contract=off -fopenmp-simd
KERNEL_ISAS   := $(if $(filter x86_64,$(ARCH)),generic avx2 avx512,$(if $(filter aarch64,$(ARCH)),neon,generic))
FLAGS_avx2    := -mavx2 -mfma
FLAGS_avx512  := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512

# ---------------------------------------------------------------- files

objects = $(patsubst %.c,$(OBJ)/%.o,$(1))

SRC       := $(sort $(shell find src -name '*.c'))
KERNELS   := src/runtime/cpu/kernels.c
LIB_SRC   := $(filter-out $(KERNELS) src/cli/%,$(SRC))
HOT       := $(filter src/graph/% src/cell/% src/script/% src/runtime/comm/% src/runtime/share.c \
               src/runtime/cpu/avx512_bf16.c src/runtime/cpu/avx512_pack.c, $(LIB_SRC))
BRIEF     := $(filter-out $(addprefix tests/,common/% models/% cell/% decode/% fuzz/% graph/test_ops.c codegen/test_instructions.c runtime/test_bf16.c), \
               $(wildcard tests/*/*.c))
TEMPLATES := $(wildcard src/interp_templates/*) src/script/header.h src/isa/functions.h src/isa/steps.h src/isa/isa.def src/isa/whole.def src/base/template.S \
             src/runtime/cpu/math.h $(filter-out src/export/export.h,$(wildcard src/export/*.h)) $(wildcard src/cli/main/*.h) \
             src/io/json.h src/io/json.c src/io/chunks.h src/cli/session/chain_paths.h src/cli/session/chain_paths.c src/cli/input/tokenize_simple.c \
             src/cli/input/csv.h src/cli/input/csv.c src/cli/common/lists.c
LIB_OBJ   := $(call objects,$(LIB_SRC)) $(OBJ)/src/codegen/templates.o $(OBJ)/src/export/templates.o \
             $(foreach isa,$(KERNEL_ISAS),$(KERNELS:%.c=$(OBJ)/%_$(isa).o))
MODEL_OBJ := $(call objects,$(wildcard models/*.c))
CLI_OBJ   := $(call objects,$(filter src/cli/%,$(SRC))) $(OBJ)/src/cli/commands/templates.o

LIB_A   := $(BUILD)/libvpps.a
LIB_SO  := $(BUILD)/libvpps.so.$(VERSION)
COMMAND := $(BUILD)/vpps

# tests/FOLDER/test_NAME.c is a program; the folder's other sources and tests/common are linked into it.
TEST_SRC   := $(wildcard tests/*/test_*.c)
TESTS      := $(foreach t,$(TEST_SRC),$(BUILD)/tests/$(subst /,_,$(patsubst tests/%.c,%,$(t))))
TEST_SH    := $(wildcard tests/*/test_*.sh)
FUZZERS    := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCHES    := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c))
BENCH_OBJ  := $(call objects,$(filter-out $(wildcard bench/bench_*.c),$(wildcard bench/*.c)))

C_FILES    := $(SRC) $(sort $(shell find models tests bench examples python -name '*.c'))
H_FILES    := $(sort $(shell find include src models tests bench examples python -name '*.h' -o -name '*.cuh'))
SH_FILES   := .ci/run doc/vpps.bash $(wildcard tools/*.sh tests/*/*.sh bench/recipes/*.sh)

# ---------------------------------------------------------------- build

.PHONY: all help run setup test quick check check-long check-package check-kernels check-gpu-model gpu-model check-portable sanitize sanitize-address sanitize-thread sanitized-check fuzz mutants valgrind bench bench-all gpu-check gpu-prepare \
        install uninstall deb format format-check lint clean test-programs fuzz-programs bench-programs FORCE
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

all: $(LIB_A) $(LIB_SO) $(COMMAND) ## build the library and the command (the default)

# Objects are built again when the compiler or its flags change.
$(dir $(OBJ))flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' > $@

define compile
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $(@:$(OBJ)/%.o=%)")
	$(Q)$(CC) $(ALL_CFLAGS) $(1) -c -o $@ $<
endef
define link
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) $(1)
endef

$(OBJ)/%.o: %.c $(dir $(OBJ))flags
	$(call compile,$(INCLUDES))

# Of kernels, which are one source, sanitizers see those in plain C, which sanitized-check runs: each takes half a minute to instrument,
# and of intrinsics a sanitizer sees nothing. The others are not optimised, so GCC warns of what an optimised build shows to be right.
UNSANITIZED_OBJ := $(if $(SANITIZE),$(patsubst %,$(OBJ)/$(KERNELS:%.c=%)_%.o,avx2 avx512) $(OBJ)/src/runtime/cpu/avx512_bf16.o)
$(UNSANITIZED_OBJ): ALL_CFLAGS := $(filter-out -fsanitize=% -fno-sanitize-recover=% -O%,$(ALL_CFLAGS)) -w
$(UNSANITIZED_OBJ): KERNEL_FLAGS := $(filter-out -O%,$(KERNEL_FLAGS))

# The static parts of kernels and of exported files, embedded.
$(addprefix $(OBJ)/src/,codegen/templates.o export/templates.o cli/commands/templates.o): $(OBJ)/%.o: %.S $(TEMPLATES) $(dir $(OBJ))flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  AS    $(@:$(OBJ)/%.o=%)")
	$(Q)$(CC) -c -o $@ $<

# Graphs, the scheduler and the encoder are the host's hot path; and a product by vectors is only that with its loops unrolled.
$(call objects,$(HOT)): $(OBJ)/%.o: %.c $(dir $(OBJ))flags
	$(call compile,$(INCLUDES) $(subst -O2,-O3,$(filter -O2,$(CFLAGS))))

# These tests compute little: optimising them takes longer than it saves. A sanitizer triples that time.
$(call objects,$(BRIEF) $(if $(SANITIZE),tests/common/meaning.c)): $(OBJ)/%.o: %.c $(dir $(OBJ))flags
	$(call compile,$(INCLUDES) $(if $(filter -O1 -O2,$(CFLAGS)),-O0))

# The networks see the public headers only.
$(OBJ)/models/%.o: models/%.c $(dir $(OBJ))flags
	$(call compile,-Iinclude -Imodels)

define kernel_rule
$(KERNELS:%.c=$(OBJ)/%_$(1).o): $(OBJ)/%_$(1).o: %.c $(dir $(OBJ))flags
	$$(call compile,$(INCLUDES) $$(KERNEL_FLAGS) $(FLAGS_$(1)) -DVPPS_KERNELS_ISA=$(1))
endef
$(foreach isa,$(KERNEL_ISAS),$(eval $(call kernel_rule,$(isa))))

$(LIB_A): $(LIB_OBJ)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  AR    $@")
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(LIB_SO): $(LIB_OBJ)
	$(call link,$(SHARED_FLAGS))
	@ln -sf $(@F) $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $(BUILD)/libvpps.so

$(COMMAND): $(CLI_OBJ) $(MODEL_OBJ) $(LIB_A)
	$(call link,)

# A part of the command that a test program links; in front of the library, whose parts it asks for.
$(BUILD)/tests/decode_test_decode: $(call objects,src/cli/session/decode.c)
$(BUILD)/tests/decode_test_chain: $(call objects,src/cli/session/chain.c src/cli/session/chain_paths.c)
$(BUILD)/tests/comm_test_deal: $(call objects,src/cli/session/deal.c)
$(BUILD)/tests/codegen_test_kernel_plan $(BUILD)/tests/codegen_test_resident: $(call objects,src/cli/output/kernel_plan_print.c)
# And networks with examples, of another folder of tests.
$(BUILD)/tests/export_test_export: $(call objects,$(addprefix tests/models/,fixture.c examples.c random_examples.c))

# lld, where it is installed, links the programs in half the time that GNU ld needs for the debugging information of the library.
TEST_LINKER := $(if $(SANITIZE),,$(if $(findstring LLD,$(shell $(CC) -fuse-ld=lld -Wl,--version 2> /dev/null)),-fuse-ld=lld))
define test_rule
$(BUILD)/tests/$(subst /,_,$(patsubst tests/%.c,%,$(1))): $(call objects,$(1) \
    $(filter-out $(TEST_SRC),$(wildcard $(dir $(1))*.c)) $(wildcard tests/common/*.c)) $(MODEL_OBJ) $(LIB_A)
	$$(call link,$$(CHECK_LIBS) $(TEST_LINKER))
endef
$(foreach t,$(TEST_SRC),$(eval $(call test_rule,$(t))))

# The fake GPU driver, which test_driver_cuda, test_doctor.sh and test_compilations.sh open at run time.
FAKE_CUDA := $(BUILD)/tests/fake_cuda.so
$(FAKE_CUDA): $(call objects,$(wildcard tests/fake_cuda/*.c))
	$(call link,-shared)
$(BUILD)/tests/runtime_test_driver_cuda: | $(FAKE_CUDA)

# The fake NVRTC, of which test_compile makes several versions, and by which test_compilations.sh counts.
FAKE_NVRTC := $(BUILD)/tests/fake_nvrtc.so
$(FAKE_NVRTC): $(call objects,$(wildcard tests/fake_nvrtc/*.c))
	$(call link,-shared)
$(BUILD)/tests/codegen_test_compile: | $(FAKE_NVRTC)

# Likewise NCCL's stand-in.
FAKE_NCCL := $(BUILD)/tests/fake_nccl.so
$(FAKE_NCCL): $(call objects,$(wildcard tests/fake_nccl/*.c))
	$(call link,-shared)
$(BUILD)/tests/comm_test_nccl $(BUILD)/tests/comm_test_share: | $(FAKE_NCCL)

# And cuBLAS's.
FAKE_CUBLAS := $(BUILD)/tests/fake_cublas.so
$(FAKE_CUBLAS): $(call objects,$(wildcard tests/fake_cublas/*.c))
	$(call link,-shared)
$(BUILD)/tests/gpu_test_gpu_cublas $(BUILD)/tests/gpu_test_gpu_queue $(BUILD)/tests/comm_test_share $(BUILD)/tests/runtime_test_states: | $(FAKE_CUBLAS)

# With the CUDA toolkit's headers at hand, this file compares our declarations with them.
CUDA_HOME ?= /usr/local/cuda
$(OBJ)/tests/runtime/cuda_declarations.o: INCLUDES += $(if $(wildcard $(CUDA_HOME)/include/cuda.h),-isystem $(CUDA_HOME)/include)

# Likewise with NCCL's header, and those of the implementations of MPI.
NCCL_HOME ?= $(CUDA_HOME)
$(OBJ)/tests/comm/nccl_declarations.o: INCLUDES += $(addprefix -isystem ,$(sort $(wildcard $(NCCL_HOME)/include $(CUDA_HOME)/include)))
$(OBJ)/tests/comm/mpich_declarations.o: INCLUDES += $(addprefix -isystem ,$(firstword $(wildcard /usr/include/*/mpich)))
$(OBJ)/tests/comm/open_mpi_declarations.o: INCLUDES += $(addprefix -isystem ,$(firstword $(wildcard /usr/lib/*/openmpi/include)))

# Readers use nothing of the library but these two folders.
$(BUILD)/fuzz/%: $(OBJ)/tests/fuzz/%.o $(call objects,$(filter src/base/% src/io/%,$(LIB_SRC)))
	$(call link,-fsanitize=fuzzer)

# What is measured are the command's own data and sessions.
$(BUILD)/bench/%: $(OBJ)/bench/%.o $(BENCH_OBJ) $(filter-out %/main.o,$(CLI_OBJ)) $(MODEL_OBJ) $(LIB_A)
	$(call link,)

test-programs: $(TESTS)
fuzz-programs: $(FUZZERS)
bench-programs: $(BENCHES)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

# ---------------------------------------------------------------- use
#
# Targets that install packages first build in a second make, which then sees what was installed. Without -j they
# use every core.

parallel = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
submake  = +$(Q)$(MAKE) --no-print-directory $(parallel)

setup: ## install the packages that are missing, for all targets (Debian, Ubuntu)
	$(Q)tools/setup.sh build test lint fuzz valgrind

run: ## install what is missing, build, train a Tree-LSTM (RUN_ARGS="..." passes options)
	$(Q)tools/setup.sh build
	$(submake) all
	$(Q)$(COMMAND) train tree-lstm --hidden 96 --embed 64 $(RUN_ARGS)

test: ## install what is missing, build and run the tests, but those that take longest: check-long has them
	$(Q)tools/setup.sh build test
	$(submake) check

quick: ## build and run the tests closest to what changed since the last commit, and train a network: half a minute
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) tools/quick.py

# Tests run beside each other, the longest first, so that none is left alone at the end; after them, one by one, the scripts that call
# make in the build folder.
CLI_TESTS  := $(wildcard tests/cli/test_*.sh)
PACKAGE_SH := tests/build/test_deb.sh tests/build/test_wheel.sh tests/python/test_packages.sh
PYTHON_SH  := tests/python/test_python.sh
MAKE_SH    := $(filter-out tests/build/test_gpu_check.sh tests/build/test_bench_% $(PACKAGE_SH),$(filter tests/build/%,$(TEST_SH)))
BESIDE      = $(TESTS) $(filter-out $(MAKE_SH) $(PACKAGE_SH) $(PYTHON_SH),$(TEST_SH))
LONGEST     = tests/build/test_gpu_check.sh tests/cli/test_tasks.sh tests/cli/test_processes.sh \
              $(addprefix $(BUILD)/tests/,gpu_test_gpu_agreement models_test_networks script_test_refusals) \
              tests/cli/test_options.sh tests/cli/test_cli.sh tests/cli/test_manual.sh tests/cli/test_carry.sh \
              $(addprefix $(BUILD)/tests/,comm_test_share gpu_test_gpu_faults golden_test_golden gpu_test_gpu_cublas io_test_io \
                gpu_test_gpu_handle runtime_test_random codegen_test_specialise graph_test_ops) \
              tests/codegen/test_kernels.sh tests/cli/test_pictures.sh \
              $(addprefix $(BUILD)/tests/,runtime_test_steps runtime_test_handle runtime_test_requests gpu_test_gpu_queue) \
              tests/build/test_bench_gpu.sh tests/examples/test_examples.sh tests/cli/test_precision.sh
FIRST       = $(foreach t,$(LONGEST),$(filter $(t),$(BESIDE)))
ORDERED     = $(FIRST) $(filter-out $(FIRST),$(BESIDE))

# More than half of all tests' time. In this order each sixth of them takes about as long as another.
LONG = $(addprefix $(BUILD)/tests/,gpu_test_gpu_cells gpu_test_gpu_agreement script_test_refusals) tests/cli/test_processes.sh \
       $(BUILD)/tests/gpu_test_gpu_handle tests/cli/test_export_c.sh \
       tests/cli/test_pictures.sh tests/build/test_contributing.sh tests/build/test_gpu_check.sh \
       $(addprefix $(BUILD)/tests/,comm_test_share gpu_test_gpu_faults) tests/codegen/test_kernels.sh \
       $(addprefix $(BUILD)/tests/,runtime_test_crowd script_test_mutations) tests/examples/test_examples.sh \
       $(addprefix $(BUILD)/tests/,gpu_test_gpu_queue gpu_test_gpu_cublas runtime_test_steps) \
       tests/build/test_bench_train.sh $(addprefix $(BUILD)/tests/,graph_test_infinity export_test_export gpu_test_gpu_memory runtime_test_halves) \
       $(addprefix $(BUILD)/tests/,codegen_test_instructions gpu_test_gpu_ahead gpu_test_gpu_precision) tests/build/test_bench_gpu.sh

# $(call share,TESTS): those of this run's share, VPPS_TEST_PART, as 2/6: every sixth, from the second on; all unless it is set.
share     = $(if $(VPPS_TEST_PART),$(shell VPPS_TEST_PART=$(VPPS_TEST_PART); . tools/share.sh; i=0; for t in $(1); do ! share $$i || echo $$t; i=$$((i + 1)); done),$(1))
LONG_HERE := $(call share,$(LONG))

check: all $(filter-out $(LONG),$(TESTS)) ## build and run every test but those of check-long and check-package; installs nothing
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) VPPS=$(COMMAND) tools/run_tests.sh $(filter-out $(LONG),$(ORDERED) -- $(MAKE_SH))

check-long: ## the tests that take longest, which make test leaves out: some minutes
	$(Q)tools/setup.sh build test
	$(submake) all bench-programs $(filter $(TESTS),$(LONG_HERE))
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) VPPS=$(COMMAND) LEFT_OUT='$(filter-out $(LONG_HERE),$(LONG))' env -u VPPS_TEST_PART tools/run_tests.sh $(LONG_HERE)

.PHONY: examples
examples: ## build and run every example of examples/, each to what it says that it reaches: some minutes
	$(Q)tools/setup.sh build test
	$(submake) all
	$(Q)BUILD=$(BUILD) tests/examples/test_examples.sh
	$(Q)BUILD=$(BUILD) VPPS_EXAMPLES=full tests/python/test_python.sh
	$(Q)BUILD=$(BUILD) VPPS_EXAMPLES=full tests/python/test_packages.sh

# The wheel's test compares it with the package that the Python tests have built.
PACKAGES_HERE := $(call share,$(PACKAGE_SH))
check-package: ## the tests of the Python package and its types; builds the Debian package and the wheel, installs and uses them: some minutes
	$(Q)tools/setup.sh build test deb
	$(submake) all $(FAKE_CUDA) $(FAKE_NVRTC)
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) VPPS=$(COMMAND) LEFT_OUT='$(filter-out $(PACKAGES_HERE),$(PACKAGE_SH))' \
	    tools/run_tests.sh $(PYTHON_SH) $(filter-out %_wheel.sh,$(PACKAGES_HERE)) -- $(filter %_wheel.sh,$(PACKAGES_HERE))

SANITIZED := WERROR=$(WERROR) CFLAGS="-O1 -g1"
sanitize: ## every test program under the address and undefined, then the thread sanitizer
	$(Q)$(MAKE) --no-print-directory sanitize-address
	$(Q)$(MAKE) --no-print-directory sanitize-thread

sanitize-address: ## the first of the two
	$(Q)tools/setup.sh build test
	$(submake) BUILD=$(BUILD)-asan SANITIZE=address,undefined $(SANITIZED) VPPS_CACHE_DIR=$(abspath $(BUILD)/cache) sanitized-check

sanitize-thread: ## the second
	$(Q)tools/setup.sh build test
	$(submake) BUILD=$(BUILD)-tsan SANITIZE=thread $(SANITIZED) sanitized-check

# Small test sizes and long time limits: a sanitizer costs a factor of 3 to 15. Kernels are not sanitized: those that `check` has
# compiled serve. Sanitizers up to GCC 13 take a thread's block of a library opened later (NVRTC, NCCL) for one with a header of glibc
# before 2.25 where it happens to lie 16 bytes into a page, and crash on what they read there (google/sanitizers issue 1322); without
# intercept_tls_get_addr they do not look at such blocks.
# Under the thread sanitizer only what has threads: software SIMT has stacks of its own, which it cannot follow, of the shell
# tests two train with several, and the other programs have one, or one beside the caller.
ONE_THREAD      = cell_% io_% script_% decode_% files_% graph_test_graph graph_test_cost comm_test_deal \
                  runtime_test_kernels runtime_test_products runtime_test_memory codegen_test_cache \
                  codegen_test_kernel_plan codegen_test_machine codegen_test_instructions codegen_test_resident
# Kernels with faults are not sanitized either; and of GPU tests that come in parts, VPPS_TEST_PART drives a GPU as the others do.
UNSANITIZED     = $(if $(filter thread,$(SANITIZE)),,$(BUILD)/tests/gpu_test_gpu_faults)
OTHER_PARTS     = $(if $(filter thread,$(SANITIZE)),,$(IN_PARTS:%=%:other-parts))
NOT_THREADED    = $(if $(filter thread,$(SANITIZE)),$(addprefix $(BUILD)/tests/,gpu_% $(ONE_THREAD)) \
                    $(filter-out tests/cli/test_cli.sh tests/cli/test_trace.sh,$(CLI_TESTS)))
# A process under the address sanitizer takes longer to start than most checks take. These programs run their hundreds of checks in one
# process; a check may change its folder, so data are named by a whole path. Programs IN_PARTS run VPPS_TEST_PART's share of their checks; of
# the others it chooses which are built and run.
TOGETHER        = $(if $(filter thread,$(SANITIZE)),,$(addprefix $(BUILD)/tests/,io_test_io models_test_networks graph_test_ops cell_test_cell))
SANITIZED_TESTS = $(filter-out $(NOT_THREADED) $(UNSANITIZED),$(filter $(TESTS) $(CLI_TESTS),$(ORDERED)))
IN_PARTS        = $(addprefix $(BUILD)/tests/gpu_test_gpu_,agreement cells cublas)
in_share        = $(filter $(IN_PARTS),$(1)) $(call share,$(filter-out $(IN_PARTS),$(1)))
SANITIZED_HERE := $(if $(SANITIZE),$(call in_share,$(SANITIZED_TESTS)))
sanitized-check: $(COMMAND) $(filter $(TESTS),$(SANITIZED_HERE)) $(FAKE_CUDA) $(FAKE_NVRTC)
	$(Q)VPPS_TEST_SCALE=small VPPS_TEST_PART=$(or $(VPPS_TEST_PART),1/3) VPPS_ISA=generic CK_TIMEOUT_MULTIPLIER=5 BUILD=$(BUILD) VPPS=$(COMMAND) \
	    VPPS_DATA=$(abspath $(VPPS_DATA)) \
	    ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0 \
	    TSAN_OPTIONS=second_deadlock_stack=1:intercept_tls_get_addr=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    TOGETHER='$(TOGETHER)' LEFT_OUT='$(filter-out $(SANITIZED_HERE),$(TESTS) $(CLI_TESTS)) $(OTHER_PARTS)' tools/run_tests.sh $(SANITIZED_HERE)

MORE_KERNELS = $(addprefix $(BUILD)/tests/,$(addprefix gpu_test_gpu_,agreement cells cublas faults handle) \
                 $(addprefix runtime_test_,halves inference keep random requests states steps sums) comm_test_share codegen_test_specialise graph_test_infinity models_test_networks)
MORE_HERE   := $(call in_share,$(MORE_KERNELS))
check-kernels: ## kernels of every network, for sm_90, and kernels on software SIMT that make test leaves out (VPPS_TEST_SCALE=full: in every precision, and for every architecture; VPPS_TEST_ARCH=all, too: an hour)
	$(submake) all $(MORE_HERE)
	$(Q)VPPS_TEST_KERNELS=networks TEST_LIMIT=$(or $(TEST_LIMIT),14400) BUILD=$(BUILD) VPPS=$(COMMAND) \
	    LEFT_OUT='$(filter-out $(MORE_HERE),$(MORE_KERNELS))' tools/run_tests.sh tests/codegen/test_kernels.sh $(MORE_HERE)

GPU_MODEL ?= ../shared/tools/gpumodel
gpu-model: # builds the model of a GPU as a stand-in for libcuda.so.1: libgpudriver.so, which needs libgpumodel.so beside it
	+$(Q)$(MAKE) -C $(GPU_MODEL) --no-print-directory BUILD=$(abspath $(BUILD)/gpumodel)
	$(Q)$(CC) -O2 -shared -fPIC -Iinclude -Isrc -o $(BUILD)/gpumodel/libgpudriver.so tests/gpu_model/driver.c -L$(BUILD)/gpumodel -lgpumodel -Wl,-rpath,'$$ORIGIN'

check-gpu-model: ## every network on a model of a GPU (GPU_MODEL), by the code that drives a GPU, beside the CPU; gpu-check rehearsed on it: some minutes
	$(submake) all
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) VPPS=$(COMMAND) GPU_MODEL=$(GPU_MODEL) tools/check_gpu_model.sh
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) GPU_MODEL=$(GPU_MODEL) tools/rehearse_gpu_check.sh

check-portable: ## 64-bit ARM, x86 without AVX-512 and without AVX2, all emulated, and what clang builds: two minutes
	$(Q)tools/setup.sh build test fuzz emulated
	$(submake) all
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) VPPS=$(COMMAND) tools/check_portable.sh

mutants: ## plant the faults of tests/mutants/list.txt one by one and see which tests notice: an hour or more (MUTANTS="NAME ...")
	$(submake) all test-programs
	+$(Q)tests/mutants/run.py $(MUTANTS)

fuzz: ## build every fuzz target with clang and run it for FUZZ_SECONDS
	$(Q)tools/setup.sh build fuzz
	$(submake) BUILD=$(BUILD)-fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined $(SANITIZED) fuzz-programs
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) tools/run_fuzzers.sh $(FUZZERS:$(BUILD)/%=$(BUILD)-fuzz/%)

# valgrind knows no AVX-512: plain C kernels, and no code made at run time.
valgrind: ## one small training run under valgrind
	$(Q)tools/setup.sh build valgrind
	$(submake) all
	$(Q)VPPS_ISA=generic tools/run_valgrind.sh $(COMMAND) train tree-lstm --portable --generate listops \
	    --examples 16 --batch 4 --epochs 1 --hidden 16 --embed 16 --vps 2 --watchdog-ms 60000 \
	    --save $(BUILD)/valgrind.safetensors

bench: ## training speed of a few networks, beside PyTorch and DyNet: two minutes (BENCH_ARGS="..." passes options)
	$(Q)tools/setup.sh build bench
	$(submake) all $(BUILD)/bench/bench_train
	$(Q)BUILD=$(BUILD) VPPS=$(COMMAND) python3 bench/train.py --limit 110 $(BENCH_ARGS)

bench-all: ## training speed of every network, the host, kernels, and processes
	$(Q)tools/setup.sh build bench
	$(submake) all bench-programs
	$(Q)BUILD=$(BUILD) VPPS=$(COMMAND) python3 bench/train.py --networks all --slow --details $(BENCH_ARGS)
	$(Q)$(BUILD)/bench/bench_host $(dir $(wildcard $(VPPS_DATA)/sst))
	$(Q)$(BUILD)/bench/bench_kernels
	$(Q)BUILD=$(BUILD) VPPS=$(COMMAND) python3 bench/processes.py

gpu-check: ## on a machine with an NVIDIA GPU: check VPPS there; see tools/gpu_check.sh
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) tools/gpu_check.sh $(GPU_STEPS)

gpu-prepare: ## gpu-check, its programs and their data for a machine that has nothing, in build-gpu/
	$(Q)tools/setup.sh build test
	+$(Q)MAKE='$(MAKE)' KERNELS='$(KERNELS)' tools/gpu_check.sh prepare

# What is installed where; a package's rules set libdir and zshdir.
libdir ?= $(PREFIX)/lib
zshdir ?= $(PREFIX)/share/zsh/site-functions
BINDIR  = $(DESTDIR)$(PREFIX)/bin
LIBDIR  = $(DESTDIR)$(libdir)
INCDIR  = $(DESTDIR)$(PREFIX)/include
MANDIR  = $(DESTDIR)$(PREFIX)/share/man/man1
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR  = $(DESTDIR)$(zshdir)
EXAMPLEDIR = $(DESTDIR)$(PREFIX)/share/doc/vpps/examples
EXAMPLES  := $(sort $(shell find examples -type f))

# A program that is linked by pkg-config finds the library where the loader does not look by itself.
RPATH     = $(if $(filter /usr,$(PREFIX)),,-Wl,-rpath,$${libdir} )
FILL      = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(libdir))|' \
            -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' -e 's|@LIBS@|$(LIBS)|' -e 's|@RPATH@|$(RPATH)|' \
            -e "s|@INCLUDE_FROM_CMAKE@|$$(realpath -m --relative-to=$(libdir)/cmake/vpps $(PREFIX)/include)|" \
            -e 's|@STATIC_LIBS@|$(subst $(space),;,$(patsubst -l%,%,$(LIBS)))|'
space    := $(subst ,, )

install: all ## install into PREFIX, below DESTDIR when given
	install -d $(BINDIR) $(LIBDIR)/pkgconfig $(LIBDIR)/cmake/vpps $(INCDIR) $(MANDIR) $(BASHDIR) $(ZSHDIR)
	install -m 755 $(COMMAND) $(BINDIR)/vpps
	install -m 644 $(LIB_A) $(LIBDIR)/libvpps.a
	install -m 755 $(LIB_SO) $(LIBDIR)/libvpps.so.$(VERSION)
	ln -sf libvpps.so.$(VERSION) $(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(LIBDIR)/libvpps.so
	install -m 644 $(wildcard include/*.h) $(INCDIR)
	install -m 644 doc/vpps.1 $(MANDIR)/vpps.1
	$(FILL) vpps.pc.in > $(LIBDIR)/pkgconfig/vpps.pc
	$(FILL) vppsConfig.cmake.in > $(LIBDIR)/cmake/vpps/vppsConfig.cmake
	$(FILL) vppsConfigVersion.cmake.in > $(LIBDIR)/cmake/vpps/vppsConfigVersion.cmake
	for file in $(EXAMPLES); do install -D -m 644 $$file $(EXAMPLEDIR)/$${file#examples/}; done
	install -m 644 doc/vpps.bash $(BASHDIR)/vpps
	install -m 644 doc/vpps.zsh $(ZSHDIR)/_vpps
	chmod 644 $(LIBDIR)/pkgconfig/vpps.pc $(LIBDIR)/cmake/vpps/*.cmake

uninstall: ## remove what install put there
	rm -f $(BINDIR)/vpps $(LIBDIR)/libvpps.a $(LIBDIR)/libvpps.so.$(VERSION) $(LIBDIR)/$(SONAME) \
	    $(LIBDIR)/libvpps.so $(patsubst include/%,$(INCDIR)/%,$(wildcard include/*.h)) $(MANDIR)/vpps.1 $(LIBDIR)/pkgconfig/vpps.pc \
	    $(LIBDIR)/cmake/vpps/vppsConfig.cmake $(LIBDIR)/cmake/vpps/vppsConfigVersion.cmake $(BASHDIR)/vpps \
	    $(ZSHDIR)/_vpps $(patsubst examples/%,$(EXAMPLEDIR)/%,$(EXAMPLES))
	-rmdir $(LIBDIR)/cmake/vpps $(addprefix $(EXAMPLEDIR)/,embedded/wasm embedded) $(EXAMPLEDIR) 2> /dev/null

deb: ## make Debian packages of library, headers and command in BUILD/deb, and check them with lintian
	$(Q)tools/setup.sh build deb
	+$(Q)MAKE='$(MAKE)' BUILD=$(BUILD) tools/make_deb.sh

format: ## format the sources in C and CUDA in place
	$(Q)clang-format -i $(C_FILES) $(H_FILES)

format-check: ## are the sources in C and CUDA formatted?
	$(Q)clang-format --dry-run -Werror $(C_FILES) $(H_FILES)

# The analyzer follows a function's ways up to 20,000 states, with VPPS_TEST_SCALE=full up to its own 225,000: seven times the time.
TIDY_FLAGS := -std=c11 -D_GNU_SOURCE= -DVPPS_KERNELS_ISA=generic $(INCLUDES) \
              $(if $(filter full,$(VPPS_TEST_SCALE)),,-Xclang -analyzer-config -Xclang max-nodes=20000)
TIDY_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vpps-tidy
lint: ## the order of includes, format-check, clang-tidy, shellcheck, mandoc, places of planted faults
	$(Q)tools/setup.sh build test lint
	$(Q)tools/check_includes.py
	$(Q)tools/check_budget.py
	$(submake) format-check
	$(Q)mkdir -p '$(TIDY_CACHE)' && find '$(TIDY_CACHE)' -type f -mtime +30 -delete
	$(Q)printf '%s\n' $(call share,$(filter src/% models/%,$(C_FILES))) | \
	    TIDY_CACHE='$(TIDY_CACHE)' FLAGS='$(TIDY_FLAGS)' xargs -P $$(nproc) -n 4 tools/tidy.sh
	$(Q)shellcheck -x $(SH_FILES)
	$(Q)mandoc -T lint -W warning doc/vpps.1
	$(Q)tests/mutants/run.py --check

clean: ## remove every build folder
	rm -rf $(BUILD) $(BUILD)-arm64 $(BUILD)-clang $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz build-gpu build-gpu-objects

help: ## this text
	@echo "Targets:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 20
	@echo "Variables (VARIABLE=value):"
	@printf '  %-18s%s\n' \
	    BENCH_ARGS "options of bench and bench-all, as --torch PYTHON; bench/train.py --help" \
	    BUILD "build folder ($(BUILD))" \
	    CC "C compiler ($(CC))" \
	    CFLAGS "optimisation and debugging ($(CFLAGS))" \
	    DESTDIR "root below which install puts PREFIX" \
	    GPU_STEPS "steps of gpu-check, all unless given; see tools/gpu_check.sh" \
	    KERNELS "a kernel cache that gpu-prepare takes along" \
	    GPU_MODEL "sources of the model for check-gpu-model ($(GPU_MODEL))" \
	    FUZZ_SECONDS "time for each fuzz target ($(FUZZ_SECONDS))" \
	    MUTANTS "mutants by the beginning of their names, all unless given; tests/mutants/run.py --help" \
	    OBJ "folder of objects, where another build's serve ($(OBJ))" \
	    PREFIX "where install puts things ($(PREFIX))" \
	    RUN_ARGS "more options for the training of make run" \
	    V "1: show whole commands" \
	    VPPS_DATA "folder of data sets for the tests that use them ($(VPPS_DATA))" \
	    VPPS_TEST_SCALE "small: fewer random cases in the tests; full: all, more kernels, and all that the analyzer of lint follows" \
	    WERROR "1: warnings are errors"
