/* Applies a cell at one vertex from Python without cffi's conversions, which take most of the time of such a call. */

enum { APPLY_MOST = 32 };

static PyObject *apply_vertex, *apply_node, *apply_no_arguments; /* classes Vertex, Node of vpps.node; empty tuple */
static PyObject *apply_e, *apply_id, *apply_at;                  /* names of attributes: "_e", "id", "at" */

/* Copies to `out` the numbers of a tuple or list of vertices or nodes: objects of class `type` that were made since the graph's latest clear
 * (their attribute _e is `epoch`). If `type` is NULL, `of` has numbers. Returns false if `of` is anything else, or longer than APPLY_MOST. */
static bool apply_numbers(PyObject *of, PyObject *type, PyObject *epoch, uint32_t *out, uint32_t *n) {
    const bool tuple = PyTuple_Check(of);
    if (!tuple && !PyList_Check(of)) return false;
    const Py_ssize_t size = tuple ? PyTuple_Size(of) : PyList_Size(of);
    if (size > APPLY_MOST) return false;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *x = tuple ? PyTuple_GetItem(of, i) : PyList_GetItem(of, i), *number = x;
        if ((PyObject *)Py_TYPE(x) != (type ? type : (PyObject *)&PyLong_Type)) return false;
        if (type) {
            PyObject *own = PyObject_GetAttr(x, apply_e);
            number = own == epoch ? PyObject_GetAttr(x, apply_id) : NULL;
            Py_XDECREF(own);
        }
        const unsigned long value = number ? PyLong_AsUnsignedLong(number) : ULONG_MAX;
        if (type) Py_XDECREF(number);
        if (value > UINT32_MAX) return false;
        out[i] = (uint32_t)value;
    }
    *n = (uint32_t)size;
    return true;
}

static PyObject *apply_made(PyObject *epoch, vpps_vertex v) {
    const newfunc create = (newfunc)PyType_GetSlot((PyTypeObject *)apply_vertex, Py_tp_new);
    PyObject *made = create((PyTypeObject *)apply_vertex, apply_no_arguments, NULL), *id = PyLong_FromUnsignedLong(v);
    if (!made || !id || PyObject_SetAttr(made, apply_e, epoch) || PyObject_SetAttr(made, apply_id, id)) {
        Py_XDECREF(made);
        made = NULL;
    }
    Py_XDECREF(id);
    return made;
}

static PyObject *apply(PyObject *self, PyObject *arguments) {
    (void)self;
    uint32_t children[APPLY_MOST], pulls[APPLY_MOST], indices[APPLY_MOST], n_children, n_pulls, n_indices;
    PyObject *epoch = PyTuple_GetItem(arguments, 0), *at = PyObject_GetAttr(epoch, apply_at);
    vpps_graph *g = at ? PyLong_AsVoidPtr(at) : NULL;
    Py_XDECREF(at);
    vpps_vertex v = VPPS_NO_VERTEX;
    if (g && apply_numbers(PyTuple_GetItem(arguments, 2), apply_vertex, epoch, children, &n_children) &&
        apply_numbers(PyTuple_GetItem(arguments, 3), apply_node, epoch, pulls, &n_pulls) &&
        apply_numbers(PyTuple_GetItem(arguments, 4), NULL, NULL, indices, &n_indices))
        v = vpps_apply(g, VPPS_APPLICATION(.cell = (vpps_cell)PyLong_AsUnsignedLong(PyTuple_GetItem(arguments, 1)),
                                           .n_children = n_children, .children = children, .n_pulls = n_pulls,
                                           .pulls = pulls, .n_indices = n_indices, .indices = indices));
    if (v != VPPS_NO_VERTEX) return apply_made(epoch, v);
    PyErr_Clear();
    Py_RETURN_NONE;
}

uintptr_t glue_python_apply(void) {
    static PyMethodDef method = {"apply", apply, METH_VARARGS, NULL};
    PyObject *module = PyImport_ImportModule("vpps.node");
    apply_vertex = module ? PyObject_GetAttrString(module, "Vertex") : NULL;
    apply_node = apply_vertex ? PyObject_GetAttrString(module, "Node") : NULL;
    Py_XDECREF(module);
    apply_e = PyUnicode_InternFromString("_e");
    apply_id = PyUnicode_InternFromString("id");
    apply_at = PyUnicode_InternFromString("at");
    apply_no_arguments = PyTuple_New(0);
    return apply_node ? (uintptr_t)PyCFunction_NewEx(&method, NULL, NULL) : 0;
}
