/* fuzz.h - what the fuzz targets share. */
#pragma once

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void require(bool condition) {
    if (!condition) abort();
}
