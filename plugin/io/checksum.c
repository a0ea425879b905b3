/* Computes and checks the checksums in the metadata of a model file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/checksum.h"

#include "base/crc.h"

#include <stdio.h>
#include <string.h>

static int64_t blocks_of(const struct gr_tensor *t)
{
    return (t->end - t->begin + GR_CHECKSUM_BLOCK - 1) / GR_CHECKSUM_BLOCK;
}

int64_t gr_io_checksum_place(const struct gr_tensor *tensors, int32_t count, const char *name)
{
    int64_t place = 0;

    for (int32_t i = 0; i < count; i++)
        if (name == NULL || strcmp(tensors[i].name, name) < 0) place += blocks_of(&tensors[i]);
    return GR_CHECKSUM_DIGITS * place;
}

void gr_io_checksum_write(char digits[GR_CHECKSUM_DIGITS], uint32_t crc)
{
    char text[GR_CHECKSUM_DIGITS + 1];

    snprintf(text, sizeof text, "%08x", crc);
    memcpy(digits, text, GR_CHECKSUM_DIGITS);
}

/* Continue a CRC with a text and its terminating zero. */
static uint32_t crc_of_text(uint32_t crc, const char *text)
{
    return gr_crc(crc, text, strlen(text) + 1);
}

static uint32_t crc_of_tensor(const struct gr_tensor *t)
{
    char shape[GR_TENSOR_DIMS * 24] = "[";
    int  used = 1;

    for (int32_t d = 0; d < t->n_dims; d++)
        used += snprintf(shape + used, sizeof shape - (size_t)used, "%s%lld", d > 0 ? "," : "", (long long)t->shape[d]);
    snprintf(shape + used, sizeof shape - (size_t)used, "]");
    return crc_of_text(crc_of_text(crc_of_text(0, t->name), gr_io_tensor_type_name(t->dtype)), shape);
}

uint32_t gr_io_checksum_header(const struct gr_tensor *tensors, int32_t n_tensors, const struct gr_tensor_pair *pairs,
                               int32_t n_pairs)
{
    uint32_t sum = 0;

    for (int32_t i = 0; i < n_tensors; i++) sum += crc_of_tensor(&tensors[i]);
    for (int32_t i = 0; i < n_pairs; i++)
        if (strcmp(pairs[i].key, GR_CHECKSUM_OF_HEADER) != 0)
            sum += crc_of_text(crc_of_text(0, pairs[i].key), pairs[i].value);
    return sum;
}

/* Compare the checksum of the header with the stated checksum. */
static int32_t check_header_sum(const struct gr_tensors *header, const char *shown, const char *expected,
                                graft_error *error)
{
    char found[GR_CHECKSUM_DIGITS + 1] = "";

    gr_io_checksum_write(found,
                         gr_io_checksum_header(header->tensors, header->n_tensors, header->pairs, header->n_pairs));
    if (strcmp(found, expected) != 0)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' is damaged: its header, from byte %d to byte %lld, has checksum %s, but '%s' in the "
                       "metadata is '%.16s'; a program that writes another header removes the keys '%s' and '%s'",
                       shown, GR_TENSOR_PREFIX, (long long)(GR_TENSOR_PREFIX + header->header_bytes), found,
                       GR_CHECKSUM_OF_HEADER, expected, GR_CHECKSUM_OF_TENSORS, GR_CHECKSUM_OF_HEADER);
    if (header->not_canonical == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "'%s' is damaged at byte %lld of the header: the header of a file with checksums is compact JSON, "
                   "padded with spaces to a multiple of 8 bytes",
                   shown, (long long)header->not_canonical);
}

int32_t gr_io_checksum_check(const struct gr_tensors *header, const char *shown, graft_error *error)
{
    const char *of_tensors = gr_io_tensors_value(header, GR_CHECKSUM_OF_TENSORS);
    const char *of_header = gr_io_tensors_value(header, GR_CHECKSUM_OF_HEADER);
    const int   others = GR_TENSOR_PAIRS_MAX - 2;
    int64_t     digits;

    if (of_tensors == NULL && of_header == NULL && header->n_pairs > others)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' has %d texts in its metadata, from byte %d on, expected at most %d and the checksums",
                       shown, header->n_pairs, GR_TENSOR_PREFIX, others);
    if (of_tensors == NULL && of_header == NULL) return GRAFT_OK;
    if (of_tensors == NULL || of_header == NULL)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' is damaged: its metadata, from byte %d on, have '%s' and no '%s', expected both or none",
                       shown, GR_TENSOR_PREFIX, of_header == NULL ? GR_CHECKSUM_OF_TENSORS : GR_CHECKSUM_OF_HEADER,
                       of_header == NULL ? GR_CHECKSUM_OF_HEADER : GR_CHECKSUM_OF_TENSORS);
    if (check_header_sum(header, shown, of_header, error) < 0) return GRAFT_ERR_FORMAT;
    digits = gr_io_checksum_place(header->tensors, header->n_tensors, NULL);
    if ((int64_t)strlen(of_tensors) == digits) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': '%s' in the metadata has %zu digits, expected %lld", shown,
                   GR_CHECKSUM_OF_TENSORS, strlen(of_tensors), (long long)digits);
}
