/* emit.c - see emit.h. */
#include "codegen/emit.h"

#include "codegen/emit_ops.h"
#include "codegen/tables.h"
#include "graph/graph.h"

#include <stdio.h>

/* The embedded files, in the order in which the kernel's text has them; see templates.S. */
#define TEMPLATES_BEFORE_OPS(X) X(failure) X(arguments) X(header) X(math) X(functions) X(steps)
#define TEMPLATES_AFTER_OPS(X)                                                                                         \
    X(device) X(common) X(ops_traits) X(ops_ew) X(ops_list) X(whole) X(ops_whole) X(ops) X(products) X(update) X(kernel)
#define X(name) extern const char vpps_template_##name[];
TEMPLATES_BEFORE_OPS(X)
TEMPLATES_AFTER_OPS(X)
#undef X

static void emit_constants(FILE *f, const vpps_partition *p, vpps_optimizer_kind optimizer) {
    const vpps_tables_layout t = vpps_tables_lay_out(p);
    bool elsewhere = false;
    for (uint32_t s = 0; s < p->rows.n_slots; s++) elsewhere |= p->rows.slots[s].level != VPPS_LEVEL_REGISTERS;
    const struct {
        const char *name;
        uint64_t value;
    } constants[] = {
        {"VPPS_VPS", p->n_vps},
        {"VPPS_THREADS", p->choice.threads},
        {"VPPS_CTAS_PER_SM", p->choice.ctas_per_sm},
        {"VPPS_RPW", p->choice.rpw},
        {"VPPS_ROW_BLOCK", p->choice.rpw},
        {"VPPS_VECTORS", p->choice.vectors},
        {"VPPS_HOST_PRODUCTS", p->choice.deferred},
        {"VPPS_MATRICES", p->n_matrices},
        {"VPPS_LISTS", VPPS_MANY_PAIRS},
        {"VPPS_CHUNK_STEPS", VPPS_CHUNK_STEPS},
        {"VPPS_SLOT_COUNT", p->rows.n_slots},
        {"VPPS_COLUMN_SLOT_COUNT", p->columns.n_slots},
        {"VPPS_SLOTS_ELSEWHERE", elsewhere},
        {"VPPS_WEIGHT_WORDS", p->rows.registers},
        {"VPPS_GRADIENT_WORDS", p->choice.deferred ? 0 : p->rows.registers},
        {"VPPS_COLUMN_WORDS", p->columns.registers},
        {"VPPS_VP_WORDS", p->vp_words},
        {"VPPS_TABLE_PARAMS", t.params},
        {"VPPS_TABLE_MATRICES", t.matrices},
        {"VPPS_TABLE_PIECES", t.pieces},
        {"VPPS_TABLE_COLUMN_PIECES", t.column_pieces},
        {"VPPS_TABLE_COPY", t.copy},
        {"VPPS_LEVEL_REGISTERS", VPPS_LEVEL_REGISTERS},
        {"VPPS_LEVEL_SHARED", VPPS_LEVEL_SHARED},
    };
    for (size_t i = 0; i < VPPS_COUNT(constants); i++) {
        fprintf(f, "#define %s %llu\n", constants[i].name, (unsigned long long)constants[i].value);
    }
    vpps_emit_step(f, optimizer, "vpps_script_header");
}

/* Slots in registers, whole: for filling them. */
static void emit_register_slots(FILE *f, const char *name, const vpps_placing *placing) {
    fprintf(f, "#define %s(X)", name);
    for (uint32_t s = 0; placing && s < placing->n_slots; s++) {
        const vpps_slot *slot = &placing->slots[s];
        if (slot->level == VPPS_LEVEL_REGISTERS)
            fprintf(f, " X(%u, %u, %u, %u)", s, slot->at, slot->steps, slot->master);
    }
    fprintf(f, "\n");
}

/* Chunk c of every slot in registers that is so long: X(slot, first register, steps, registers from row to row). */
static void emit_chunk(FILE *f, const char *name, uint32_t c, const vpps_placing *placing) {
    fprintf(f, "#define %s_%u(X)", name, c);
    for (uint32_t s = 0; placing && s < placing->n_slots; s++) {
        const vpps_slot *slot = &placing->slots[s];
        uint32_t first = c * VPPS_CHUNK_STEPS;
        if (slot->level != VPPS_LEVEL_REGISTERS || slot->steps <= first) continue;
        fprintf(f, " X(%u, %u, %u, %u)", s, slot->at + first, vpps_min_u32(VPPS_CHUNK_STEPS, slot->steps - first),
                slot->steps);
    }
    fprintf(f, "\n");
}

