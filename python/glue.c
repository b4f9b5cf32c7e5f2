/* glue.c - the C functions of the Python package. */
#include <vpps_data.h>
#include <vpps_export.h>

#include "glue.h"
#include "io/output.h"

#include <stdlib.h>

const char *glue_version(void) { return VPPS_VERSION; }

/* ---------------------------------------------------------------- lifetimes */

glue_model *glue_model_create(uint64_t seed, vpps_status *status) {
    glue_model *m = calloc(1, sizeof *m);
    *status = m ? vpps_model_create(&m->model, seed) : VPPS_MEMORY;
    if (*status != VPPS_OK) {
        free(m);
        return NULL;
    }
    m->users = 1;
    return m;
}

static glue_model *keep(glue_model *m) {
    __atomic_fetch_add(&m->users, 1, __ATOMIC_SEQ_CST);
    return m;
}

void glue_model_release(void *p) {
    glue_model *m = p;
    if (__atomic_fetch_sub(&m->users, 1, __ATOMIC_SEQ_CST) > 1) return;
    vpps_model_destroy(m->model);
    free(m);
}

glue_graph *glue_graph_create(glue_model *m, vpps_status *status) {
    glue_graph *g = calloc(1, sizeof *g);
    *status = g ? vpps_graph_create(&g->graph, m->model) : VPPS_MEMORY;
    if (*status != VPPS_OK) {
        free(g);
        return NULL;
    }
    g->model = keep(m);
    return g;
}

void glue_graph_destroy(void *p) {
    glue_graph *g = p;
    vpps_graph_destroy(g->graph);
    glue_model_release(g->model);
    free(g);
}

/* Wraps a vpps_handle that a call returned with *status for Python; destroys the handle if out of memory. */
static glue_handle *wrap(vpps_handle *handle, glue_model *m, vpps_status *status) {
    glue_handle *h = *status == VPPS_OK ? calloc(1, sizeof *h) : NULL;
    if (h) {
        h->handle = handle;
        h->model = keep(m);
        return h;
    }
    if (*status == VPPS_OK) *status = VPPS_MEMORY;
    vpps_handle_destroy(handle);
    return NULL;
}

void glue_handle_create(glue_model *m, const vpps_options *options, glue_handle **out, vpps_status *status) {
    vpps_handle *handle;
    *status = vpps_handle_create(&handle, m->model, options);
    *out = wrap(handle, m, status);
}

void glue_inference_create(glue_handle *trainer, const vpps_options *options, glue_handle **out, vpps_status *status) {
    vpps_handle *handle;
    *status = vpps_handle_create_inference(&handle, trainer->handle, options);
    *out = wrap(handle, trainer->model, status);
}

void glue_handle_destroy(void *p) {
    glue_handle *h = p;
    (void)vpps_step_drop(h->handle);       /* error ignored: there may be no open step */
    (void)vpps_read_parameters(h->handle); /* error ignored: inference, a failed handle, or a child of fork() */
    vpps_handle_destroy(h->handle);
    glue_model_release(h->model);
    free(h);
}

/* ---------------------------------------------------------------- graphs */

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

/* ---------------------------------------------------------------- steps */

void glue_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, glue_answer *out) {
    out->status = vpps_fb(h, g, loss, &out->stale_loss);
}

void glue_update(vpps_handle *h, glue_answer *out) { out->status = vpps_update(h); }

void glue_free(void *p) { free(p); }
