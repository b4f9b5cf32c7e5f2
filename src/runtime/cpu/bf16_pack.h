/* bf16_pack.h - packs operands of products (kernels.h) into tiles of bf16 numbers. The including file (bf16.h, avx512_pack.c) first defines
 * PACK_INLINE, how functions are inlined, and three steps: take_along, take_across convert vectors to a tile's rows or columns; turn
 * transposes a tile. */
#pragma once

/* Packs an operand of a product into tiles of bf16 numbers, `parts` for each fp32 element. `across`: the vectors of *s
 * are columns, not rows. Callers pass constants for parts and across, so that compilers specialise the loops. */
PACK_INLINE void pack_tiles(const vpps_bf16_source *s, const uint32_t parts, const bool across, vpps_bf16_form form,
                            uint32_t depth_tiles, uint32_t *to) {
    const bool turned = across != (form == VPPS_BF16_PAIRS);
    for (uint32_t row = 0; row < s->rows; row += VPPS_BF16_ROWS) {
        uint32_t *tile = to + (size_t)(row / VPPS_BF16_ROWS) * depth_tiles * parts * VPPS_BF16_TILE;
        for (uint32_t at = 0; at < s->depth; at += VPPS_BF16_DEPTH, tile += parts * VPPS_BF16_TILE) {
            uint32_t aside[2][VPPS_BF16_TILE] __attribute__((aligned(64)));
            uint32_t *high = turned ? aside[0] : tile, *low = turned ? aside[1] : tile + VPPS_BF16_TILE;
            if (across)
                take_across(s, row, at, parts, high, low);
            else
                take_along(s, row, at, parts, high, low);
            for (uint32_t p = 0; turned && p < parts; p++) turn(aside[p], tile + (size_t)p * VPPS_BF16_TILE);
        }
    }
}

PACK_INLINE void pack_operand(const vpps_bf16_source *s, uint32_t parts, vpps_bf16_form form, uint32_t depth_tiles,
                              uint32_t *to) {
    if (parts == 1 && s->across)
        pack_tiles(s, 1, true, form, depth_tiles, to);
    else if (parts == 1)
        pack_tiles(s, 1, false, form, depth_tiles, to);
    else if (s->across)
        pack_tiles(s, 2, true, form, depth_tiles, to);
    else
        pack_tiles(s, 2, false, form, depth_tiles, to);
}