static uint32_t most_chunks(const vpps_placing *placing) {
    uint32_t most = 0;
    for (uint32_t s = 0; s < placing->n_slots; s++) {
        if (placing->slots[s].level == VPPS_LEVEL_REGISTERS) most = vpps_max_u32(most, placing->slots[s].steps);
    }
    return (most + VPPS_CHUNK_STEPS - 1) / VPPS_CHUNK_STEPS;
}

static void emit_slots(FILE *f, const vpps_partition *p) {
    const uint32_t chunks = vpps_max_u32(most_chunks(&p->rows), most_chunks(&p->columns));
    fprintf(f, "\n/* Slots: number, first register, steps, place in the master copy; then by chunks of %d steps. */\n",
            VPPS_CHUNK_STEPS);
    emit_register_slots(f, "VPPS_REGISTER_SLOTS", &p->rows);
    emit_register_slots(f, "VPPS_COLUMN_SLOTS", &p->columns);
    emit_register_slots(f, "VPPS_GRADIENT_SLOTS", p->choice.deferred ? NULL : &p->rows);
    fprintf(f, "#define VPPS_CHUNKS(X)");
    for (uint32_t c = 0; c < chunks; c++) fprintf(f, " X(%u)", c);
    fprintf(f, "\n");
    for (uint32_t c = 0; c < chunks; c++) {
        emit_chunk(f, "VPPS_SLOTS", c, &p->rows);
        emit_chunk(f, "VPPS_COLUMN_SLOTS", c, &p->columns);
        emit_chunk(f, "VPPS_GRADIENT_SLOTS", c, p->choice.deferred ? NULL : &p->rows);
    }
    fprintf(f, "struct vpps_slot_entry { unsigned steps, level, at, master; };\n"
               "__constant__ const vpps_slot_entry vpps_slot_table[] = {");
    for (uint32_t s = 0; s < p->rows.n_slots; s++) {
        const vpps_slot *slot = &p->rows.slots[s];
        fprintf(f, "{%u, %u, %u, %u}, ", slot->steps, (uint32_t)slot->level, slot->at, slot->master);
    }
    fprintf(f, "{0, 0, 0, 0}};\n\n");
}

vpps_status vpps_emit_kernel(const vpps_partition *p, vpps_optimizer_kind optimizer, char **source) {
    char *text = NULL, description[256];
    size_t bytes = 0;
    *source = NULL;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return vpps_fail(VPPS_MEMORY, "emit: out of memory");
    vpps_emit_description(p, description, sizeof description);
    fprintf(f, "/* VPPS %s: %s */\n", vpps_version(), description);
    emit_constants(f, p, optimizer);
    emit_slots(f, p);
#define X(name) fputs(vpps_template_##name, f);
    TEMPLATES_BEFORE_OPS(X)
    vpps_status status = vpps_emit_ops(f);
    TEMPLATES_AFTER_OPS(X)
#undef X
    bool failed = ferror(f);
    if (fclose(f) || failed) status = vpps_fail(VPPS_MEMORY, "emit: out of memory");
    if (status != VPPS_OK) {
        free(text);
        return status;
    }
    *source = text;
    return VPPS_OK;
}

void vpps_emit_description(const vpps_partition *p, char *text, size_t bytes) {
    const vpps_partition_choice *c = &p->choice;
    uint64_t weights = 0;
    for (uint32_t m = 0; m < p->n_matrices; m++) weights += (uint64_t)p->matrices[m].rows * p->matrices[m].cols;
    snprintf(
        text, bytes,
        "%u matrices, %llu weights; %u VPs of %u threads, %u an SM, rpw %u, %u vectors; %s, gradients %s; %u of %u "
        "registers",
        p->n_matrices, (unsigned long long)weights, p->n_vps, c->threads, c->ctas_per_sm, c->rpw, c->vectors,
        c->transposed ? "transposed copy" : "partial sums", c->deferred ? "deferred" : "in registers", p->cached,
        p->budget);
}

uint32_t vpps_emit_shared_bytes(const vpps_partition *p) { return p->rows.shared_words * 4; }
