/* Files for ParaView.
 * SPDX-License-Identifier: Apache-2.0 */
#include "vtu.h"

#include <stdio.h>

static FILE *open_file(const char *folder, const char *format, int a, int b)
{
    char name[64], path[600];

    snprintf(name, sizeof name, format, a, b);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, "wb");
}

static int close_file(FILE *file)
{
    const int failed = ferror(file);

    return fclose(file) != 0 || failed ? -1 : 0;
}

/* Write a block of appended data: its number of bytes, and the data. */
static void write_block(FILE *file, const void *data, uint64_t bytes)
{
    fwrite(&bytes, sizeof bytes, 1, file);
    fwrite(data, 1, bytes, file);
}

/* Describe a block, and advance the position of the next one. */
static void describe(FILE *file, const char *type, const char *name, int components, uint64_t bytes, uint64_t *at)
{
    fprintf(file,
            "<DataArray type=\"%s\" Name=\"%s\" NumberOfComponents=\"%d\" format=\"appended\" offset=\"%llu\"/>\n",
            type, name, components, (unsigned long long)*at);
    *at += sizeof bytes + bytes;
}

static void write_data(FILE *file, const struct vtu *v)
{
    const uint64_t n = (uint64_t)v->n_nodes, cells = (uint64_t)v->n_cells;
    uint64_t       bytes = 3 * n * sizeof(double);
    const uint8_t  triangle = 5;

    fwrite(&bytes, sizeof bytes, 1, file);
    for (uint64_t i = 0; i < n; i++) {
        const double point[3] = { v->x[2 * i], v->x[2 * i + 1], 0 };

        fwrite(point, sizeof point, 1, file);
    }
    write_block(file, v->cell, 3 * cells * sizeof *v->cell);
    bytes = cells * sizeof(int32_t);
    fwrite(&bytes, sizeof bytes, 1, file);
    for (uint64_t c = 0; c < cells; c++) {
        const int32_t end = (int32_t)(3 * c + 3);

        fwrite(&end, sizeof end, 1, file);
    }
    fwrite(&cells, sizeof cells, 1, file);
    for (uint64_t c = 0; c < cells; c++) fwrite(&triangle, 1, 1, file);
    for (int f = 0; f < VTU_FIELDS; f++) write_block(file, v->value[f], n * sizeof(double));
}

static int write_piece(const struct vtu *v, int step)
{
    const uint64_t n = (uint64_t)v->n_nodes, cells = (uint64_t)v->n_cells;
    FILE          *file = open_file(v->folder, "heat_%04d_%d.vtu", step, v->rank);
    uint64_t       at = 0;

    if (file == NULL) return -1;
    fprintf(file,
            "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" "
            "header_type=\"UInt64\">\n<UnstructuredGrid>\n<Piece NumberOfPoints=\"%llu\" NumberOfCells=\"%llu\">\n"
            "<Points>\n",
            (unsigned long long)n, (unsigned long long)cells);
    describe(file, "Float64", "Points", 3, 3 * n * sizeof(double), &at);
    fprintf(file, "</Points>\n<Cells>\n");
    describe(file, "Int32", "connectivity", 1, 3 * cells * sizeof(int32_t), &at);
    describe(file, "Int32", "offsets", 1, cells * sizeof(int32_t), &at);
    describe(file, "UInt8", "types", 1, cells, &at);
    fprintf(file, "</Cells>\n<PointData>\n");
    for (int f = 0; f < VTU_FIELDS; f++) describe(file, "Float64", v->name[f], 1, n * sizeof(double), &at);
    fprintf(file, "</PointData>\n</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_");
    write_data(file, v);
    fprintf(file, "\n</AppendedData>\n</VTKFile>\n");
    return close_file(file);
}

/* Write the file that joins the pieces of all ranks. */
static int write_joint(const struct vtu *v, int step)
{
    FILE *file = open_file(v->folder, "heat_%04d.pvtu", step, 0);

    if (file == NULL) return -1;
    fprintf(file,
            "<?xml version=\"1.0\"?>\n<VTKFile type=\"PUnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" "
            "header_type=\"UInt64\">\n<PUnstructuredGrid GhostLevel=\"0\">\n<PPoints>\n<PDataArray type=\"Float64\" "
            "Name=\"Points\" NumberOfComponents=\"3\"/>\n</PPoints>\n<PPointData>\n");
    for (int f = 0; f < VTU_FIELDS; f++)
        fprintf(file, "<PDataArray type=\"Float64\" Name=\"%s\" NumberOfComponents=\"1\"/>\n", v->name[f]);
    fprintf(file, "</PPointData>\n");
    for (int q = 0; q < v->n_ranks; q++) fprintf(file, "<Piece Source=\"heat_%04d_%d.vtu\"/>\n", step, q);
    fprintf(file, "</PUnstructuredGrid>\n</VTKFile>\n");
    return close_file(file);
}

int vtu_write(const struct vtu *v, int step)
{
    if (write_piece(v, step) < 0) return -1;
    return v->rank == 0 ? write_joint(v, step) : 0;
}

int vtu_write_times(const char *folder, int every, int last, double step_time)
{
    FILE *file = open_file(folder, "heat.pvd", 0, 0);

    if (file == NULL) return -1;
    fprintf(file, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n");
    for (int step = 0; step <= last; step += every)
        fprintf(file, "<DataSet timestep=\"%g\" file=\"heat_%04d.pvtu\"/>\n", step * step_time, step);
    fprintf(file, "</Collection>\n</VTKFile>\n");
    return close_file(file);
}
