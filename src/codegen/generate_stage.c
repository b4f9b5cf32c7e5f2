/* generate_stage.c - a stage as a function of the kernel. See segments.h for what it is made of. */
#include "codegen/generate_stage.h"
#include "script/task.h"

typedef vpps_stage_work work;

/* Products, and what the next segment, which finishes them, reads. */
static bool put_products(work *w, const vpps_segment *g, uint8_t *loaded) {
    const bool joined = vpps_can_join(w, w->segment);
    if (joined) {
        w->segment++;
        w->joined = true;
        w->loaded_early = vpps_put_early_loads(w, g + 1, loaded);
        w->segment--;
        w->joined = false;
    }
    return vpps_put_products(w, g, joined);
}

static bool put_segment(work *w, const vpps_segment *g, uint8_t *loaded) {
    w->joined = w->segment && vpps_can_join(w, w->segment - 1);
    w->loaded_early &= w->joined;
    const uint32_t v = w->s.steps[g->first].value;
    switch (g->kind) {
    case VPPS_SEGMENT_ELEMENTS: vpps_put_elements(w, g, loaded); return true;
    case VPPS_SEGMENT_PRODUCTS: return put_products(w, g, loaded);
    case VPPS_SEGMENT_WHOLE: vpps_put_whole(w, v); return true;
    case VPPS_SEGMENT_LISTS: vpps_put_lists(w, v); return true;
    default: vpps_put_matrices(w, v); return true;
    }
}

/* How many vertices a tile has, and where slots lie; and how much is left to bring operands near. */
static void choose_room(work *w, vpps_stage_room *room) {
    enum {
        WORDS = 6144,
        MOST = 32,
        LISTS_TILE = 8,
        LIMIT = 12288,
        PART_WORDS = 4096,
        LEAST_WORDS = 3072, /* for tiles, where there are operands to be brought */
        PASS = 16           /* of mma */
    };
    uint32_t part = 0, near = 0;
    for (uint32_t k = 0; k < w->s.n; k++) part = vpps_max_u32(part, w->item_words[k]);
    const uint32_t words = part + w->s.floats[0] + 1;
    const bool in_tiles = !w->c->n_lists && w->s.floats[0] <= LIMIT;
    const uint32_t least = in_tiles ? vpps_max_u32(LEAST_WORDS, words) : vpps_max_u32(PART_WORDS, part);
    w->near_words = VPPS_TILE_WORDS - vpps_min_u32(vpps_quads_up(least), VPPS_TILE_WORDS);
    for (uint32_t k = 0; k < w->s.n; k++) {
        vpps_place_near(w, &w->s.list[k]);
        near = vpps_max_u32(near, w->near_turns * VPPS_NEAR_ITEMS * w->near_item);
    }
    const uint32_t limit = vpps_min_u32(LIMIT, VPPS_TILE_WORDS - near);
    *room = (vpps_stage_room){.tile = LISTS_TILE};
    if (in_tiles) {
        const uint32_t whole = vpps_min_u32(MOST, limit / words) / PASS * PASS;
        const uint32_t some = vpps_min_u32(MOST, vpps_min_u32(WORDS, limit) / words);
        w->chunk = room->tile = w->g->plan->parts && whole ? whole : vpps_max_u32(1, some);
        w->part_words = room->tile * part;
        room->shared_words = w->part_words + room->tile * w->s.floats[0];
    } else {
        w->chunk = part ? vpps_max_u32(1, vpps_min_u32(MOST, PART_WORDS / part)) : 1;
        room->shared_words = w->part_words = w->chunk * part;
        memcpy(room->scratch_words, w->s.floats, sizeof room->scratch_words);
    }
    w->near_at = vpps_quads_up(room->shared_words);
    if (near) room->shared_words = w->near_at + near;
}

static void put_rows(const work *w) {
    const vpps_cell_stage *stage = &w->c->stages[w->s.stage];
    for (uint32_t i = 0; i < stage->n && w->s.rows; i++) {
        const uint32_t v = w->c->order[stage->first + i], rows = vpps_stage_value(w, v)->rows;
        bool seen = !vpps_is_dealt(&w->s, v);
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = vpps_stage_value(w, w->c->order[stage->first + k])->rows == rows;
        if (!seen) fprintf(w->out, "const vpps_rows r%u = vpps_rows_of(%u, VPPS_GROUP, member);\n", rows, rows);
    }
}

