/* A solver dummy in C: heat in a rod. Graft learns while the solver runs, and then takes its place.
 *     cc dummy.c -o dummy $(pkg-config --cflags --libs graft) && ./dummy [LIBRARY]
 * SPDX-License-Identifier: Apache-2.0 */
#include <draft/graft_stream.h>
#include <graft_load.h>
#include <stdlib.h>

#define CHECK(call) ((call) < 0 ? exit(fprintf(stderr, "%s\n", error.message)) : (void)0)
enum { N = 42 }; /* number of points of the rod, including its ends */

static void solve(double u[N])
{
    double before = u[0], now;
    for (int i = 1; i < N - 1; i++, before = now) now = u[i], u[i] = now + 0.4 * (before - 2 * now + u[i + 1]);
}

int main(int argc, char **argv)
{
    static const char *const option[][2] = { { "hidden", "16" }, { "layers", "2" }, { "lr", "0.003" } };
    double                   x[N], u[N], exact[N], sum = 0, apart = 0;
    int32_t                  cell[N - 1][2];
    uint8_t                  is_free[N];
    const graft_api         *graft;
    graft_mesh              *mesh;
    graft_network           *network;
    graft_stream            *stream;
    graft_error              error = GRAFT_INIT(graft_error);
    graft_stream_status      status = GRAFT_INIT(graft_stream_status);
    graft_field        at = { sizeof at, GRAFT_F64, N, 1, 1, 1, x }, state = { sizeof state, GRAFT_F64, N, 1, 1, 1, u };
    graft_mesh_args    m = { .size = sizeof m, .kind = GRAFT_MESH_GHOSTS, .dim = 1, .coordinates = &at, .n_rows = N };
    graft_network_args n = { sizeof n, GRAFT_PREDICTS_CHANGE, 1, 1, .is_free = is_free };
    graft_sample_state sample = { .size = sizeof sample, .input = &state };

    for (int i = 0; i < N; i++) x[i] = i / (N - 1.0), u[i] = 4 * x[i] * (1 - x[i]), is_free[i] = i > 0 && i < N - 1;
    for (int i = 0; i < N - 1; i++) cell[i][0] = i, cell[i][1] = i + 1;
    m.id_type = m.index_type = GRAFT_I32, m.n_cells = N - 1, m.cell_type = GRAFT_CELL_LINE, m.cell_nodes = cell;
    CHECK(graft_load(argc > 1 ? argv[1] : NULL, NULL, &graft, &error));
    for (int i = 0; i < 3; i++) CHECK(graft->set(graft->context, option[i][0], option[i][1], &error));
    const graft_mesh_api    *meshes = graft_interface(graft, GRAFT_MESH_ID, sizeof *meshes);
    const graft_network_api *networks = graft_interface(graft, GRAFT_NETWORK_ID, sizeof *networks);
    const graft_stream_api  *streams = graft_interface(graft, GRAFT_STREAM_ID, sizeof *streams);
    CHECK(meshes->create(graft->context, NULL, &m, &mesh, &error)); /* NULL: one rank */
    CHECK(networks->create(mesh, &n, &network, &error));
    CHECK(streams->create(network, &stream, &error));
    for (int step = 1; step <= 300; step++, solve(u)) {
        CHECK(streams->offer(stream, &sample, &error));
        CHECK(streams->step(stream, 1000, 1, &status, &error)); /* trains for at most a second, and at most one step */
    }
    memcpy(exact, u, sizeof u);
    for (int step = 1; step <= 10; step++, solve(exact)) {
        CHECK(networks->begin(network, &state, &error)); /* the solver may compute between these two */
        CHECK(networks->end(network, &state, &error));
    }
    for (int i = 0; i < N; i++) sum += u[i], apart += (u[i] - exact[i]) * (u[i] - exact[i]);
    printf("loss %.6e error %.6e sum %.17g\n", status.loss, apart, sum);
    streams->destroy(stream);
    networks->destroy(network);
    meshes->destroy(mesh);
    graft->close(graft->context);
}
