/* C functions that the Python package needs besides the public headers. cffi parses this file, too; it cannot parse #include and #if.
 *
 * Python deletes objects in any order. Therefore a model counts its users: the Python object, graphs and handles. The last one frees it. */

typedef struct glue_model {
    vpps_model *model;
    uint32_t users; /* atomic */
} glue_model;
void glue_model_release(void *m);

/* A graph or a handle of a model: one of the members `graph` and `handle` is NULL. */
typedef struct glue_user {
    vpps_graph *graph;
    vpps_handle *handle;
    glue_model *model;
} glue_user;
/* Destroys a graph or a handle. A handle's parameters are copied to the model before, so that trained values stay with the model. */
void glue_user_destroy(void *user);

/* Both functions set *out to the new object, or to NULL on failure: an exception such as Ctrl-C's may replace the status in Python. */
vpps_status glue_model_create(uint64_t seed, glue_model **out);
/* Makes a graph (`options` NULL), a handle that trains (`trainer` NULL), or a handle for inference with the trainer's parameters. */
vpps_status glue_user_create(glue_model *m, const vpps_options *options, glue_user *trainer, glue_user **out);

/* Returns a node's shape as rows << 32 | cols, or 0 if there is no such node. */
uint64_t glue_shape(const vpps_graph *g, vpps_node x);
/* Sets out[i] to the shape of nodes[i] as rows << 32 | cols. Returns false if one of them does not exist. */
bool glue_shapes(const vpps_graph *g, uint32_t n, const vpps_node *nodes, uint64_t *out);

/* Returns a new reference to a Python function, or 0 after an exception: apply(epoch, cell, children, pulls, indices) adds a vertex
 * to the graph of a vpps.node.Epoch: `cell` applied to child vertices, nodes (pulls) and integers; returns it, or None for unusual arguments. */
uintptr_t glue_python_apply(void);

/* Makes n vertices by vpps_source. Vertex i has n_nodes outputs, the nodes from nodes[i * n_nodes] on. Returns the first, or VPPS_NO_VERTEX. */
vpps_vertex glue_sources(vpps_graph *g, uint32_t n, uint32_t n_nodes, const vpps_node *nodes);

/* The results of vpps_fb or vpps_update, stored in memory because an exception such as Ctrl-C's may replace the return value in Python. */
typedef struct glue_answer {
    vpps_status status;
    float stale_loss;
} glue_answer;
void glue_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, glue_answer *out);
void glue_update(vpps_handle *h, glue_answer *out);

/* Functions of the C library. By open_memstream Python gets a FILE whose content is a string in memory. */
FILE *open_memstream(char **text, size_t *n);
int fclose(FILE *file);
void free(void *p);

/* Writes a whole file atomically (io/output.h). */
vpps_status vpps_output_write_file(const char *path, const void *bytes, size_t n_bytes);

const char *glue_version(void); /* VPPS_VERSION of the vpps.h that glue.c was compiled with */

/* DLPack's DLTensor. device_type 2 is CUDA; code 2 and bits 32 are float32; strides count elements, NULL: row after row. */
typedef struct glue_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} glue_tensor;
/* Returns the tensor in the capsule that is the Python object at this address, valid as long as the capsule. NULL: it has none. */
const glue_tensor *glue_dlpack(uintptr_t capsule);
/* Returns a new reference to a DLPack capsule with a tensor on a GPU. The tensor's dimensions are the first `ndim` of rows and cols; its
 * columns lie one after the other. The capsule owns `array` until somebody takes the tensor. 0: no memory; `array` is freed. */
uintptr_t glue_capsule(vpps_array *array, float *data, int32_t gpu, int32_t ndim, int64_t rows, int64_t cols);
