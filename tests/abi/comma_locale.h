/* Makes a locale whose decimal separator is a comma. It is derived from the locale of the C library, because a minimal
 * system has no others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMA_LOCALE_H
#define COMMA_LOCALE_H

#include "fuzz/data_files.h"

#include <locale.h>
#include <sys/stat.h>

enum { LC_NUMERIC_HEADER = 32 }; /* magic number, number of items, and the offsets of six items, whose texts follow */

/** Write the locale "comma" into the folder and set it. The result is 0 if the C library stores its locales in a
 * different form. */
static int comma_locale_begin(const struct data_folder *folder)
{
    unsigned char bytes[4096];
    FILE         *file = fopen("/usr/lib/locale/C.utf8/LC_NUMERIC", "rb");
    size_t        count = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;

    if (file != NULL) fclose(file);
    for (size_t i = LC_NUMERIC_HEADER; i < count; i++) {
        if (bytes[i] == '.') bytes[i] = ',';
    }
    if (count == 0 || mkdir(folder_path(folder, "comma"), 0700) != 0) return 0;
    write_file(folder, "comma/LC_NUMERIC", bytes, count);
    setenv("LOCPATH", folder->path, 1);
    return setlocale(LC_NUMERIC, "comma") != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
}

/** Restore the locale "C". The folder can be destroyed afterwards. */
static void comma_locale_end(const struct data_folder *folder)
{
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    remove(folder_path(folder, "comma/LC_NUMERIC"));
}

#endif
