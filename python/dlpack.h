/* dlpack.h - exchanges tensors in GPU memory with other libraries as Python capsules, by DLPack 0.8 (dlpack.h of dmlc/dlpack). */

typedef struct DLManagedTensor DLManagedTensor;
struct DLManagedTensor {
    glue_tensor tensor;
    void *context;
    void (*deleter)(DLManagedTensor *self);
};

static const char dlpack_name[] = "dltensor"; /* a capsule's name until another library takes its tensor */

/* A tensor for another library: DLPack's struct, the sizes that the struct points to, and the array that owns the tensor's memory. */
typedef struct dlpack_own {
    DLManagedTensor managed;
    int64_t sizes[4]; /* shape, then strides */
    vpps_array *array;
} dlpack_own;

const glue_tensor *glue_dlpack(uintptr_t capsule) {
    PyObject *o = (PyObject *)capsule;
    return PyCapsule_IsValid(o, dlpack_name) ? &((DLManagedTensor *)PyCapsule_GetPointer(o, dlpack_name))->tensor
                                             : NULL;
}

static void dlpack_delete(DLManagedTensor *self) {
    vpps_array_destroy(((dlpack_own *)(void *)self)->array);
    free(self);
}

static void dlpack_end(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, dlpack_name)) dlpack_delete(PyCapsule_GetPointer(capsule, dlpack_name));
}

uintptr_t glue_capsule(vpps_array *array, float *data, int32_t gpu, int32_t ndim, int64_t rows, int64_t cols) {
    dlpack_own *own = calloc(1, sizeof *own);
    if (!own) return vpps_array_destroy(array), 0;
    *own = (dlpack_own){.sizes = {rows, cols, 1, rows}, .array = array, .managed.deleter = dlpack_delete};
    own->managed.tensor =
        (glue_tensor){data, 2, gpu, ndim, 2, 32, 1, own->sizes, own->sizes + 2, 0}; /* CUDA, float32 */
    PyObject *capsule = PyCapsule_New(&own->managed, dlpack_name, dlpack_end);
    if (!capsule) dlpack_delete(&own->managed), PyErr_Clear();
    return (uintptr_t)capsule;
}