/* Where the task's passing records and contributions lie, as if there were items from 0 on. */
static void put_places(const work *w) {
    const uint32_t passing = w->c->kept_words[vpps_passing_record(w->c, w->s.stage)];
    const bool passes = w->c->stages[w->s.stage].passing;
    bool contributes = false;
    for (uint32_t j = 0; j < w->c->n_contributions; j++)
        contributes |= vpps_stage_value(w, w->c->contributions[j].value)->stage == w->s.stage;
    if (passes)
        fprintf(w->out, "const unsigned passing = t.at->passing - t.operands[1] * %uu;\n(void)passing;\n", passing);
    if (!contributes) return;
    fprintf(w->out, "unsigned next = t.at->contributions;\n");
    for (uint32_t j = 0; j < w->c->n_contributions; j++) {
        const vpps_cell_value *x = vpps_stage_value(w, w->c->contributions[j].value);
        const uint32_t words = vpps_value_words(x);
        char first[48] = "t.operands[1]", n[96] = "t.operands[2]";
        if (x->stage != w->s.stage) continue;
        if (x->domain) {
            snprintf(first, sizeof first, "ls%u[t.operands[1]]", x->domain);
            snprintf(n, sizeof n, "(ls%u[t.operands[1] + t.operands[2]] - %s)", x->domain, first);
        }
        fprintf(w->out, "const unsigned c%u = next - %s * %uu;\nnext += (%s * %uu + 15) & ~15u;\n", j, first, words, n,
                words);
    }
    fprintf(w->out, "(void)next;\n");
}

vpps_status vpps_generate_stage(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t stage, uint32_t number,
                                vpps_stage_room *room) {
    work w = {.g = g, .c = c, .out = g->out};
    uint8_t *loaded = calloc(c->n_values + 1u, 1);
    if (!loaded) return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    vpps_status status = vpps_segments_make(&w.s, c, stage);
    w.streamed = calloc(c->n_values + 1u, 1);
    w.part_at = calloc(c->n_values + 1u, sizeof *w.part_at);
    w.item_words = calloc(w.s.n + 1u, sizeof *w.item_words);
    w.near = calloc(c->n_values + 1u, sizeof *w.near);
    bool ok = status == VPPS_OK;
    if (ok) ok = w.streamed && w.part_at && w.item_words && w.near && vpps_place_products(&w);
    if (!ok && status == VPPS_OK) status = vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    if (ok) {
        choose_room(&w, room);
        w.tile = room->tile;
        fputs("\n/* cell ", w.out);
        vpps_generate_name(w.out, c->name);
        fprintf(w.out,
                ", stage %u */\nVPPS_PART void vpps_stage_%u(const vpps_arguments &a, float "
                "(&w)[VPPS_WEIGHTS + 1], float *shared, const vpps_kernel_task &t) {\n",
                stage, number);
        vpps_generate_view(w.out, c, "t.operands[0]");
        fprintf(w.out,
                "const unsigned member = blockIdx.x %% VPPS_GROUP;\nfloat *const part = shared + VPPS_SHARED_WEIGHTS, "
                "*const "
                "near = part + %u;\n",
                w.near_at);
        put_rows(&w);
        put_places(&w);
        if (w.s.rows) {
            fprintf(w.out, "const unsigned begin = t.operands[1], end = begin + t.operands[2];\n");
        } else {
            fprintf(w.out, "const vpps_rows share = vpps_share_of(t.operands[2], VPPS_GROUP, member);\n"
                           "const unsigned begin = t.operands[1] + share.first, end = t.operands[1] + share.end;\n");
        }
        fprintf(
            w.out,
            "vpps_await(a, t);\nif (begin >= end) return;\n#pragma unroll 1\nfor (unsigned f0 = begin;; f0 += %u) {\n",
            room->tile);
        fprintf(w.out, "const unsigned n0 = vpps_least(end - f0, %uu);\n", room->tile);
        for (uint32_t d = 1; d <= c->n_lists; d++)
            fprintf(w.out, "const unsigned f%u = ls%u[f0], n%u = ls%u[f0 + n0] - f%u;\n", d, d, d, d, d);
        if (room->scratch_words[0] || c->n_lists) {
            fprintf(w.out,
                    "float *const region0 = (float *)a.scratch + (unsigned long long)blockIdx.x * a.scratch_words;\n");
        } else {
            fprintf(w.out, "float *const region0 = part + %uu;\n", w.part_words);
        }
        for (uint32_t d = 1; d <= c->n_lists; d++)
            fprintf(w.out, "float *const region%u = region%u + %uu * n%u;\n", d, d - 1, w.s.floats[d - 1], d - 1);
        for (uint32_t v = 0; v < c->n_values; v++)
            if (vpps_in_slot(&w, v))
                fprintf(w.out, "float *const s%u = region%u + %uu * n%u;\n", v, c->values[v].domain, w.s.slot[v],
                        c->values[v].domain);
        for (w.segment = 0; w.segment < w.s.n && ok; w.segment++) {
            if (w.segment) fprintf(w.out, "__syncthreads();\n"); /* slots, and sums of warps */
            ok = put_segment(&w, &w.s.list[w.segment], loaded);
        }
        fprintf(w.out,
                "if (end - f0 <= %u) break;\n__syncthreads();\n}\n(void)w, (void)pool, (void)part, (void)near, "
                "(void)member;\n}\n",
                room->tile);
        if (!ok) status = vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    }
    vpps_segments_free(&w.s);
    void *const parts[] = {loaded, w.streamed, w.part_at, w.item_words, w.near};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
    return status;
}
