/* json.c - writes JSON values and lines. */
#include "cli/common/json.h"
#include "base/base.h"

#include <errno.h>
#include <math.h>

json_t *report_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

vpps_status report_json_line(json_t *object, FILE *file) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for a line of JSON");
    errno = EIO; /* stands for the reason of an earlier failed flush, which is unknown */
    const bool written = fprintf(file, "%s\n", text) > 0 && fflush(file) == 0 && !ferror(file);
    free(text);
    return written ? VPPS_OK : vpps_fail(VPPS_IO, "cannot write a line of JSON: %s", strerror(errno));
}
