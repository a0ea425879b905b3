/* Files that tests look at.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FILES_H
#define FILES_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

/** Number of files in a folder; -1: it cannot be read. */
static inline int64_t files_in(const char *folder)
{
    DIR    *list = opendir(folder);
    int64_t count = -2; /* "." and ".." */

    if (list == NULL) return -1;
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count;
}

#endif
