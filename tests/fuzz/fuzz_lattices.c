/* fuzz_lattices.c - reads any bytes as lattices of ids: what is read keeps the header's promises and, written again, reads back the same; a refusal
 * leaves the lattices as they were. */
#include "fuzz.h"
#include "vpps_data.h"

static void check_lattice(const vpps_lattices *l, vpps_lattice lattice) {
    require(lattice.n_nodes >= 1 && lattice.first_arc[0] == 0 && lattice.first_arc[1] == 0);
    for (uint32_t i = 0; i < lattice.n_nodes; i++) {
        require(lattice.tags[i] < vpps_lattices_tags(l));
        require(i == 0 || lattice.first_arc[i + 1] > lattice.first_arc[i]);
        for (uint32_t a = lattice.first_arc[i]; a < lattice.first_arc[i + 1]; a++) {
            const vpps_lattice_arc *arc = &lattice.arcs[a];
            require(arc->from < i && arc->is_character == (a == lattice.first_arc[i]));
            require(arc->is_character == (arc->from == i - 1));
            require(arc->id < (arc->is_character ? vpps_lattices_characters(l) : vpps_lattices_words(l)));
        }
    }
}

/* Writes the lattices from `first` on, in the readers' format. */
static char *write_lattices(const vpps_lattices *l, uint32_t first, size_t *n) {
    char *text = NULL;
    FILE *file = open_memstream(&text, n);
    require(file != NULL);
    fprintf(file, "%u\n", vpps_lattices_size(l) - first);
    for (uint32_t i = first; i < vpps_lattices_size(l); i++) {
        const vpps_lattice lattice = vpps_lattices_get(l, i);
        fprintf(file, "%u\n", lattice.n_nodes);
        for (uint32_t k = 0; k < lattice.n_nodes; k++) fprintf(file, "%u ", lattice.tags[k]);
        for (uint32_t k = 0; k < lattice.n_nodes; k++) {
            fprintf(file, "\n%u", lattice.first_arc[k + 1] - lattice.first_arc[k]);
            for (uint32_t a = lattice.first_arc[k]; a < lattice.first_arc[k + 1]; a++)
                fprintf(file, " %u %u", lattice.arcs[a].from, lattice.arcs[a].id);
        }
        fputc('\n', file);
    }
    require(fclose(file) == 0);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char first[] = "1 3 0 1 2 0 1 0 4 2 1 5 0 6";
    size_t n_text, n_again;
    vpps_lattices *l, *again;
    require(vpps_lattices_create(&l) == VPPS_OK);
    require(vpps_lattices_create(&again) == VPPS_OK);
    require(vpps_lattices_read_text(l, "first", first, sizeof first - 1) == VPPS_OK);
    if (vpps_lattices_read_text(l, "fuzz", (const char *)data, n) == VPPS_OK) {
        for (uint32_t i = 0; i < vpps_lattices_size(l); i++) check_lattice(l, vpps_lattices_get(l, i));
        char *text = write_lattices(l, 1, &n_text);
        require(vpps_lattices_read_text(again, "again", text, n_text) == VPPS_OK);
        char *text_again = write_lattices(again, 0, &n_again);
        require(n_text == n_again && memcmp(text, text_again, n_text) == 0);
        free(text);
        free(text_again);
    } else {
        require(vpps_lattices_size(l) == 1 && vpps_lattices_tags(l) == 3);
        require(vpps_lattices_characters(l) == 6 && vpps_lattices_words(l) == 7);
        require(strncmp(vpps_error_message(), "fuzz:", 5) == 0);
        check_lattice(l, vpps_lattices_get(l, 0));
    }
    vpps_lattices_destroy(l);
    vpps_lattices_destroy(again);
    return 0;
}
