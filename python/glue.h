/* What the Python package needs in C beside the public headers; cffi reads this file, too, so it has no directives.
 *
 * Python deletes objects in any order. A model therefore counts who uses it: its graphs, its handle, and arrays that show its
 * parameters. The last one frees it. */

typedef struct glue_model glue_model;

/* Both return NULL on failure, with a status. */
glue_model *glue_model_create(uint64_t seed, vpps_status *status);
vpps_model *glue_model_get(glue_model *m);
void glue_model_release(void *m);

typedef struct glue_graph glue_graph;
glue_graph *glue_graph_create(glue_model *m, vpps_status *status);
vpps_graph *glue_graph_get(glue_graph *g);
void glue_graph_destroy(void *g);

typedef struct glue_handle glue_handle;
/* *out is NULL on failure. It is there, too, when an exception, as that of Ctrl-C, takes the place of the call's return. */
void glue_handle_create(glue_model *m, const vpps_options *options, glue_handle **out, vpps_status *status);
void glue_inference_create(glue_handle *trainer, const vpps_options *options, glue_handle **out, vpps_status *status);
vpps_handle *glue_handle_get(glue_handle *h);
/* Copies a trainer's parameters to the model first: who drops a trainer goes on with what it has trained. */
void glue_handle_destroy(void *h);

/* The values of a parameter, which keep the model: an address for an array, and what releases it. */
typedef struct glue_values glue_values;
glue_values *glue_values_of(glue_model *m, vpps_param param);
float *glue_values_get(glue_values *v);
void glue_values_release(void *v);

/* rows << 32 | cols of a node; 0: there is no such node. */
uint64_t glue_shape(const vpps_graph *g, vpps_node x);

/* One vertex. The same as vpps_apply, without a struct for Python to fill. */
vpps_vertex glue_apply(vpps_graph *g, vpps_cell cell, uint32_t n_children, const vpps_vertex *children,
                       uint32_t n_pulls, const vpps_node *pulls, uint32_t n_indices, const uint32_t *indices);

/* A new reference to a Python function apply(epoch, cell, children, pulls, indices) that does the same with vertices, nodes and numbers in tuples
 * or lists: the vertex, or None where something is unusual; glue_apply then tells what. 0 with an exception. */
uintptr_t glue_python_apply(void);

/* vpps_source n times: vertex i scatters nodes[i * n_nodes] and the next ones. The first vertex; VPPS_NO_VERTEX on failure. */
vpps_vertex glue_sources(vpps_graph *g, uint32_t n, uint32_t n_nodes, const vpps_node *nodes);

/* vpps_fb and vpps_update, whose answer is still there when an exception, as that of Ctrl-C, takes the place of their return. */
typedef struct glue_answer {
    vpps_status status;
    float stale_loss;
} glue_answer;
void glue_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, glue_answer *out);
void glue_update(vpps_handle *h, glue_answer *out);

/* What these calls write to a file, as text that glue_free frees; NULL on failure. */
char *glue_disassemble(vpps_handle *h, vpps_graph *g, vpps_node loss, size_t *n, vpps_status *status);
char *glue_trace(vpps_handle *h, size_t *n, vpps_status *status);
char *glue_treebank_text(const vpps_treebank *tb, uint32_t i, size_t *n, vpps_status *status);
/* The text of vpps_export_c; in texts[1] and [2] what its header and its file of weights get, where `header`, the header's name, is not NULL
 * and `weights` is true. n: bytes of each. */
bool glue_export_c(const vpps_model *m, const char *prefix, const char *header, bool weights, uint32_t precision,
                   bool losses, char *texts[3], size_t n[3], vpps_status *status);
void glue_free(void *p);

/* All of a treebank's nodes, tree after tree, into arrays of as many: the children's numbers count from the first node of all, -1 is
 * none; `first` has one number more than there are trees. */
uint64_t glue_treebank_nodes(const vpps_treebank *tb);
void glue_treebank_arrays(const vpps_treebank *tb, int64_t *first, int32_t *label, int64_t *left, int64_t *right,
                          int64_t *word);

const char *glue_version(void); /* of the header that this was compiled with */

/* The shape of each node, as glue_shape tells it; false: one is no node. */
bool glue_shapes(const vpps_graph *g, uint32_t n, const vpps_node *nodes, uint64_t *out);
