/* The state of a sequence of calls: its contexts, and all handles that ever existed. The bytes of the input choose
 * handles, sizes of structs, and numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include "abi/misuse.h"
#include "target.h"

enum { N = MISUSE_N, WIDTH = MISUSE_WIDTH, POOL = 96, CALLS = 48, ROOM = 1024 };

struct entry {
    void            *handle;
    enum misuse_kind kind;
    int              of; /* number of the context to which the handle belongs */
};

/* The state of a sequence: two contexts, and all handles that ever existed. */
struct sequence {
    struct misuse m[2];
    int           is_open[2];
    struct entry  pool[POOL];
    int           n;
};

static struct sequence q;
static void            add_handle(void *handle, enum misuse_kind kind, int of)
{
    if (handle != NULL && q.n < POOL) q.pool[q.n++] = (struct entry){ handle, kind, of };
}

/* Choose a handle for a call in context `of` that expects a handle of this kind. Mostly it is of this kind. */
static void *pick(struct supply *s, enum misuse_kind kind, int of)
{
    static uint64_t garbage[16] = { 0x4141414141414141u, 1, 2, 3 };
    const uint8_t   how = supply_byte(s), which = supply_byte(s);

    if (how < 12) return NULL;
    if (how < 20) return (char *)garbage + which % sizeof garbage;
    if (how < 24) return (void *)(uintptr_t)which;
    if (how < 48) return q.pool[which % q.n].handle;
    if (how < 52) return q.m[which & 1].context;
    if (kind == CONTEXT) return q.m[of].context;
    for (int i = 0; i < q.n; i++) {
        const struct entry *e = &q.pool[(which + i) % q.n];

        if (e->kind == kind && (e->of == of || how < 60)) return e->handle;
    }
    return q.m[of].handle[kind];
}

/* Copy a struct so that it claims another size. The bytes after it are zeros or other values. */
static void *resized(struct supply *s, const void *from, size_t size)
{
    static _Alignas(16) unsigned char room[4][ROOM];
    static int                        next;
    const uint8_t                     how = supply_byte(s);
    uint32_t                          said = (uint32_t)size;
    unsigned char                    *to = room[next++ % 4];

    memset(to, how & 1 ? 0xff : 0, ROOM);
    memcpy(to, from, size);
    if (how < 16) said = 0;
    else if (how < 32) said = 4u * supply_byte(s) % (uint32_t)size;
    else if (how < 48) said = (uint32_t)size + 8u * (supply_byte(s) % 64u);
    if (said > ROOM) said = ROOM;
    memcpy(to, &said, sizeof said);
    return to;
}

static int64_t odd_number(struct supply *s)
{
    static const int64_t numbers[] = {
        0, 1, -1, 2, 3, N, N - 1, WIDTH, 99, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
    };
    const uint8_t how = supply_byte(s);

    return how < 200 ? numbers[how % (sizeof numbers / sizeof *numbers)] : (int8_t)how;
}

#endif
