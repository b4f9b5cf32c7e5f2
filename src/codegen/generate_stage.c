/* generate_stage.c - writes a stage (part of a cell) as a C++ function, by segments (steps that run together). */
#include "codegen/generate_stage.h"

typedef vpps_stage_work work;

/* Writes code for matrix products. If the next steps add up all warps' sums of them, these steps' loads of other
 * operands are written first. loaded: scratch memory, a byte per value of the cell. */
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
    const vpps_program_step *s = vpps_step_of(w, g, 0)->step;
    switch (g->kind) {
    case VPPS_SEGMENT_ELEMENTS: vpps_put_elements(w, g, loaded); return true;
    case VPPS_SEGMENT_PRODUCTS: return put_products(w, g, loaded);
    case VPPS_SEGMENT_WHOLE: vpps_put_whole(w, s); return true;
    case VPPS_SEGMENT_LISTS: vpps_put_lists(w, s); return true;
    default: vpps_put_matrices(w, s); return true;
    }
}

/* Chooses a tile's number of vertices, where slots (buffers of values) lie, and the shared memory for copies of operands. */
static void choose_room(work *w, vpps_stage_room *room) {
    enum { WORDS = 6144, MOST = 32, LISTS_TILE = 8, LIMIT = 12288, PART_WORDS = 4096 };
    /* LEAST_WORDS: words of shared memory that copies of vectors leave for values; PASS: vectors of one mma */
    enum { LEAST_WORDS = 3072, PASS = 16 };
    const bool wide = w->g->plan->residents.wide_words > 0;
    uint32_t part = 0, copies = 0, most = wide ? VPPS_WIDE_ITEMS : MOST;
    for (uint32_t k = 0; k < w->s.n; k++) {
        part = vpps_max_u32(part, w->item_words[k]);
        if (w->row_words[k] == 1) most = VPPS_WIDE_ITEMS;
    }
    const uint32_t words = part + w->s.floats[0] + 1;
    for (uint32_t i = 0; i < w->s.p->n; i++) w->lists |= w->s.p->steps[i].axis > 0;
    for (uint32_t i = 0; i < w->s.p->n_operands; i++) w->lists |= w->s.p->operands[i].axis > 0;
    const bool in_tiles = !w->lists && w->s.floats[0] <= LIMIT;
    const uint32_t least = in_tiles ? vpps_max_u32(LEAST_WORDS, words) : vpps_max_u32(PART_WORDS, part);
    w->copy_words = VPPS_TILE_WORDS - vpps_min_u32(vpps_quads_up(least), VPPS_TILE_WORDS);
    for (uint32_t k = 0; k < w->s.n; k++) {
        vpps_place_copies(w, &w->s.list[k]);
        copies = vpps_max_u32(copies, w->copy_buffers * VPPS_COPY_ITEMS * w->copy_item_words);
    }
    const uint32_t limit = vpps_min_u32(LIMIT, VPPS_TILE_WORDS - copies);
    *room = (vpps_stage_room){.tile = LISTS_TILE};
    if (in_tiles) {
        const uint32_t whole = vpps_min_u32(most, limit / words) / PASS * PASS;
        const uint32_t some = vpps_min_u32(most, (wide ? limit : vpps_min_u32(WORDS, limit)) / words);
        w->chunk = room->tile = w->g->plan->parts && whole ? whole : vpps_max_u32(1, some);
        w->part_words = room->tile * part;
        room->shared_words = w->part_words + room->tile * w->s.floats[0];
    } else {
        w->chunk = part ? vpps_max_u32(1, vpps_min_u32(most, PART_WORDS / part)) : 1;
        room->shared_words = w->part_words = w->chunk * part;
        memcpy(room->scratch_words, w->s.floats, sizeof room->scratch_words);
    }
    w->copies_at = vpps_quads_up(room->shared_words);
    if (copies) room->shared_words = w->copies_at + copies;
    if (in_tiles || !w->lists || w->c->needs.recurrent_in) return;
    w->near_words = LIMIT - vpps_min_u32(LIMIT, room->shared_words);
    room->shared_words += w->near_words;
}

/* For each length R of vectors whose rows CTAs divide in this part of a cell, declares rR: which of the R rows the CTA computes. */
static void put_rows(const work *w) {
    for (uint32_t i = 0; i < w->s.p->n_dealt; i++) {
        const uint32_t rows = w->s.p->dealt[i];
        fprintf(w->out, "const vpps_rows r%u = vpps_rows_of(%u, VPPS_GROUP / %u, member / %u);\n(void)r%u;\n", rows,
                rows, vpps_stage_shares(w), vpps_stage_shares(w), rows);
    }
}

/* Declares offsets in the kernel's text: pass_record, where vertices keep values that only forward or backward uses;
 * c0, c1, ..: where they write gradients for inputs. All are vertex 0's, even in a task that begins at a later one. */
static void put_places(const work *w) {
    const uint32_t pass_record = w->c->kept_words[vpps_pass_record(w->c, w->s.stage)];
    bool contributes = false;
    if (w->c->stages[w->s.stage].uses_pass_record)
        fprintf(w->out, "const unsigned pass_record = t.at->pass_record - t.operands[1] * %uu;\n(void)pass_record;\n",
                pass_record);
    for (uint32_t j = 0; j < w->c->n_contributions; j++) {
        const vpps_program_step *by = w->s.made_by[w->c->contributions[j].value];
        if (!by) continue;
        if (!contributes) fprintf(w->out, "unsigned next = t.at->contributions;\n");
        contributes = true;
        fprintf(w->out, "const unsigned c%u = vpps_next_contribution<%u, %u>(next, ", j, vpps_operand_words(&by->to),
                vpps_stage_shares(w));
        if (by->axis) {
            fprintf(w->out, "ls%u[t.operands[1]], ls%u[t.operands[1] + t.operands[2]] - ls%u[t.operands[1]]);\n",
                    by->axis, by->axis, by->axis);
        } else {
            fprintf(w->out, "t.operands[1], t.operands[2]);\n");
        }
    }
}

