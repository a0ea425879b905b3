/* CRC32C (the Castagnoli polynomial, reflected, as in iSCSI and ext4).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/** Continue a CRC (0 at first) with these bytes. */
uint32_t gr_crc(uint32_t crc, const void *data, uint64_t bytes);

/** As gr_crc(), but byte by byte, without the processor's instruction. */
uint32_t gr_crc_plain(uint32_t crc, const void *data, uint64_t bytes);

/** Compute the CRC of A followed by B from the CRCs of both and the length of B. */
uint32_t gr_crc_join(uint32_t crc_a, uint32_t crc_b, uint64_t bytes_b);
