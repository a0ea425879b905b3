/* How many threads the system starts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/probe.h"

#include <pthread.h>

enum { PROBED_MOST = 512 };

static void *wait_for_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

int gr_probe_threads(int wanted)
{
    pthread_t       thread[PROBED_MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    const int       most = wanted < PROBED_MOST ? wanted : PROBED_MOST;
    int             count = 0;

    pthread_mutex_lock(&gate);
    while (count < most && pthread_create(&thread[count], NULL, wait_for_gate, &gate) == 0) count++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < count; i++) pthread_join(thread[i], NULL);
    return count == most ? wanted : count;
}
