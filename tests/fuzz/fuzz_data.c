/* Reads arbitrary bytes as a Matrix Market file and as every .npy file of a data set. They must be read or refused.
 * What is read must satisfy graft_data.h, and no memory may leak.
 * SPDX-License-Identifier: Apache-2.0 */
#include "data_fault.h"
#include "target.h"

/* In each folder one file is the input, and the others are good files. The first name in the list is graph.mtx. */
enum { PARTS = DATA_SET_FILES - 1 };
static const char *const *const parts = data_set_files + 1;

static struct data_folder input, folders[PARTS];

void target_begin(void)
{
    if (!host_begin()) exit(2);
    refuse_large_memory();
    folder_create(&input);
    for (int i = 0; i < PARTS; i++) {
        char target[PATH_MAX + 256];

        folder_create(&folders[i]);
        write_sample(&folders[i], strncmp(parts[i], "features_csr", 12) == 0);
        snprintf(target, sizeof target, "%s", folder_path(&input, "input"));
        if (strcmp(parts[i], "targets.npy") == 0) /* a data set has either targets or labels */
            files_check(remove(folder_path(&folders[i], "labels.npy")) == 0, "labels.npy");
        else if (strcmp(parts[i], "edge_features.npy") != 0) /* the good data set has no edge features */
            files_check(remove(folder_path(&folders[i], parts[i])) == 0, parts[i]);
        files_check(symlink(target, folder_path(&folders[i], parts[i])) == 0, parts[i]);
    }
}

void target_end(void)
{
    for (int i = 0; i < PARTS; i++) folder_destroy(&folders[i]);
    folder_destroy(&input);
    host_end();
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    const int   by_ranks = goes_to_ranks(bytes, count);
    const char *fault = NULL;

    write_file(&input, "input", bytes, count);
    if (count == 0 || bytes[0] != 0x93) return open_fault(folder_path(&input, "input"), by_ranks);
    for (int i = 0; i < PARTS && fault == NULL; i++) fault = open_fault(folders[i].path, by_ranks);
    return fault;
}
