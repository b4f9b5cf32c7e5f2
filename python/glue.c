/* glue.c - the C functions of the Python package. */
#include <vpps_data.h>
#include <vpps_export.h>

#include "glue.h"
#include "io/output.h"

#include <stdlib.h>

const char *glue_version(void) { return VPPS_VERSION; }

vpps_status glue_model_create(uint64_t seed, glue_model **out) {
    glue_model made = {.users = 1};
    const vpps_status status = vpps_model_create(&made.model, seed);
    *out = status == VPPS_OK ? malloc(sizeof **out) : NULL;
    if (*out) {
        **out = made;
        return VPPS_OK;
    }
    vpps_model_destroy(made.model);
    return status == VPPS_OK ? VPPS_MEMORY : status;
}

void glue_model_release(void *p) {
    glue_model *m = p;
    if (__atomic_fetch_sub(&m->users, 1, __ATOMIC_SEQ_CST) > 1) return;
    vpps_model_destroy(m->model);
    free(m);
}

vpps_status glue_user_create(glue_model *m, const vpps_options *options, glue_user *trainer, glue_user **out) {
    glue_user made = {.model = m};
    const vpps_status status = trainer   ? vpps_handle_create_inference(&made.handle, trainer->handle, options)
                               : options ? vpps_handle_create(&made.handle, m->model, options)
                                         : vpps_graph_create(&made.graph, m->model);
    *out = status == VPPS_OK ? malloc(sizeof **out) : NULL;
    if (*out) {
        **out = made;
        __atomic_fetch_add(&m->users, 1, __ATOMIC_SEQ_CST);
        return VPPS_OK;
    }
    vpps_handle_destroy(made.handle);
    vpps_graph_destroy(made.graph);
    return status == VPPS_OK ? VPPS_MEMORY : status;
}

void glue_user_destroy(void *p) {
    glue_user *u = p;
    if (u->handle) {
        (void)vpps_step_drop(u->handle);       /* fails if no step is open */
        (void)vpps_read_parameters(u->handle); /* if this fails, as for inference, the model keeps its values */
    }
    vpps_handle_destroy(u->handle);
    vpps_graph_destroy(u->graph);
    glue_model_release(u->model);
    free(u);
}

uint64_t glue_shape(const vpps_graph *g, vpps_node x) {
    uint32_t rows, cols;
    return vpps_node_shape(g, x, &rows, &cols) == VPPS_OK ? (uint64_t)rows << 32 | cols : 0;
}

bool glue_shapes(const vpps_graph *g, uint32_t n, const vpps_node *nodes, uint64_t *out) {
    for (uint32_t i = 0; i < n; i++) {
        out[i] = glue_shape(g, nodes[i]);
        if (!out[i]) return false;
    }
    return true;
}

vpps_vertex glue_sources(vpps_graph *g, uint32_t n, uint32_t n_nodes, const vpps_node *nodes) {
    vpps_vertex last = VPPS_NO_VERTEX;
    for (uint32_t i = 0; i < n; i++) {
        last = vpps_source(g, n_nodes, nodes + (size_t)i * n_nodes);
        if (last == VPPS_NO_VERTEX) return last;
    }
    return last - (n - 1);
}

void glue_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, glue_answer *out) {
    out->status = vpps_fb(h, g, loss, &out->stale_loss);
}

void glue_update(vpps_handle *h, glue_answer *out) { out->status = vpps_update(h); }
