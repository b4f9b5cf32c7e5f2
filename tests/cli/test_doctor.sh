#!/bin/bash
# test_doctor.sh - what `vpps doctor` says of devices that are there and of those that are not; the GPU is the fake driver
# of tests/fake_cuda. VPPS names the program (default: build/vpps).
# Prints a line for every failure; the last line is "N passed, N failed, N skipped".

vpps=$(realpath "${VPPS:-build/vpps}")
fake=$(dirname "$vpps")/tests/fake_cuda.so
passed=0
failed=0
skipped=0

# skip WHAT WHY NUMBER: so many checks that cannot be made here.
skip() {
    skipped=$((skipped + $3))
    echo "skipped: $1: $2"
}

# says WHAT REGEX COMMAND...: one line of the command's output is that.
says() {
    local what=$1 regex=$2 out
    shift 2
    out=$("$@" 2>&1)
    if [ "$(grep -cE -e "$regex" <<< "$out")" -eq 1 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: %s\n%s\n' "$what" "$(head -n 8 <<< "$out")"
    fi
}

unset VPPS_CXX
says "which kernels are used?" '^ +kernels +(generic|avx2|avx512|neon)$' "$vpps" doctor
says "those that are asked for" '^ +kernels +(generic|neon)$' env VPPS_ISA=generic "$vpps" doctor
says "is there AMX?" '^ +amx +(ready|not ready: .+)$' "$vpps" doctor
says "its JSON" '"amx":"(ready|not ready: [^"]+)"' "$vpps" doctor --json
places='"cores_allowed":[0-9]+,"sockets":[0-9]+,"memory_nodes":[0-9]+,"shared_caches":[0-9]+,"physical_cores":[0-9]+'
says "where the cores are" "$places" "$vpps" doctor --json
says "one of them" '"cores_allowed":1,"sockets":1,"memory_nodes":1,"shared_caches":1,"physical_cores":1[,}]' \
    taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+$')" "$vpps" doctor --json
says "no driver" '^ +cuda +not ready: no GPU driver: /nowhere/libcuda.so.1: ' \
    env VPPS_LIBCUDA=/nowhere/libcuda.so.1 "$vpps" doctor
says "a driver without NVRTC" '^ +cuda +not ready: Fake GPU, but no NVRTC: .*/nowhere/libnvrtc.so' \
    env VPPS_LIBCUDA="$fake" VPPS_NVRTC=/nowhere/libnvrtc.so "$vpps" doctor
says "its JSON" '"name":"cuda","gpu":"Fake GPU","arch":"sm_90","sms":132,"driver":"13.0",.*"ready":false\}' \
    env VPPS_LIBCUDA="$fake" VPPS_NVRTC=/nowhere/libnvrtc.so "$vpps" doctor --json
if grep -q '"nvrtc"' <<<"$(VPPS_LIBCUDA="$fake" "$vpps" doctor --json)"; then
    says "a GPU" '^ +cuda +ready: Fake GPU, sm_90, 132 SMs, driver 13\.0, NVRTC [0-9]+\.[0-9]+$' \
        env VPPS_LIBCUDA="$fake" "$vpps" doctor
    says "its JSON" '"name":"cuda",.*"nvrtc":"[0-9]+\.[0-9]+","state":"ready: [^"]*","ready":true\}' \
        env VPPS_LIBCUDA="$fake" "$vpps" doctor --json
else
    skip "a GPU" "no NVRTC" 2
fi
says "no C++ compiler" '^ +simt +not ready: .*/nowhere/c\+\+' env VPPS_CXX=/nowhere/c++ "$vpps" doctor
if command -v c++ > /dev/null; then
    says "a C++ compiler" '^ +simt +ready: [^:]* [0-9]+\.[0-9.]+[^ ]*$' "$vpps" doctor
else
    skip "a C++ compiler" "no c++" 1
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
