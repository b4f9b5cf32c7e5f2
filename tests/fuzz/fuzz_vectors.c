/* fuzz_vectors.c - reads any bytes as a file of vectors, compressed or not: what is read is finite and counted, and goes only to the vocabulary's
 * words; a refusal comes with a message. */
#include "fuzz.h"
#include "vpps_data.h"

#include <math.h>

static vpps_vocab *make_words(void) {
    static const char *const words[] = {"the", "cat", "<unk>", "h\xc3\xa4user", "unseen", "a"};
    vpps_vocab *v;
    uint32_t id;
    require(vpps_vocab_create(&v) == VPPS_OK);
    for (size_t i = 0; i < VPPS_COUNT(words); i++)
        require(vpps_vocab_add(v, words[i], strlen(words[i]), &id) == VPPS_OK);
    return v;
}

static void read_vectors(const char *path, const vpps_vocab *words, uint32_t size) {
    const uint32_t n_words = vpps_vocab_size(words);
    float *values = malloc((size_t)n_words * size * sizeof *values);
    vpps_vectors_found found = {0};
    require(values != NULL);
    for (size_t i = 0; i < (size_t)n_words * size; i++) values[i] = -7;
    if (vpps_vectors_read(path, words, size, values, &found) == VPPS_OK) {
        uint32_t set = 0;
        for (uint32_t w = 0; w < n_words; w++) {
            bool changed = false;
            for (uint32_t k = 0; k < size; k++) {
                const float x = values[(size_t)w * size + k];
                require(isfinite(x));
                changed |= x < -7 || x > -7;
            }
            set += changed;
        }
        require(found.words == n_words && found.found <= n_words);
        require(set <= found.found);
    } else {
        require(strncmp(vpps_error_message(), path, strlen(path)) == 0);
    }
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    vpps_vectors_info info = {0};
    char path[32];
    const int fd = fuzz_file(data, n, path);
    if (vpps_vectors_describe(path, &info) == VPPS_OK) {
        require(info.size >= 1 && info.size <= 65536);
        vpps_vocab *words = make_words();
        read_vectors(path, words, info.size);
        vpps_vocab_destroy(words);
    } else {
        require(strncmp(vpps_error_message(), path, strlen(path)) == 0);
    }
    close(fd);
    return 0;
}
