/* examine.c - describes to the user the devices cuda (GPU, driver, compiler) and simt (GPU kernels run on the CPU). */
#include "codegen/nvrtc.h"
#include "runtime/gpu/driver.h"
#include "runtime/gpu/gpu.h"
#include "runtime/simt/compiler.h"

#include <stdarg.h>

static void add(vpps_device_facts *out, const char *name, bool number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void add(vpps_device_facts *out, const char *name, bool number, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    out->facts[out->n].name = name;
    out->facts[out->n].number = number;
    vsnprintf(out->facts[out->n++].text, sizeof out->facts->text, format, arguments);
    va_end(arguments);
}

/* Sets the line about why the device is not ready: the latest error message, without the device's name at its beginning. */
static void set_not_ready(vpps_device_facts *out) {
    const char *message = vpps_error_message(), *colon = strstr(message, ": ");
    snprintf(out->state, sizeof out->state, "not ready: %s", colon ? colon + 2 : message);
}

void vpps_examine_cuda(vpps_device_facts *out) {
    vpps_machine m;
    if (vpps_gpu_here(&m) != VPPS_OK) {
        set_not_ready(out);
        return;
    }
    char driver[32];
    const vpps_nvrtc *nvrtc;
    snprintf(driver, sizeof driver, "%d.%d", m.driver / 1000, m.driver % 1000 / 10);
    add(out, "gpu", false, "%s", m.name);
    add(out, "arch", false, "sm_%u", m.arch);
    add(out, "sms", true, "%u", m.sms);
    add(out, "driver", false, "%s", driver);
    if (vpps_nvrtc_open(&nvrtc) != VPPS_OK) {
        snprintf(out->state, sizeof out->state, "not ready: %s, but no NVRTC: %s", m.name, vpps_error_message());
        return;
    }
    add(out, "nvrtc", false, "%d.%d", nvrtc->major, nvrtc->minor);
    snprintf(out->state, sizeof out->state, "ready: %s, sm_%u, %u SMs, driver %s, NVRTC %d.%d", m.name, m.arch, m.sms,
             driver, nvrtc->major, nvrtc->minor);
    out->ready = true;
}

/* Describes the emulated GPU, which needs a C++ compiler; `toolchain` reads "COMPILER AND VERSION: OPTIONS". */
void vpps_examine_simt(vpps_device_facts *out) {
    char toolchain[1024];
    if (vpps_simt_toolchain(toolchain, sizeof toolchain) != VPPS_OK) {
        set_not_ready(out);
        return;
    }
    const char *colon = strstr(toolchain, ": ");
    const int length = (int)(colon ? (size_t)(colon - toolchain) : strlen(toolchain));
    snprintf(out->state, sizeof out->state, "ready: %.*s", length, toolchain);
    out->ready = true;
}
