/* specialise.c - see specialise.h. */
#include "codegen/specialise.h"

#include "codegen/emit.h"

#include <stdio.h>

/* The next smaller plan; false when there is none. */
static bool shrink(vpps_partition_choice *c) {
    enum { STEP = 16, MOST = 192 };
    if (c->vectors > 1) {
        c->vectors /= 2;
    } else {
        c->spare += STEP;
    }
    return c->spare <= MOST;
}

static void tell(const vpps_specialiser *s, const char *description, const vpps_cubin_report *report) {
    char line[VPPS_MESSAGE_BYTES];
    if (!s->log) return;
    snprintf(line, sizeof line, "rejected: %s: %u registers, frame of %u bytes, %u bytes spilled", description,
             report->registers, report->frame_bytes, report->spill_bytes);
    s->log(s->context, line);
}

/* One plan; *clean: its kernel neither spills nor has a frame. */
static vpps_status try_plan(const vpps_specialiser *s, const vpps_partition *p, char **source,
                            vpps_cubin_report *report, bool *clean) {
    char description[256];
    char *text = NULL;
    vpps_emit_description(p, description, sizeof description);
    VPPS_TRY(vpps_emit_kernel(p, s->optimizer, &text));
    *report = (vpps_cubin_report){0};
    vpps_status status = s->compile(s->context, p, text, description, report);
    *clean = status == VPPS_OK && !report->frame_bytes && !report->spill_bytes;
    if (*clean && source) {
        *source = text;
        return VPPS_OK;
    }
    free(text);
    if (status == VPPS_OK && !*clean) tell(s, description, report);
    return status;
}

vpps_status vpps_specialise(const vpps_specialiser *s, const vpps_partition_choice *choice, vpps_partition *out,
                            char **source, vpps_cubin_report *report) {
    vpps_partition_choice c = *choice;
    do {
        bool clean = false;
        vpps_status status = vpps_partition_create(out, s->model, s->machine, &c);
        if (status == VPPS_OK) status = try_plan(s, out, source, report, &clean);
        if (status == VPPS_OK && clean) return VPPS_OK;
        vpps_partition_destroy(out);
        VPPS_TRY(status);
    } while (shrink(&c));
    return vpps_fail(VPPS_POOL, "specialise: every plan with rpw %u, %u threads, %u CTAs an SM spills", choice->rpw,
                     choice->threads, choice->ctas_per_sm);
}
