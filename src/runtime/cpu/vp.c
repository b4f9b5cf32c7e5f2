/* vp.c - a virtual processor: fetch, decode, execute. */
#include "runtime/cpu/cpu.h"

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define CPU_PAUSE() _mm_pause()
#else
#define CPU_PAUSE() ((void)0)
#endif

/* Spin briefly: a hand-over between two cores takes 0.1 us. Then yield, since on a busy machine the VP waited for may
 * want this very core. */
enum { SPINS = 2000 };

void vpps_relax(const vpps_cpu *cpu, uint32_t i) {
    if (cpu->oversubscribed || i > SPINS) {
        sched_yield();
    } else {
        CPU_PAUSE();
    }
}

static bool wait_for_barrier(vpps_vp *vp, uint32_t address, uint32_t barrier, uint32_t signals) {
    vpps_cpu *cpu = vp->cpu;
    if (barrier >= cpu->header.n_barriers) {
        vpps_vp_fail(vp, VPPS_SCRIPT, address, "barrier %u; the script has %u", barrier, cpu->header.n_barriers);
        return false;
    }
    atomic_uint *counter = &cpu->counters[barrier].value;
    uint64_t deadline = 0;
    for (uint32_t i = 0; atomic_load_explicit(counter, memory_order_acquire) < signals; i++) {
        vpps_relax(cpu, i);
        if (atomic_load_explicit(&cpu->failed, memory_order_relaxed)) return false;
        if (i % 1024 != 1023) continue;
        uint64_t now = vpps_now_ns();
        if (!deadline) deadline = now + cpu->watchdog_ns;
        if (now < deadline) continue;
        vpps_vp_fail(vp, VPPS_STALL, address, "waited %.1f s at barrier %u, which has %u of %u signals",
                     (double)cpu->watchdog_ns * 1e-9, barrier, atomic_load_explicit(counter, memory_order_relaxed),
                     signals);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- elementwise and whole-vector instructions */

static bool need_pointers(vpps_vp *vp, uint32_t address, uint32_t n) {
    if (n <= vp->pointers_capacity || vpps_grow(&vp->pointers, &vp->pointers_capacity, n, sizeof *vp->pointers))
        return true;
    vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for %u operands", n);
    return false;
}

/* Operands behind the destination, as the letters of isa.def say. */
static bool decode(vpps_vp *vp, const vpps_instruction_row *row, uint32_t address, const uint32_t *at,
                   vpps_operands *o) {
    const float *pool = vp->cpu->pool;
    uint32_t n_tensors = 0, n_scalars = 0;
    for (const char *type = row->operands; *type; type++) {
        switch (*type) {
        case 't': o->t[n_tensors++] = pool + *at++; break;
        case 's': o->s[n_scalars++] = pool[*at++]; break;
        case 'v': o->weights = pool + *at++; break;
        case 'i': o->indices = (uint32_t *)(void *)(vp->cpu->pool + *at++); break;
        case 'f': memcpy(&o->f, at++, sizeof o->f); break;
        case 'u': o->u = *at++; break;
        case 'e': o->e = *at++; break;
        default: /* * */
            o->n_list = *at++;
            if (!need_pointers(vp, address, o->n_list)) return false;
            for (uint32_t i = 0; i < o->n_list; i++) vp->pointers[i] = pool + *at++;
            o->list = vp->pointers;
        }
    }
    if (row->form == VPPS_FORM_MATMUL) {
        o->r = at[0];
        o->k = at[1];
        o->c = at[2];
    }
    return true;
}

/* All tensor operands `elems` further. */
static void advance(vpps_vp *vp, vpps_operands *o, uint32_t elems) {
    for (uint32_t i = 0; i < VPPS_COUNT(o->t); i++) o->t[i] = o->t[i] ? o->t[i] + elems : NULL;
    for (uint32_t i = 0; i < o->n_list; i++) vp->pointers[i] += elems;
    if (o->indices) o->indices += elems;
    o->e += elems;
}

static void compute(vpps_vp *vp, uint32_t address, const uint32_t *at) {
    vpps_cpu *cpu = vp->cpu;
    uint32_t word = *at++, opcode = vpps_word_opcode(word), length = vpps_word_length(word);
    uint32_t n_vectors = word & VPPS_WORD_SPLIT ? *at++ : 1;
    bool accumulate = word & VPPS_WORD_ACC;
    float *destination = cpu->pool + *at++;
    vpps_operands o = {.n_list = 0};
    o.key = (uint64_t)cpu->header.dropout_key[1] << 32 | cpu->header.dropout_key[0];
    if (!decode(vp, &vpps_instructions[opcode], address, at, &o)) return;
    vpps_kernel run = cpu->kernels->run[opcode];
    if (!(word & VPPS_WORD_SPLIT)) {
        run(length, accumulate, destination, &o);
        return;
    }
    vpps_rows rows = vpps_vp_rows(vp, length);
    if (rows.first == rows.end) return;
    if (rows.end - rows.first == length && (uint64_t)length * n_vectors <= UINT32_MAX) {
        run(length * n_vectors, accumulate, destination, &o); /* all rows: the vectors are one */
        return;
    }
    advance(vp, &o, rows.first);
    destination += rows.first;
    for (uint32_t j = 0; j < n_vectors; j++) {
        run(rows.end - rows.first, accumulate, destination, &o);
        destination += length;
        advance(vp, &o, length);
    }
}

/* Runs instructions from `at` to `end`; false when the batch has failed. Segments hold no control instructions. */
static bool run_range(vpps_vp *vp, const uint32_t *at, const uint32_t *end, bool in_segment) {
    vpps_cpu *cpu = vp->cpu;
    const uint32_t *script = cpu->script;
    while (at < end) {
        uint32_t address = (uint32_t)(at - script), opcode = vpps_word_opcode(*at);
        uint32_t words = vpps_instruction_words(at, end);
        if (VPPS_UNLIKELY(!words)) {
            vpps_vp_fail(vp, VPPS_SCRIPT, address, "opcode %u is unknown or cut short", opcode);
            return false;
        }
        vpps_form form = vpps_instructions[opcode].form;
        if (form == VPPS_FORM_SHARED) {
            vpps_vp_shared(vp, at);
        } else if (form != VPPS_FORM_CONTROL) {
            compute(vp, address, at);
        } else {
            switch (opcode) {
            case VPPS_I_LOAD: memcpy(cpu->pool + at[1], script + at[2], vpps_word_length(*at) * sizeof(float)); break;
            case VPPS_I_CALL:
                if (in_segment) {
                    vpps_vp_fail(vp, VPPS_SCRIPT, address, "a call inside a segment");
                    return false;
                }
                if (!run_range(vp, script + at[1], script + at[1] + vpps_word_length(*at), true)) return false;
                break;
            case VPPS_I_SIGNAL: atomic_fetch_add_explicit(&cpu->counters[at[1]].value, 1, memory_order_release); break;
            case VPPS_I_WAIT:
                if (!wait_for_barrier(vp, address, at[1], at[2])) return false;
                break;
            case VPPS_I_END: return true;
            default: break;
            }
        }
        at += words;
    }
    return !atomic_load_explicit(&cpu->failed, memory_order_relaxed);
}

void vpps_vp_run(vpps_vp *vp) {
    const uint32_t *starts = vpps_script_starts(vp->cpu->script);
    vp->norm = 0;
    run_range(vp, vp->cpu->script + starts[vp->index], vp->cpu->script + starts[vp->index + 1], false);
}
