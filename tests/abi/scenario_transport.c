/* The small job whose ranks are threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* Send a message between two ranks of this process, and make each call of a request. */
static int32_t pass_message(graft_transport *ranks, char *data, char *copy, uint64_t bytes, graft_error *error)
{
    graft_request *sent = NULL, *received = NULL;
    int32_t        done = 0, rc;

    TRY(ranks[0].send(ranks[0].self, 1, 7, data, bytes, &sent, error));
    rc = ranks[1].receive(ranks[1].self, 0, 7, copy, bytes, &received, error);
    if (rc < 0 && ranks[0].cancel(ranks[0].self, sent) != 1) watch_blame("a message is out of hand");
    TRY(rc);
    TRY(ranks[1].test(ranks[1].self, received, &done, error));
    if (!done) watch_blame("a message of %llu bytes did not arrive", (unsigned long long)bytes);
    TRY(ranks[0].test(ranks[0].self, sent, &done, error));
    if (!done || memcmp(data, copy, bytes) != 0) watch_blame("a message was changed");
done:
    return rc;
}

int32_t scenario_transport(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error)
{
    static char     data[4096], copy[4096];
    graft_transport ranks[2] = { GRAFT_INIT(graft_transport), GRAFT_INIT(graft_transport) }, none = ranks[0];
    int32_t         rc;

    (void)scenario, (void)scene;
    for (int i = 0; i < 4096; i++) data[i] = (char)i;
    TRY(s->transport->threads(s->context, 2, ranks, error));
    rc = pass_message(ranks, data, copy, 10, error);
    if (rc == GRAFT_OK) rc = pass_message(ranks, data, copy, sizeof data, error);
    for (int i = 0; i < 2; i++) ranks[i].close(ranks[i].self);
    TRY(rc);
    rc = s->transport->open(s->context, "nowhere", NULL, &none, error);
    if (rc == GRAFT_ERR_NOT_FOUND) rc = GRAFT_OK;
done:
    return rc;
}
