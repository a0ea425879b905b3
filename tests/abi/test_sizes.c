/* Checks the size rule in both directions. Structs of a newer host have additional fields that the library does not
 * know, and those of an older host lack fields.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "oracle/sample.h"
#include "watch.h"

#include <math.h>

enum { TAIL = 64, MARK = 0xA5, ROWS = 11, INNER = 8, WIDTH = 6 };

/* A struct of the contract followed by more memory. */
struct stretched {
    _Alignas(16) unsigned char bytes[1024];
    size_t used, zeros; /* number of bytes of the original, and the end of the zeros after it */
};

/* Copy a struct for the library to write. The copy claims `size` bytes, and the bytes after the original have a known
 * pattern. */
static void *stretch_out(struct stretched *room, const void *original, size_t bytes, size_t size)
{
    const uint32_t said = (uint32_t)size;

    memset(room->bytes, MARK, sizeof room->bytes);
    memcpy(room->bytes, original, bytes);
    memcpy(room->bytes, &said, sizeof said);
    room->used = room->zeros = bytes;
    return room->bytes;
}

/* Copy a struct for the library to read. The fields that the library does not know are zero. */
static void *stretch(struct stretched *room, const void *original, size_t bytes, size_t size)
{
    stretch_out(room, original, bytes, size);
    if (size > bytes) memset(room->bytes + bytes, 0, size - bytes);
    room->zeros = size > bytes ? size : bytes;
    return room->bytes;
}

/* Returns whether nothing was written at byte `from` or after it. */
static int untouched(const struct stretched *room, size_t from)
{
    for (size_t i = from; i < sizeof room->bytes; i++) {
        if (room->bytes[i] != (i < room->zeros ? 0 : MARK)) return 0;
    }
    return 1;
}

static struct strict_host host;
static struct subject     s;
static graft_error        error = { .size = sizeof error };

/* All arguments of a product. */
struct product {
    float          b[INNER][WIDTH], c[ROWS][WIDTH];
    uint8_t        present[ROWS][WIDTH];
    graft_dense    dense_b, dense_c;
    graft_mask     mask;
    graft_mxm_args args;
};

static void sizes_product_init(struct product *p, graft_matrix *matrix)
{
    *p = (struct product){ .mask = GRAFT_INIT(graft_mask), .args = GRAFT_INIT(graft_mxm_args) };
    for (int i = 0; i < INNER * WIDTH; i++) p->b[i / WIDTH][i % WIDTH] = (float)(i * 7 % 11) / 8;
    for (int i = 0; i < ROWS * WIDTH; i++) p->present[i / WIDTH][i % WIDTH] = i % 4 != 0;
    p->dense_b = (graft_dense){ sizeof p->dense_b, GRAFT_F32, INNER, WIDTH, WIDTH, p->b };
    p->dense_c = (graft_dense){ sizeof p->dense_c, GRAFT_F32, ROWS, WIDTH, WIDTH, p->c };
    p->mask.kind = GRAFT_MASK_BYTES;
    p->mask.stride = WIDTH;
    p->mask.present = &p->present[0][0];
    p->args.semiring = GRAFT_PLUS_TIMES;
    p->args.a = matrix;
    p->args.b = &p->dense_b;
    p->args.c = &p->dense_c;
    p->args.mask = &p->mask;
}

static void test_products(const graft_csr *csr)
{
    struct stretched room[5];
    struct product   expected, p;
    graft_matrix    *matrix = NULL, *grown = NULL;

    ok(s.mxm->matrix_create(s.context, csr, 0, &matrix, &error) == GRAFT_OK &&
           s.mxm->matrix_create(s.context, stretch(&room[0], csr, sizeof *csr, sizeof *csr + TAIL), 0, &grown,
                                &error) == GRAFT_OK,
       "a longer graft_csr is taken");
    sizes_product_init(&expected, matrix);
    sizes_product_init(&p, grown);
    p.args.b = stretch(&room[1], &p.dense_b, sizeof p.dense_b, sizeof p.dense_b + TAIL);
    p.args.c = stretch(&room[2], &p.dense_c, sizeof p.dense_c, sizeof p.dense_c + TAIL);
    p.args.mask = stretch(&room[3], &p.mask, sizeof p.mask, sizeof p.mask + TAIL);
    ok(s.mxm->run(s.context, &expected.args, &error) == GRAFT_OK &&
           s.mxm->run(s.context, stretch(&room[4], &p.args, sizeof p.args, sizeof p.args + TAIL), &error) == GRAFT_OK &&
           memcmp(p.c, expected.c, sizeof p.c) == 0,
       "with longer structs a product is the same");
    for (int i = 0; i < 5; i++) ok(untouched(&room[i], room[i].used), "struct %d of 5 is not written to", i + 1);
    s.mxm->matrix_destroy(grown);

    sizes_product_init(&p, matrix);
    stretch(&room[4], &p.args, sizeof p.args, sizeof p.args + TAIL);
    room[4].bytes[sizeof p.args + 3] = 1;
    ok(s.mxm->run(s.context, (graft_mxm_args *)room[4].bytes, &error) == GRAFT_ERR_UNSUPPORTED &&
           strstr(error.message, "is not 0"),
       "what a newer host asks for is not passed over: %s", error.message);
    ok(s.mxm->run(s.context, stretch(&room[4], &p.args, sizeof p.args, offsetof(graft_mxm_args, row_scale)), &error) ==
               GRAFT_OK &&
           memcmp(p.c, expected.c, sizeof p.c) == 0,
       "shorter arguments mean no scale and no winner");
    ok(s.mxm->run(s.context, stretch(&room[4], &p.args, sizeof p.args, 4), &error) == GRAFT_ERR_ARG,
       "arguments of size 4 are refused");
    s.mxm->matrix_destroy(matrix);
}

