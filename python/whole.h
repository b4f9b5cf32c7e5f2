/* Converts unsigned arguments of all C functions by Python's operator.index, which accepts integers only: cffi's own conversion truncates
 * numbers such as numpy.float32(1.9). setup.py includes this file after cffi's macros and before its functions, _cffi_f_vpps_NAME. */

/* Returns x as a number from 0 to `most`; UINT64_MAX with a TypeError or an ArgumentError set if x is no such number. */
static uint64_t whole_number(PyObject *x, uint64_t most, const char *function) {
    const char *name = function + strlen("_cffi_f_vpps_");
    PyObject *n = PyNumber_Index(x);
    if (!n) {
        if (!PyIndex_Check(x)) /* otherwise __index__ has raised its own exception */
            PyErr_Format(PyExc_TypeError, "%s: %R; expected a whole number", name, x);
        return UINT64_MAX;
    }
    uint64_t value = PyLong_AsUnsignedLongLong(n); /* UINT64_MAX with an exception set if n is negative or too large */
    if (value >= most && (value > most || PyErr_Occurred())) {
        PyErr_Clear();
        PyObject *module = PyImport_ImportModule("vpps.errors");
        PyObject *error = module ? PyObject_GetAttrString(module, "ArgumentError") : NULL;
        if (error)
            PyErr_Format(error, "%s: %R; expected a whole number from 0 to %llu", name, n, (unsigned long long)most);
        Py_XDECREF(error);
        Py_XDECREF(module);
        value = UINT64_MAX;
    }
    Py_DECREF(n);
    return value;
}

#undef _cffi_to_c_int
#define _cffi_to_c_int(x, type) ((type)whole_number(x, (type)-1, __func__))
