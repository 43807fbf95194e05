/* Vectors of a diagonal matrix and an outer product for one type (Gu and Eisenstat 1994, "A stable and efficient algorithm for the
   rank-one modification of the symmetric eigenproblem"; LAPACK's laed3). */

/* Löwner's formula: the outer product's vector that has the roots which were found, to the last bit or so, so that the vectors are
   orthogonal however near the roots are to one another. */
static void F(weights)(ptrdiff_t k, const void *rows, const void *poles, const void *z, void *made, ptrdiff_t begin, ptrdiff_t end) {
    const REAL *const pole = poles, *const sign = z;
    for (ptrdiff_t i = begin; i < end; i += LANES) {
        const ptrdiff_t count = end - i < (ptrdiff_t)LANES ? end - i : (ptrdiff_t)LANES;
        REAL here[LANES] = {0}, last[LANES] = {0};
        memcpy(here, pole + i, (size_t)count * sizeof(REAL));
        const V own = F(load)(here);
        V product = (V){0} - 1;
        for (ptrdiff_t j = 0; j < k; j++) {
            const REAL *from = (const REAL *)rows + j * k + i;
            if (count < (ptrdiff_t)LANES) {
                memcpy(last, from, (size_t)count * sizeof(REAL));
                from = last;
            }
            const V gaps = own - pole[j], one = (V){0} + 1;
            const VI none = gaps == 0; /* its own pole */
            product *= F(load)(from) / (V)(((VI)gaps & ~none) | ((VI)one & none));
        }
        REAL sizes[LANES];
        F(store)(sizes, product);
        for (ptrdiff_t l = 0; l < count; l++)
            ((REAL *)made)[i + l] = (REAL)copysign(sqrt((double)sizes[l]), (double)sign[i + l]);
    }
}

static void F(vectors)(ptrdiff_t k, void *rows, const void *weights, const int *order, void *room, ptrdiff_t begin, ptrdiff_t end) {
    const REAL *const weight = weights;
    REAL *const apart = room;
    for (ptrdiff_t j = begin; j < end; j++) {
        REAL *const row = (REAL *)rows + j * k;
        V squares = {0};
        REAL rest = 0;
        ptrdiff_t i = 0;
        for (; i + (ptrdiff_t)LANES <= k; i += LANES) {
            const V x = F(load)(weight + i) / F(load)(row + i);
            F(store)(apart + i, x);
            squares += x * x;
        }
        for (; i < k; i++) {
            apart[i] = weight[i] / row[i];
            rest += apart[i] * apart[i];
        }
        const REAL by = (REAL)(1 / sqrt((double)(F(lanes_sum)(squares) + rest)));
        for (ptrdiff_t p = 0; p < k; p++)
            row[p] = apart[order[p] - 1] * by;
    }
}
