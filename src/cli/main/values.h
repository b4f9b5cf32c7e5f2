/* values.h - prints an exported program's numbers, scores and texts as JSON values and as cells of a table. */
VPPS_UNUSED static void put_string(text t) {
    char *whole = copy(t);
    vpps_json_write_string(stdout, whole);
    free(whole);
}

/* Prints a JSON number with six digits and a fraction or an exponent; null if it is not finite. */
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

/* Returns the probability of class `label`: the softmax of all classes' logits. */
static double score_of(const float *logits, size_t label) {
    const double most = (double)logits[likeliest(logits)];
    double sum = 0;
    for (size_t i = 0; i < CLASSES; i++) sum += exp((double)logits[i] - most);
    return exp((double)logits[label] - (most + log(sum)));
}

/* Prints a number as a table's cell; the cell is empty if the number is not finite. */
VPPS_UNUSED static void put_number_cell(double x, char separator) {
    if (separator) putchar(separator);
    if (fabs(x) < (double)INFINITY) put_number(x);
}

/* Appends a word to a text of words, after a space if it is not the first word. Returns the text, which may have moved. */
VPPS_UNUSED static char *add_joined(char *words, size_t *len, text word) {
    words = grow(words, *len + word.len + 2, 1);
    if (*len) words[(*len)++] = ' ';
    memcpy(words + *len, word.at, word.len);
    words[ *len += word.len] = '\0';
    return words;
}
