/* shapes.c - see shapes.h. */
#include "shapes.h"

#include <stdio.h>

void shapes_add(shapes *s, vpps_param_kind kind, uint32_t count, uint32_t rows, uint32_t cols) {
    const size_t i = s->model.n_params++;
    ck_assert_uint_lt(i, SHAPES_MAX_PARAMS);
    snprintf(s->names[i], sizeof s->names[i], "p%zu", i);
    s->params[i] = (vpps_parameter_data){.name = s->names[i], .kind = kind, .count = count, .rows = rows, .cols = cols};
    s->model.params = s->params;
}

void shapes_tree_lstm(shapes *s, uint32_t hidden, uint32_t embed, uint32_t classes) {
    *s = (shapes){0};
    shapes_add(s, VPPS_LOOKUP, 1000, embed, 1);
    for (int gate = 0; gate < 3; gate++) shapes_add(s, VPPS_MATRIX, 1, hidden, embed);
    for (int gate = 0; gate < 10; gate++) shapes_add(s, VPPS_MATRIX, 1, hidden, hidden);
    shapes_add(s, VPPS_MATRIX, 1, classes, hidden);
    shapes_add(s, VPPS_VECTOR, 1, hidden, 1);
}

static uint32_t draw_size(uint64_t *random) {
    static const uint32_t sizes[] = {1, 2, 31, 32, 33, 64, 100, 257, 512};
    const uint32_t k = vpps_random_below(random, VPPS_COUNT(sizes) + 2);
    return k < VPPS_COUNT(sizes) ? sizes[k] : 1 + vpps_random_below(random, 600);
}

void shapes_draw(shapes *s, uint64_t *random) {
    *s = (shapes){0};
    const uint32_t n = 1 + vpps_random_below(random, 10), common = draw_size(random);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rows = vpps_random_below(random, 2) ? common : draw_size(random);
        shapes_add(s, VPPS_MATRIX, 1, rows, draw_size(random));
        if (vpps_random_below(random, 3) == 0) shapes_add(s, VPPS_VECTOR, 1, rows, 1);
        if (vpps_random_below(random, 8) == 0) shapes_add(s, VPPS_LOOKUP, 9, rows, 1);
    }
}

vpps_machine shapes_machine(uint32_t sms, uint32_t kind) {
    static const uint32_t kib[][2] = {{228, 227}, {164, 163}, {100, 99}, {64, 64}};
    vpps_machine m = {.name = "test", .arch = 90, .sms = sms, .sm_registers = 65536};
    m.sm_shared_bytes = kib[kind % VPPS_COUNT(kib)][0] << 10;
    m.cta_shared_bytes = kib[kind % VPPS_COUNT(kib)][1] << 10;
    return m;
}
