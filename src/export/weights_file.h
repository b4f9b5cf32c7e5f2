/* weights_file.h - checks, by size and FNV-1a hash, that `weights` has the bytes of this C file's weights file. */
VPPS_UNUSED static int fits(const void *weights, size_t bytes) {
    const unsigned char *at = weights;
    uint32_t hash = 2166136261u;
    if (bytes != WEIGHTS_BYTES) return 0;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ at[i]) * 16777619u;
    return hash == WEIGHTS_HASH;
}
