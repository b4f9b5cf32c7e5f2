/* common.cuh - what all parts of the kernel that interprets nodes use: who owns what. */

/* Rows that this VP owns of something with so many. */
__device__ __forceinline__ vpps_rows vpps_rows_of(unsigned rows) { return vpps_rows_of(rows, VPPS_VPS, vpps_vp()); }

__device__ __forceinline__ const vpps_param_entry *vpps_param_of(const vpps_arguments &a, unsigned param) {
    return (const vpps_param_entry *)((const unsigned *)a.tables + VPPS_TABLE_PARAMS) + param;
}
__device__ __forceinline__ const vpps_matrix_entry *vpps_matrix_of(const vpps_arguments &a, unsigned matrix) {
    return (const vpps_matrix_entry *)((const unsigned *)a.tables + VPPS_TABLE_MATRICES) + matrix;
}
