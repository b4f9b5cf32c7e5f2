#!/bin/bash
# test_doctor.sh - what `vpps doctor` says of devices that are there and of those that are not; the GPU is the fake driver
# of tests/fake_cuda. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"
fake=$(dirname "$vpps")/tests/fake_cuda.so

unset VPPS_CXX
check "which kernels are used?" prints '^ +kernels +(generic|avx2|avx512|neon)$' "$vpps" doctor
check "those that are asked for" prints '^ +kernels +(generic|neon)$' env VPPS_ISA=generic "$vpps" doctor
check "is there AMX?" prints '^ +amx +(ready|not ready: .+)$' "$vpps" doctor
check "its JSON" prints '"amx":"(ready|not ready: [^"]+)"' "$vpps" doctor --json
check "its libraries" tells "o['devices'][0]['name'] == 'cpu' and all(k in o['libraries'] for k in ('vpps', 'jansson', 'zlib', 'zstd', 'glibc'))" "$vpps" doctor --json
check "the CPU" prints '^ +cpu +ready' "$vpps" doctor
places='"cores_allowed":[0-9]+,"sockets":[0-9]+,"memory_nodes":[0-9]+,"shared_caches":[0-9]+,"physical_cores":[0-9]+'
check "where the cores are" prints "$places" "$vpps" doctor --json
check "one of them" prints '"cores_allowed":1,"sockets":1,"memory_nodes":1,"shared_caches":1,"physical_cores":1[,}]' \
    taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+$')" "$vpps" doctor --json
check "no driver" prints '^ +cuda +not ready: no GPU driver: /nowhere/libcuda.so.1: ' \
    env VPPS_LIBCUDA=/nowhere/libcuda.so.1 "$vpps" doctor
check "a driver without NVRTC" prints '^ +cuda +not ready: Fake GPU, but no NVRTC: .*/nowhere/libnvrtc.so' \
    env VPPS_LIBCUDA="$fake" VPPS_NVRTC=/nowhere/libnvrtc.so "$vpps" doctor
check "its JSON" prints '"name":"cuda","gpu":"Fake GPU","arch":"sm_90","sms":132,"driver":"13.0",.*"ready":false\}' \
    env VPPS_LIBCUDA="$fake" VPPS_NVRTC=/nowhere/libnvrtc.so "$vpps" doctor --json
if grep -q '"nvrtc"' <<<"$(VPPS_LIBCUDA="$fake" "$vpps" doctor --json)"; then
    check "a GPU" prints '^ +cuda +ready: Fake GPU, sm_90, 132 SMs, driver 13\.0, NVRTC [0-9]+\.[0-9]+$' \
        env VPPS_LIBCUDA="$fake" "$vpps" doctor
    check "its JSON" prints '"name":"cuda",.*"nvrtc":"[0-9]+\.[0-9]+","state":"ready: [^"]*","ready":true\}' \
        env VPPS_LIBCUDA="$fake" "$vpps" doctor --json
else
    skip "a GPU" "no NVRTC" 2
fi
check "no C++ compiler" prints '^ +simt +not ready: .*/nowhere/c\+\+' env VPPS_CXX=/nowhere/c++ "$vpps" doctor
if command -v c++ > /dev/null; then
    check "a C++ compiler" prints '^ +simt +ready: [^:]* [0-9]+\.[0-9.]+[^ ]*$' "$vpps" doctor
else
    skip "a C++ compiler" "no c++" 1
fi

summary
