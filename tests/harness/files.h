/* Folders of files that a test writes and inspects.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FILES_H
#define FILES_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/** The number of files in a folder, or -1 if it cannot be read. */
static inline int64_t files_in(const char *folder)
{
    DIR    *list = opendir(folder);
    int64_t count = -2; /* the entries "." and ".." are not counted */

    if (list == NULL) return -1;
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count;
}

/** Remove a folder with the files that tests or killed processes have left in it. */
__attribute__((unused)) static void remove_folder(const char *folder)
{
    DIR *list = opendir(folder);

    for (const struct dirent *item; list != NULL && (item = readdir(list)) != NULL;)
        if (item->d_name[0] != '.') unlinkat(dirfd(list), item->d_name, 0);
    if (list != NULL) closedir(list);
    rmdir(folder);
}

#endif
