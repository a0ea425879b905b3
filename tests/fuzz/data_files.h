/* Writes small data sets into a temporary folder, for the tests and the fuzz targets of the readers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DATA_FILES_H
#define DATA_FILES_H

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct data_folder {
    char path[PATH_MAX];
};

__attribute__((unused)) static void files_check(int good, const char *what)
{
    if (good) return;
    perror(what);
    exit(2);
}

/** Make later folders in memory if possible, because a disk is slow for many small files. */
__attribute__((unused)) static void folders_in_memory(void)
{
    if (access("/dev/shm", W_OK | X_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
}

__attribute__((unused)) static void folder_create(struct data_folder *folder)
{
    const char *temporary = getenv("TMPDIR");

    snprintf(folder->path, sizeof folder->path, "%.3000s/graft-data-XXXXXX", temporary != NULL ? temporary : "/tmp");
    files_check(mkdtemp(folder->path) != NULL, folder->path);
}

/** The path of a file in the folder, which is valid until the next call. */
__attribute__((unused)) static const char *folder_path(const struct data_folder *folder, const char *name)
{
    static char path[PATH_MAX + 256];

    snprintf(path, sizeof path, "%.3500s/%.200s", folder->path, name);
    return path;
}

/** Remove files and empty folders inside of the folder. */
__attribute__((unused)) static void folder_clear(const struct data_folder *folder)
{
    DIR *list = opendir(folder->path);

    files_check(list != NULL, folder->path);
    for (const struct dirent *item; (item = readdir(list)) != NULL;) {
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        files_check(remove(folder_path(folder, item->d_name)) == 0, item->d_name);
    }
    closedir(list);
}

__attribute__((unused)) static void folder_destroy(const struct data_folder *folder)
{
    folder_clear(folder);
    files_check(rmdir(folder->path) == 0, folder->path);
}

__attribute__((unused)) static void write_file(const struct data_folder *folder, const char *name, const void *bytes,
                                               size_t count)
{
    FILE *file = fopen(folder_path(folder, name), "wb");

    files_check(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0, name);
}

/** Write an .npy file with any text as its header; the length field of the file says `length`. */
__attribute__((unused)) static void write_npy_as(const struct data_folder *folder, const char *name, int version,
                                                 uint32_t length, const char *header, const void *data, size_t count)
{
    const size_t   text = strlen(header), begin = version == 1 ? 10 : 12;
    unsigned char *bytes = malloc(begin + text + count);

    files_check(bytes != NULL, "malloc");
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[7] = 0;
    for (size_t i = 8; i < begin; i++) bytes[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(bytes + begin, header, text);
    memcpy(bytes + begin + text, data, count);
    write_file(folder, name, bytes, begin + text + count);
    free(bytes);
}

/** Write an .npy file as NumPy would. */
__attribute__((unused)) static void write_npy(const struct data_folder *folder, const char *name, const char *descr,
                                              const char *shape, const void *data, size_t count)
{
    char header[256];

    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    write_npy_as(folder, name, 1, (uint32_t)strlen(header), header, data, count);
}

/** Write a small data set, which other tests damage. It has 4 vertices, 5 edges, 3 features and 3 classes. */
__attribute__((unused)) static void write_sample(const struct data_folder *folder, int sparse)
{
    static const int32_t edges[2][5] = { { 1, 0, 3, 2, 0 }, { 0, 1, 0, 3, 3 } };
    static const float   features[4][3] = { { 1, 0, 0.5f }, { 0, 0, 0 }, { -2, 0, 0 }, { 0, 4, 0 } };
    static const int64_t indptr[5] = { 0, 2, 2, 3, 4 }, shape[2] = { 4, 3 };
    static const int32_t indices[4] = { 0, 2, 0, 1 }, labels[4] = { 0, 2, -1, 1 };
    static const float   values[4] = { 1, 0.5f, -2, 4 };
    static const uint8_t split[4] = { 1, 2, 0, 3 };

    write_npy(folder, "edges.npy", "<i4", "(2, 5)", edges, sizeof edges);
    write_npy(folder, "labels.npy", "<i4", "(4,)", labels, sizeof labels);
    write_npy(folder, "split.npy", "|u1", "(4,)", split, sizeof split);
    if (!sparse) {
        write_npy(folder, "features.npy", "<f4", "(4, 3)", features, sizeof features);
        return;
    }
    write_npy(folder, "features_csr_indptr.npy", "<i8", "(5,)", indptr, sizeof indptr);
    write_npy(folder, "features_csr_indices.npy", "<i4", "(4,)", indices, sizeof indices);
    write_npy(folder, "features_csr_data.npy", "<f4", "(4,)", values, sizeof values);
    write_npy(folder, "features_csr_shape.npy", "<i8", "(2,)", shape, sizeof shape);
}

/** The names of all files that the folder of a data set may have. */
__attribute__((unused)) static const char *const data_set_files[] = {
    "graph.mtx",
    "edges.npy",
    "features.npy",
    "features_csr_indptr.npy",
    "features_csr_indices.npy",
    "features_csr_data.npy",
    "labels.npy",
    "split.npy",
    "features_csr_shape.npy",
    "targets.npy",
    "edge_features.npy",
};
enum { DATA_SET_FILES = sizeof data_set_files / sizeof *data_set_files };

#endif