/* Writes declarations for a tile (vertices processed together): numbers of its vertices and list members, and buffers of values (slots). */
static void put_tile(const work *w, const vpps_stage_room *room) {
    const vpps_compiled_cell *c = w->c;
    const uint32_t n_lists = w->lists ? c->n_lists : 0;
    for (uint32_t d = 1; d <= n_lists; d++)
        fprintf(w->out, "const unsigned f%u = ls%u[f0], n%u = ls%u[f0 + n0] - f%u;\n(void)n%u;\n", d, d, d, d, d, d);
    fprintf(w->out, "float *const region0 = ");
    for (uint32_t d = 0; d <= n_lists && w->near_words; d++) fprintf(w->out, "%uu * n%u + ", w->s.floats[d], d);
    if (w->near_words) fprintf(w->out, "0u <= %uu ? part + %uu : ", w->near_words, room->shared_words - w->near_words);
    if (room->scratch_words[0] || n_lists)
        fprintf(w->out, "vpps_scratch_of(a, blockIdx.x);\n");
    else
        fprintf(w->out, "part + %uu;\n", w->part_words);
    for (uint32_t d = 1; d <= n_lists; d++)
        fprintf(w->out, "float *const region%u = region%u + %uu * n%u;\n", d, d - 1, w->s.floats[d - 1], d - 1);
    for (uint32_t v = 0; v < c->n_values; v++)
        if (vpps_in_slot(w, v))
            fprintf(w->out, "float *const s%u = region%u + %uu * n%u;\n", v, vpps_stage_value(w, v)->axis, w->s.slot[v],
                    vpps_stage_value(w, v)->axis);
}

/* Writes the declaration of `share`: which vertices of the task the virtual processor (CTA) runs (vpps_share_of_stage). */
static void put_share(const work *w) {
    const uint32_t *cost = w->c->stages[w->s.stage].work;
    const char *const what = w->s.p->rows ? "(t.operands[2], 1u, 0u" : "(t.operands[2], VPPS_GROUP, member";
    const bool by_work = !w->s.p->rows && cost[0];
    fprintf(w->out, "const vpps_rows share = vpps_share_of%s%s", by_work ? "_work" : "", what);
    if (by_work) fprintf(w->out, ", [&](unsigned v) { return %uull * v", cost[0]);
    for (uint32_t d = 1; d <= w->c->n_lists && by_work; d++)
        fprintf(w->out, " + %uull * (ls%u[t.operands[1] + v] - ls%u[t.operands[1]])", cost[d], d, d);
    fputs(by_work ? "; });\n" : ");\n", w->out);
}

/* Writes the function of a stage (part of a cell). loaded: scratch memory, a byte per value. false: out of memory. */
static bool put_stage(work *w, uint32_t number, const vpps_stage_room *room, uint8_t *loaded) {
    bool ok = true;
    fputs("\n/* cell ", w->out);
    vpps_write_comment(w->out, w->c->name);
    fprintf(w->out, ", stage %u */\nVPPS_PART void vpps_stage_%u(VPPS_STAGE_PARAMETERS) {\nVPPS_READ_PLACE;\n",
            w->s.stage, number);
    vpps_generate_view(w->out, w->c, "t.operands[0]");
    fprintf(w->out, "const unsigned member = blockIdx.x %% VPPS_GROUP;\nfloat *const part = shared + ");
    fprintf(w->out, "VPPS_SHARED_WEIGHTS, *const copies = part + %u;\n", w->copies_at);
    put_rows(w);
    put_places(w);
    put_share(w);
    fputs("vpps_await(a, t);\n", w->out);
    fprintf(w->out,
            "vpps_tiles<%u>(t.operands[1] + share.first, t.operands[1] + share.end, [&](unsigned f0, unsigned n0) {\n",
            room->tile);
    put_tile(w, room);
    for (w->segment = 0; w->segment < w->s.n && ok; w->segment++) {
        const vpps_segment *g = &w->s.list[w->segment];
        if (w->segment && g->barriers != g[-1].barriers) fprintf(w->out, "__syncthreads();\n");
        ok = put_segment(w, g, loaded);
    }
    fprintf(w->out, "});\n(void)w, (void)part, (void)copies, (void)member;\n}\n");
    return ok;
}

vpps_status vpps_generate_stage(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t stage, uint32_t number,
                                vpps_stage_room *room) {
    work w = {.g = g, .c = c, .out = g->out};
    uint8_t *loaded = calloc(c->n_values + 1u, 1);
    vpps_status status = vpps_segments_make(&w.s, c, stage);
    w.part_at = calloc(c->n_values + 1u, sizeof *w.part_at);
    w.item_words = calloc(w.s.n + 1u, sizeof *w.item_words);
    w.row_words = calloc(w.s.n + 1u, sizeof *w.row_words);
    w.copy_at = calloc(c->n_values + 1u, sizeof *w.copy_at);
    bool ok =
        status == VPPS_OK && loaded && w.part_at && w.item_words && w.row_words && w.copy_at && vpps_place_products(&w);
    if (ok) {
        choose_room(&w, room);
        w.tile = room->tile;
        ok = put_stage(&w, number, room, loaded);
    }
    if (!ok && status == VPPS_OK) status = vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    vpps_segments_free(&w.s);
    VPPS_FREE(loaded, w.part_at, w.item_words, w.row_words, w.copy_at);
    return status;
}
