/* How the binding takes a whole number: by Python's operator.index, for every unsigned argument of every call. cffi's own conversion cuts
 * what is no whole number, as numpy.float32(1.9). setup.py includes this file between cffi's macros and the calls, where __func__ is
 * "_cffi_f_vpps_NAME" or "_cffi_f_glue_NAME". */

/* The exception vpps.ArgumentError. A new reference, or NULL with an exception. */
static PyObject *argument_error(void) {
    PyObject *module = PyImport_ImportModule("vpps.errors");
    PyObject *error = module ? PyObject_GetAttrString(module, "ArgumentError") : NULL;
    Py_XDECREF(module);
    return error;
}

/* x as a number from 0 to `most`; UINT64_MAX with a TypeError or an ArgumentError where it is none. */
static uint64_t whole_number(PyObject *x, uint64_t most, const char *function) {
    const char *name = function + strlen("_cffi_f_vpps_");
    PyObject *n = PyNumber_Index(x);
    if (!n) {
        if (!PyIndex_Check(x)) /* else it says itself why it is none, as what pull_index() returns does */
            PyErr_Format(PyExc_TypeError, "%s: %R; expected a whole number", name, x);
        return UINT64_MAX;
    }
    uint64_t value = PyLong_AsUnsignedLongLong(n); /* UINT64_MAX with an exception for what is negative or larger */
    if (value >= most && (value > most || PyErr_Occurred())) {
        PyErr_Clear();
        PyObject *error = argument_error();
        if (error)
            PyErr_Format(error, "%s: %R; expected a whole number from 0 to %llu", name, n, (unsigned long long)most);
        Py_XDECREF(error);
        value = UINT64_MAX;
    }
    Py_DECREF(n);
    return value;
}

#undef _cffi_to_c_int
#define _cffi_to_c_int(x, type) ((type)whole_number(x, (type)-1, __func__))
