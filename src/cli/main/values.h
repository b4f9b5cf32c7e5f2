/* values.h - the program of an exported network: numbers, scores and texts as values of JSON and as cells. */
VPPS_UNUSED static void put_string(text t) {
    char *whole = copy(t);
    vpps_json_write_string(stdout, whole);
    free(whole);
}

/* Six digits, and always a fraction or an exponent. */
static void put_number(double x) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.6g", x);
    const char *e = strchr(digits, 'e');
    if (!(fabs(x) < (double)INFINITY))
        fputs("null", stdout);
    else if (e)
        printf("%.*se%d", (int)(e - digits), digits, atoi(e + 1));
    else
        printf("%s%s", digits, strchr(digits, '.') ? "" : ".0");
}

/* The probability of a class, by the logits of all. */
static double score_of(const float *logits, size_t label) {
    const double most = (double)logits[likeliest(logits)];
    double sum = 0;
    for (size_t i = 0; i < CLASSES; i++) sum += exp((double)logits[i] - most);
    return exp((double)logits[label] - (most + log(sum)));
}

/* The number as a cell, which is empty where it is not finite. */
VPPS_UNUSED static void put_number_cell(double x, char separator) {
    if (separator) putchar(separator);
    if (fabs(x) < (double)INFINITY) put_number(x);
}

/* Adds a word to those of a cell, with a space between. */
VPPS_UNUSED static char *add_joined(char *words, size_t *len, text word) {
    words = grow(words, *len + word.len + 2, 1);
    if (*len) words[(*len)++] = ' ';
    memcpy(words + *len, word.at, word.len);
    words[ *len += word.len] = '\0';
    return words;
}
