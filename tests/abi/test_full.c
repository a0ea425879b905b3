/* Checks option check=full. A kernel that writes outside of C must be found, and nothing that it wrote there may reach
 * the host's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"

#include "harness/child.h"
#include "harness/tap.h"

enum { N = MISUSE_N, WIDTH = MISUSE_WIDTH, GAP = 2, STRIDE = WIDTH + GAP };

static const float before = -5;

/* Compute a product with kernel `name` into a C with gaps between its rows. */
static const char *check_kernel(const void *arg)
{
    const char *const name = arg;
    const int         is_good = strcmp(name, "good") == 0;
    static float      c[N * STRIDE];
    char              path[3200];
    graft_mxm_args    args;
    struct misuse     m;
    const char       *fault = misuse_open(&m);
    int32_t           rc;

    if (fault != NULL) return fault;
    snprintf(path, sizeof path, "%.3000s/graft_kernel_%s.so", getenv("GRAFT_TEST_MODULES"), name);
    if (m.api->load_module(m.context, path, &m.error) < 0 || m.api->set(m.context, "mxm.kernel", name, &m.error) < 0 ||
        m.api->set(m.context, "strict", "yes", &m.error) < 0 || m.api->set(m.context, "check", "full", &m.error) < 0)
        return misuse_fault("%s", m.error.message);
    for (int i = 0; i < N * STRIDE; i++) c[i] = before;
    m.dense_c.data = c;
    m.dense_c.stride = STRIDE;
    args = m.args;
    rc = m.mxm->run(m.context, &args, &m.error);
    if (is_good ? rc != GRAFT_OK : rc != GRAFT_ERR_MODULE)
        return misuse_fault("it returned %d: %s", rc, rc < 0 ? m.error.message : "");
    if (!is_good && (strstr(m.error.message, name) == NULL || strstr(m.error.message, "wrote outside of C") == NULL))
        return misuse_fault("it says: %s", m.error.message);
    for (int i = 0; i < N * STRIDE; i++) {
        const int is_element = i % STRIDE < WIDTH;

        if ((!is_element || !is_good) && c[i] != before) return misuse_fault("element %d of C was written", i);
        if (is_element && is_good && c[i] == before) return misuse_fault("element %d of C was not written", i);
    }
    return misuse_close(&m);
}

int main(void)
{
    misuse_init();
    if (getenv("GRAFT_TEST_MODULES") == NULL) skip(1, "GRAFT_TEST_MODULES does not say where the test modules are");
    else {
        ok_fault("a good kernel passes", in_child(check_kernel, "good"));
        ok_fault("one that writes between the rows is found", in_child(check_kernel, "writesgap"));
        ok_fault("one that writes before C is found", in_child(check_kernel, "writesbefore"));
        ok_fault("one that writes behind C is found", in_child(check_kernel, "writesbehind"));
    }
    misuse_fini();
    return done();
}
