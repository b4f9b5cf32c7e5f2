/* ops.cuh - one instruction of the forms EW, REDUCE, ROW and MATMUL. All threads of the CTA call it together, between
 * two CTA barriers that the caller makes. `at`: the instruction's words; dropout_key: two words. */
__device__ __forceinline__ void vpps_compute(const unsigned *at, float *pool, const unsigned *dropout_key) {
    const unsigned traits = vpps_traits[at[0] & 0xff];
    switch (VPPS_TRAIT_FORM(traits)) {
    case VPPS_FORM_EW:
        if (VPPS_TRAIT_LIST(traits))
            vpps_over_list(at, traits, pool);
        else
            vpps_elementwise(at, traits, pool, dropout_key);
        break;
    case VPPS_FORM_MATMUL: vpps_matmul(at, pool); break;
    default: vpps_whole_vector(at, traits, pool); break;
    }
}
