/* Headers of safetensors files, written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors.h"

#include <stdio.h>
#include <string.h>

/* Bytes are counted, and written as far as the capacity allows. */
struct header_text {
    char   *to;
    int64_t bytes, capacity;
};

static void put_bytes(struct header_text *h, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++, h->bytes++)
        if (h->bytes < h->capacity) h->to[h->bytes] = bytes[i];
}

static void put_plain(struct header_text *h, const char *text)
{
    put_bytes(h, text, strlen(text));
}

static void put_quoted(struct header_text *h, const char *text)
{
    static const char means[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    char              escape[8];

    put_bytes(h, "\"", 1);
    for (; *text != '\0'; text++) {
        const char *found = strchr(means, *text);

        if (found == NULL && (unsigned char)*text >= ' ') {
            put_bytes(h, text, 1);
            continue;
        }
        if (found != NULL) snprintf(escape, sizeof escape, "\\%c", letters[found - means]);
        else snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*text);
        put_plain(h, escape);
    }
    put_bytes(h, "\"", 1);
}

static void put_counts(struct header_text *h, const int64_t *counts, int32_t n)
{
    char digits[24];

    put_bytes(h, "[", 1);
    for (int32_t i = 0; i < n; i++) {
        snprintf(digits, sizeof digits, "%s%lld", i > 0 ? "," : "", (long long)counts[i]);
        put_plain(h, digits);
    }
    put_bytes(h, "]", 1);
}

static void put_tensor(struct header_text *h, const struct gr_tensor *t)
{
    put_bytes(h, ",", 1);
    put_quoted(h, t->name);
    put_plain(h, ":{\"dtype\":");
    put_quoted(h, gr_io_tensor_type_name(t->dtype));
    put_plain(h, ",\"shape\":");
    put_counts(h, t->shape, t->n_dims);
    put_plain(h, ",\"data_offsets\":");
    put_counts(h, (const int64_t[]){ t->begin, t->end }, 2);
    put_bytes(h, "}", 1);
}

int64_t gr_io_tensors_write(const struct gr_tensor *tensors, int32_t n_tensors, const struct gr_tensor_pair *pairs,
                            int32_t n_pairs, char *to, int64_t capacity)
{
    struct header_text h = { to, GR_TENSOR_PREFIX, capacity };

    put_plain(&h, "{\"__metadata__\":{");
    for (int32_t i = 0; i < n_pairs; i++) {
        if (i > 0) put_bytes(&h, ",", 1);
        put_quoted(&h, pairs[i].key);
        put_bytes(&h, ":", 1);
        put_quoted(&h, pairs[i].value);
    }
    put_bytes(&h, "}", 1);
    for (int32_t i = 0; i < n_tensors; i++) put_tensor(&h, &tensors[i]);
    put_bytes(&h, "}", 1);
    while (h.bytes % 8 != 0) put_bytes(&h, " ", 1);
    for (int i = 0; i < GR_TENSOR_PREFIX && i < capacity; i++)
        to[i] = (char)((uint64_t)(h.bytes - GR_TENSOR_PREFIX) >> (8 * i));
    return h.bytes;
}
