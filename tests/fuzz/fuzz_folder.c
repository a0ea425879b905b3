/* Reads a folder of a data set in which several files are replaced. What is read must satisfy graft_data.h. An input
 * has the replaced files one after the other: one byte selects the file, two bytes are its length (65535 means that the
 * file is missing), and then its bytes follow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "data_fault.h"
#include "target.h"

enum { NO_FILE = 65535 };

static struct data_folder set;

void target_begin(void)
{
    if (!host_begin()) exit(2);
    refuse_large_memory();
    folder_create(&set);
}

void target_end(void)
{
    folder_destroy(&set);
    host_end();
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    struct supply s = { bytes, bytes + count };
    const uint8_t sparse = supply_byte(&s);

    folder_clear(&set);
    write_sample(&set, sparse & 1);
    while (s.at < s.end) {
        const char *name = data_set_files[supply_byte(&s) % DATA_SET_FILES];
        const int   low = supply_byte(&s), length = low + 256 * supply_byte(&s);
        size_t      some = (size_t)(s.end - s.at);

        if (length == NO_FILE) {
            remove(folder_path(&set, name));
            continue;
        }
        if (some > (size_t)length) some = (size_t)length;
        write_file(&set, name, s.at, some);
        s.at += some;
    }
    return open_fault(set.path, goes_to_ranks(bytes, count));
}