static void test_short_csr(const graft_csr *csr)
{
    struct stretched room;
    graft_csr        bare = *csr;
    struct product   expected, p;
    graft_matrix    *without = NULL, *shorter = NULL;

    bare.values = NULL;
    bare.value_type = 0;
    s.mxm->matrix_create(s.context, &bare, 0, &without, &error);
    ok(s.mxm->matrix_create(s.context, stretch(&room, csr, sizeof *csr, offsetof(graft_csr, values)), 0, &shorter,
                            &error) == GRAFT_OK,
       "a graft_csr that ends before its values is taken");
    sizes_product_init(&expected, without);
    sizes_product_init(&p, shorter);
    ok(s.mxm->run(s.context, &expected.args, &error) == GRAFT_OK &&
           s.mxm->run(s.context, &p.args, &error) == GRAFT_OK && memcmp(p.c, expected.c, sizeof p.c) == 0,
       "and has none");
    s.mxm->matrix_destroy(without);
    s.mxm->matrix_destroy(shorter);
}

/* An unknown field that is not zero must be refused in any struct. */
static void test_asking(const graft_csr *csr, const graft_dataset *set)
{
    struct stretched room;
    struct product   p;
    graft_dataset    newer = *set;
    graft_matrix    *matrix = NULL, *none = NULL;
    graft_trainer   *trainer = NULL;

#define ASKING(original) ((void *)stretch_out(&room, original, sizeof *(original), sizeof *(original) + TAIL))
#define REFUSED(what, call) ok((call) == GRAFT_ERR_UNSUPPORTED, "what a newer %s asks for is refused", what)
    s.mxm->matrix_create(s.context, csr, 0, &matrix, &error);
    REFUSED("graft_csr", s.mxm->matrix_create(s.context, ASKING(csr), 0, &none, &error));
    sizes_product_init(&p, matrix);
    p.args.b = ASKING(&p.dense_b);
    REFUSED("graft_dense", s.mxm->run(s.context, &p.args, &error));
    sizes_product_init(&p, matrix);
    p.args.mask = ASKING(&p.mask);
    REFUSED("graft_mask", s.mxm->run(s.context, &p.args, &error));
    REFUSED("graft_dataset", s.train->create(s.context, ASKING(set), &trainer, &error));
    newer.graph = ASKING(set->graph);
    REFUSED("graph", s.train->create(s.context, &newer, &trainer, &error));
#undef REFUSED
#undef ASKING
    s.mxm->matrix_destroy(matrix);
}

/* An output of this size must be written up to its end, and its member size must stay the same. */
static int written_as_far(const char *name, int32_t rc, const struct stretched *room, size_t size)
{
    uint32_t said;

    memcpy(&said, room->bytes, sizeof said);
    return ok(rc == GRAFT_OK && said == size && untouched(room, room->used), "%s of %zu bytes is written within them",
              name, size);
}

/* Bytes after the end of a shorter output struct must remain unchanged. */
static int kept_behind(const struct stretched *room, const void *original, size_t from)
{
    return memcmp(room->bytes + from, (const char *)original + from, room->used - from) == 0;
}

