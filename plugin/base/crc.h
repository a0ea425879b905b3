/* CRC32C (the polynomial of Castagnoli, reflected, as iSCSI and ext4 use it).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_CRC_H
#define GR_BASE_CRC_H

#include <stdint.h>

/** The CRC of what had `crc` so far, 0 at first, with these bytes behind it. */
uint32_t gr_crc(uint32_t crc, const void *data, uint64_t bytes);

/** The same without instructions for it, byte by byte. */
uint32_t gr_crc_plain(uint32_t crc, const void *data, uint64_t bytes);

/** The CRC of A and B behind it, from those of both and the bytes of B. */
uint32_t gr_crc_join(uint32_t crc_a, uint32_t crc_b, uint64_t bytes_b);

#endif
