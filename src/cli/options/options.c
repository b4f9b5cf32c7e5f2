/* options.c - tells which options were given, and converts options' values to and from text. */
#include "cli/options/options.h"
#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <strings.h>

const char *const split_names[N_SPLITS] = {"train", "dev", "test"};

bool options_name_files(const settings *s) {
    bool any = s->data != NULL;
    for (int i = 0; i < N_SPLITS; i++) any |= s->parts[i] != NULL;
    return any;
}

bool options_unused(const settings *s, const cli_option *o) {
    const bool generates = (o->flags & OPTION_DATA) && o->row.kind != OPTION_TEXT;
    return options_name_files(s) ? generates : (o->flags & OPTION_FILES) != 0;
}

const cli_option *options_find(const settings *s, const char *name) {
    const cli_option *found = NULL;
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        if (!o->row.name || strcmp(o->row.name, name) != 0) continue;
        if (options_apply(s, o)) return o;
        if (!found) found = o;
    }
    return found;
}

bool options_given(const settings *s, const char *name) {
    const cli_option *o = options_find(s, name);
    return o && s->given[o->number];
}

static void *value_of(settings *s, const cli_option *o) {
    return (o->of_network ? (char *)&s->net : (char *)s) + o->row.offset;
}

bool options_apply(const settings *s, const cli_option *o) {
    if (!o->row.name || !(o->commands & s->command)) return false;
    return !o->kinds || (s->network && (o->kinds >> s->network->kind & 1));
}

const char *options_text(const settings *s, const cli_option *o) {
    return *(const char *const *)value_of((settings *)(uintptr_t)s, o);
}

void options_complete(settings *s) {
    if (isnan(s->lr)) s->lr = vpps_default_lr((vpps_optimizer_kind)s->optimizer);
    const bool in_steps = s->lr_schedule == SCHEDULE_STEP || s->lr_schedule == SCHEDULE_PLATEAU;
    if (in_steps && !(s->lr_decay < 1) && !options_given(s, "lr-decay")) s->lr_decay = 0.1f;
    if (s->resume && !s->save) s->save = s->resume;
}

/* Finds word number `index` of "a|b|c" as (start, length). Returns false when there are fewer. */
static bool choice_word(const char *words, uint32_t index, const char **start, int *len) {
    for (; index; index--) {
        words = strchr(words, '|');
        if (!words++) return false;
    }
    *start = words;
    *len = (int)strcspn(words, "|");
    return true;
}

void options_write(const settings *s, const cli_option *o, char *text, size_t n) {
    const void *v = value_of((settings *)(uintptr_t)s, o);
    const char *word = "";
    int len = 0;
    switch (o->row.kind) {
    case OPTION_U32: snprintf(text, n, "%" PRIu32, *(const uint32_t *)v); break;
    case OPTION_U64:
    case OPTION_BYTES: snprintf(text, n, "%" PRIu64, *(const uint64_t *)v); break;
    case OPTION_F32: /* writes as few digits as restore the float */
        for (int digits = 1; digits <= 9; digits++) {
            snprintf(text, n, "%.*g", digits, (double)*(const float *)v);
            if (strtof(text, NULL) == *(const float *)v) break;
        }
        break;
    case OPTION_CHOICE:
        choice_word(o->row.argument, *(const uint32_t *)v, &word, &len);
        snprintf(text, n, "%.*s", len, word);
        break;
    case OPTION_TEXT: snprintf(text, n, "%s", options_text(s, o) ? options_text(s, o) : ""); break;
    case OPTION_FLAG: snprintf(text, n, "%s", *(const bool *)v ? "yes" : "no"); break;
    }
}

/* Parses a whole number without sign; *end is the first byte after it. */
static bool read_u64(const char *text, uint64_t *out, const char **end) {
    if (!isdigit((unsigned char)*text)) return false;
    errno = 0;
    char *stop;
    *out = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0;
}

bool options_read(settings *s, const cli_option *o, const char *text, char *why, size_t why_bytes) {
    const option_row *r = &o->row;
    void *v = value_of(s, o);
    const char *end;
    uint64_t u;
    switch (r->kind) {
    case OPTION_U32:
        if (!read_u64(text, &u, &end) || *end || (double)u < r->min || (double)u > r->max) {
            snprintf(why, why_bytes, "a whole number from %.0f to %.0f", r->min, r->max);
            return false;
        }
        *(uint32_t *)v = (uint32_t)u;
        return true;
    case OPTION_U64:
    case OPTION_BYTES: {
        static const char units[] = "KMG";
        bool good = read_u64(text, &u, &end);
        if (good && *end && r->kind == OPTION_BYTES) {
            const char *unit = strchr(units, toupper((unsigned char)*end));
            const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
            good = unit && u <= UINT64_MAX >> shift;
            u <<= shift;
            end++;
        }
        if (!good || *end) {
            snprintf(why, why_bytes, "a whole number below 2^64%s",
                     r->kind == OPTION_BYTES ? ", with K, M or G after it for larger units" : "");
            return false;
        }
        *(uint64_t *)v = u;
        return true;
    }
    case OPTION_F32: {
        char *stop;
        const float x = strtof(text, &stop);
        if (stop == text || *stop || !isfinite(x) || (double)x < r->min - 1e-9 || (double)x > r->max * (1 + 1e-6)) {
            snprintf(why, why_bytes, "a number from %g to %g", r->min, r->max);
            return false;
        }
        *(float *)v = x;
        return true;
    }
    case OPTION_CHOICE: {
        const char *word;
        int len;
        for (uint32_t i = 0; choice_word(r->argument, i, &word, &len); i++) {
            if (strlen(text) == (size_t)len && strncasecmp(text, word, (size_t)len) == 0) {
                *(uint32_t *)v = i;
                return true;
            }
        }
        snprintf(why, why_bytes, strchr(r->argument, '|') ? "one of %s" : "%s", r->argument);
        return false;
    }
    case OPTION_TEXT:
        if (!*text && !(o->flags & OPTION_LIST)) {
            snprintf(why, why_bytes, "a text of a character or more");
            return false;
        }
        *(const char **)v = text;
        return true;
    case OPTION_FLAG: *(bool *)v = strcmp(text, "no") != 0; return true;
    }
    return false;
}