static void test_descriptions(void)
{
    graft_option       option = GRAFT_INIT(graft_option);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    struct stretched   room;
    int32_t            rc;

    rc = s.api.option_info(s.context, 0, stretch(&room, &option, sizeof option, sizeof option + TAIL), &error);
    written_as_far("a graft_option", rc, &room, sizeof option + TAIL);
    rc = s.api.option_info(s.context, 0, stretch(&room, &option, sizeof option, offsetof(graft_option, help)), &error);
    written_as_far("a graft_option", rc, &room, offsetof(graft_option, help));
    ok(kept_behind(&room, &option, offsetof(graft_option, help)), "its end is left alone");
    rc = s.api.option_info(s.context, 0, stretch(&room, &option, sizeof option, 0), &error);
    ok(rc == GRAFT_ERR_ARG && untouched(&room, sizeof option), "a graft_option of no size is refused");
    rc = s.api.module_info(s.context, 0, stretch(&room, &entry, sizeof entry, sizeof entry + TAIL), &error);
    written_as_far("a graft_module_entry", rc, &room, sizeof entry + TAIL);
}

/* Make a data set whose structs are all longer than those that the library knows. */
static const graft_dataset *stretch_dataset(const graft_dataset *set, struct stretched room[3])
{
    graft_dataset copy = *set;

    copy.graph = stretch(&room[1], set->graph, sizeof *set->graph, sizeof *set->graph + TAIL);
    copy.features = stretch(&room[2], set->features, sizeof *set->features, sizeof *set->features + TAIL);
    return stretch(&room[0], &copy, sizeof copy, sizeof copy + TAIL);
}

static void test_training(const graft_dataset *set)
{
    struct stretched room[3], out;
    graft_epoch      epoch = GRAFT_INIT(graft_epoch), longer;
    graft_metrics    metrics = GRAFT_INIT(graft_metrics);
    graft_state_item item = GRAFT_INIT(graft_state_item);
    graft_trainer   *expected = NULL, *trainer = NULL;
    const size_t     half = offsetof(graft_epoch, evaluated);
    int32_t          rc;

    ok(s.train->create(s.context, set, &expected, &error) == GRAFT_OK &&
           s.train->create(s.context, stretch_dataset(set, room), &trainer, &error) == GRAFT_OK,
       "a longer data set is taken");
    s.train->epoch(expected, &epoch, &error);
    rc = s.train->epoch(trainer, stretch_out(&out, &longer, sizeof longer, sizeof longer + TAIL), &error);
    written_as_far("a graft_epoch", rc, &out, sizeof longer + TAIL);
    memcpy(&longer, out.bytes, sizeof longer);
    ok(longer.loss == epoch.loss && longer.epoch == 1 && longer.validation_loss == epoch.validation_loss,
       "with longer structs the training is the same: loss %.9g", epoch.loss);
    rc = s.train->epoch(trainer, stretch_out(&out, &epoch, sizeof epoch, half), &error);
    written_as_far("a graft_epoch", rc, &out, half);
    ok(kept_behind(&out, &epoch, half), "its end is left alone");
    rc = s.train->evaluate(trainer, GRAFT_WEIGHTS_LAST,
                           stretch_out(&out, &metrics, sizeof metrics, sizeof metrics + TAIL), &error);
    written_as_far("a graft_metrics", rc, &out, sizeof metrics + TAIL);
    rc = s.train->state_item(trainer, 0, stretch(&out, &item, sizeof item, sizeof item + TAIL), &error);
    written_as_far("a graft_state_item", rc, &out, sizeof item + TAIL);
    memcpy(&item, out.bytes, sizeof item);
    ok(s.train->state_set(trainer, stretch(&out, &item, sizeof item, sizeof item + TAIL), &error) == GRAFT_OK &&
           untouched(&out, sizeof item),
       "a longer item is taken back");
    for (int i = 0; i < 3; i++)
        ok(untouched(&room[i], room[i].used), "struct %d of 3 of the data set is not written to", i + 1);
    s.train->destroy(expected);
    s.train->destroy(trainer);
}

int main(void)
{
    struct sample         sample = { 7 };
    struct sample_csr     a;
    struct sample_dataset set;

    strict_host_init(&host);
    watch_reset(&host);
    sample_csr_init(&a, &sample, ROWS, INNER, GRAFT_I32, GRAFT_F32, 1);
    sample_dataset_init(&set, &sample, 13, 4, 3, 0, 0);
    if (!ok(subject_open(&s, &error) == GRAFT_OK, "a context opens")) return done();
    test_products(&a.csr);
    test_short_csr(&a.csr);
    test_asking(&a.csr, &set.dataset);
    test_descriptions();
    test_training(&set.dataset);
    subject_close(&s);
    ok_or(watch.faults == 0 && host.live_bytes == 0, watch.fault, "%lld calls behaved", (long long)watch.calls);
    sample_csr_fini(&a);
    sample_dataset_fini(&set);
    return done();
}
