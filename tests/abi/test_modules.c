/* Checks good and bad modules. Whatever is in a searched folder, or is named by the host, the library must say what is
 * wrong with it and continue. Each module is tried in its own process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/child.h"
#include "harness/tap.h"
#include "scenario.h"

#include <sys/stat.h>

enum { WIDTH = 3, MAX_ROWS = 32 };

static struct strict_host    host;
static struct sample_dataset set;
static struct data_folder    folder;
static graft_error           error = { .size = sizeof error };

/* A module and the expected result. */
struct module {
    const char *kind, *name; /* kind and name of the module, which are parts of the file name */
    int32_t     load;        /* expected status of load_module() */
    /* expected state after a product searched the folder for it: 1 if in use, otherwise the reason why not */
    int32_t     state;
    int32_t     run;   /* expected status of a product */
    const char *words; /* expected words of the message or of the detail */
};

static const struct module modules[] = {
    { "kernel", "good", GRAFT_OK, 1, GRAFT_OK, "sums of neighbours" },
    { "kernel", "otherkind", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "kind" },
    { "kernel", "otherabi", GRAFT_ERR_VERSION, GRAFT_ERR_VERSION, GRAFT_OK,
      "versions 1 to 1, this sample knows 2 to 3" },
    { "kernel", "laterabi", GRAFT_ERR_VERSION, GRAFT_ERR_VERSION, GRAFT_OK, "2" },
    { "kernel", "shorttable", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "too short" },
    { "kernel", "oldtable", GRAFT_OK, 1, GRAFT_OK, "sums of neighbours" },
    { "kernel", "longtables", GRAFT_OK, 1, GRAFT_OK, "sums of neighbours" },
    { "kernel", "frozen", GRAFT_OK, 1, GRAFT_OK, "from a frozen module" },
    { "kernel", "notable", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "table" },
    { "kernel", "nokernel", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "table" },
    { "kernel", "bothtables", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "table" },
    { "kernel", "shortkernel", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "too short" },
    { "kernel", "norun", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "function" },
    { "kernel", "nodescription", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "table" },
    { "kernel", "oddstatus", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "7" },
    { "kernel", "oddinit", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "returned 7, which is not a status" },
    { "kernel", "oddprepare", GRAFT_OK, 1, GRAFT_ERR_MODULE, "" },
    { "kernel", "oddrun", GRAFT_OK, 1, GRAFT_ERR_MODULE, "" },
    { "kernel", "initfails", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "not licensed" },
    { "kernel", "oldargs", GRAFT_OK, 1, GRAFT_OK, "" },
    { "kernel", "tellsall", GRAFT_OK, 1, GRAFT_OK, "" },
    { "kernel", "tellssome", GRAFT_OK, 1, GRAFT_ERR_MODULE, "" },
    { "kernel", "tellstwice", GRAFT_OK, 1, GRAFT_ERR_MODULE, "" },
    { "kernel", "tellsbeyond", GRAFT_OK, 1, GRAFT_ERR_MODULE, "" },
    { "kernel", "tellsstranger", GRAFT_OK, 1, GRAFT_ERR_MODULE, "" },
    { "kernel", "preparefails", GRAFT_OK, 1, GRAFT_OK, "" },
    { "kernel", "runfails", GRAFT_OK, 1, GRAFT_ERR_MODULE, "" },
    { "kernel", "rundeclines", GRAFT_OK, 1, GRAFT_OK, "" },
    { "kernel", "noentry", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "graft_module" },
    { "kernel", "decoy", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "of its own" },
    { "kernel", "unresolved", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "graft_decoy_anchor" },
    { "kernel", "misnamed", GRAFT_OK, GRAFT_ERR_MODULE, GRAFT_OK, "its name states kernel 'misnamed'" },
    { "kernel", "text", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "not a shared library" },
    { "kernel", "empty", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "not a shared library" },
    { "kernel", "folder", GRAFT_ERR_MODULE, GRAFT_ERR_MODULE, GRAFT_OK, "is a folder" },
    { "kernel", "dangling", GRAFT_ERR_NOT_FOUND, GRAFT_ERR_MODULE, GRAFT_OK, "No such file" },
};

/* Whether the file is a library. If it is not, its state is known before it is asked for. */
static int is_library(const struct module *module)
{
    static const char *const others[] = { "text", "empty", "folder", "dangling" };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(module->name, others[i]) == 0) return 0;
    return 1;
}

/* Put the module alone into the folder. */
static void place(const char *kind, const char *name)
{
    char target[PATH_MAX], file[128];

    folder_clear(&folder);
    snprintf(file, sizeof file, "graft_%s_%s.so", kind, name);
    snprintf(target, sizeof target, "%.3000s/%s", getenv("GRAFT_TEST_MODULES"), file);
    if (strcmp(name, "text") == 0) write_file(&folder, file, "This is not a library.\n", 23);
    else if (strcmp(name, "empty") == 0) write_file(&folder, file, "", 0);
    else if (strcmp(name, "folder") == 0) files_check(mkdir(folder_path(&folder, file), 0700) == 0, file);
    else files_check(symlink(target, folder_path(&folder, file)) == 0, file);
}

static const char *path_of(const struct module *module)
{
    char file[128];

    snprintf(file, sizeof file, "graft_%s_%s.so", module->kind, module->name);
    return folder_path(&folder, file);
}

static void modules_count_poll(void *arg)
{
    ++*(int *)arg;
}

/* The rows that a product reports as finished, and how often it reports them. */
struct told {
    int times[MAX_ROWS];
};

static void modules_note_rows(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    struct told *told = arg;

    if (thread != 0 || begin < 0 || end > MAX_ROWS) {
        watch_blame("rows %lld to %lld are reported by thread %d", (long long)begin, (long long)end, thread);
        return;
    }
    for (int64_t row = begin; row < end; row++) told->times[row]++;
}

/* Compute a product that any kernel supports. The result is stored in c. */
static int32_t modules_multiply(struct subject *s, float c[MAX_ROWS][WIDTH])
{
    float             b[MAX_ROWS][WIDTH];
    const int64_t     n = set.dataset.n_vertices;
    const graft_dense dense_b = { sizeof dense_b, GRAFT_F32, n, WIDTH, WIDTH, b };
    const graft_dense dense_c = { sizeof dense_c, GRAFT_F32, n, WIDTH, WIDTH, c };
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    graft_matrix     *matrix = NULL;
    double            times[3] = { 0 };
    int               polls = 0;
    struct told       told = { { 0 } };
    int32_t           rc;

    for (int i = 0; i < MAX_ROWS * WIDTH; i++) b[i / WIDTH][i % WIDTH] = (float)(i * 5 % 13);
    memset(c, 0, MAX_ROWS * sizeof *c);
    rc = s->mxm->matrix_create(s->context, set.dataset.graph, 0, &matrix, &error);
    if (rc < 0) return rc;
    args.semiring = GRAFT_PLUS_SECOND;
    args.a = matrix;
    args.b = &dense_b;
    args.c = &dense_c;
    args.threads = 1; /* even a kernel without times and callbacks supports this */
    args.times = times;
    args.poll = modules_count_poll;
    args.poll_arg = &polls;
    args.rows_done = modules_note_rows;
    args.rows_arg = &told;
    rc = s->mxm->run(s->context, &args, &error);
    for (int64_t i = 0; i < MAX_ROWS && rc == GRAFT_OK; i++)
        if (told.times[i] != (i < n)) watch_blame("row %lld is reported %d times", (long long)i, told.times[i]);
    s->mxm->matrix_destroy(matrix);
    return rc;
}

/* Run a product with kernel `kernel`. The status, and the result if there is one, must be right. */
static void check_product(struct subject *s, const char *kernel, int32_t expected)
{
    static float right[MAX_ROWS][WIDTH];
    float        c[MAX_ROWS][WIDTH];
    char         text[1024] = "";
    int32_t      rc;

    s->api.set(s->context, "mxm.kernel", "reference", &error);
    if (modules_multiply(s, right) != GRAFT_OK) watch_blame("the plain loops fail: %s", error.message);
    s->mxm->explain(s->context, NULL, text, sizeof text, &error);
    if (strncmp(text, "reference ran", 13) != 0) watch_blame("the plain loops are gone: %s", text);
    s->api.set(s->context, "mxm.kernel", kernel, &error);
    rc = modules_multiply(s, c);
    if (rc != expected) watch_blame("mxm.kernel %s gives %d, expected %d: %s", kernel, rc, expected, error.message);
    else if (rc == GRAFT_OK && memcmp(c, right, sizeof c) != 0)
        watch_blame("mxm.kernel %s gives a wrong product", kernel);
}

static int modules_find(struct subject *s, const char *kind, const char *name, graft_module_entry *entry)
{
    *entry = GRAFT_INIT(graft_module_entry);
    for (int32_t i = 0; s->api.module_info(s->context, i, entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry->kind, kind) == 0 && strcmp(entry->name, name) == 0) return 1;
    }
    return 0;
}

/* Let the library find the module in a folder. The text of explain() is stored in `story`. */
static void try_found(const struct module *module, char story[1024])
{
    struct subject     s;
    graft_module_entry entry;

    if (subject_open(&s, &error) < 0 || s.api.set(s.context, "module.path", folder.path, &error) < 0) {
        watch_blame("%s", error.message);
        return;
    }
    if (!modules_find(&s, module->kind, module->name, &entry)) watch_blame("it is not listed");
    else if (entry.state != (is_library(module) ? 0 : module->state) || strcmp(entry.path, path_of(module)) != 0) {
        watch_blame("before its first use it has state %d and path %s", entry.state, entry.path);
    }
    check_product(&s, "auto", GRAFT_OK);
    if (modules_find(&s, module->kind, module->name, &entry) && entry.state > 0)
        watch_blame("it was loaded without need");
    check_product(&s, module->name, module->run);
    if (modules_find(&s, module->kind, module->name, &entry) && entry.state != module->state) {
        watch_blame("its state is %d, expected %d: %s", entry.state, module->state, entry.detail);
    } else if (strstr(entry.detail, module->words) == NULL) {
        watch_blame("its detail is: %s", entry.detail);
    }
    check_product(&s, "reference", GRAFT_OK);
    check_product(&s, "auto", GRAFT_OK); /* the module has no note, so auto makes the same choice as before */
    s.mxm->explain(s.context, NULL, story, 1024, &error);
    subject_close(&s);
}

/* Let the host load the module by its file name. */
static void try_loaded(const struct module *module)
{
    struct subject s;
    int32_t        rc;

    if (subject_open(&s, &error) < 0) {
        watch_blame("%s", error.message);
        return;
    }
    for (int i = 0; i < 2; i++) {
        rc = s.api.load_module(s.context, path_of(module), &error);
        if (rc != module->load) {
            watch_blame("load_module %d gives %d, expected %d: %s", i + 1, rc, module->load,
                        rc < 0 ? error.message : "");
        } else if (module->load == GRAFT_ERR_NOT_FOUND) {
            if (strstr(error.message, path_of(module)) == NULL) watch_blame("load_module says: %s", error.message);
        } else if (module->load < 0 && strstr(error.message, module->words) == NULL) {
            watch_blame("load_module says: %s", error.message);
        }
        check_product(&s, "auto", module->load < 0 ? GRAFT_OK : module->run);
        check_product(&s, "reference", GRAFT_OK);
    }
    subject_close(&s);
}

static const char *try_module(const void *arg)
{
    const struct module *module = arg;
    char                 story[2][1024] = { "", "" };

    watch_reset(&host);
    place(module->kind, module->name);
    for (int i = 0; i < 2; i++) try_found(module, story[i]);
    if (strcmp(story[0], story[1]) != 0) watch_blame("opened again, it explains another choice: %s", story[1]);
    try_loaded(module);
    if (host.live_bytes != 0) watch_blame("%lld bytes are left", (long long)host.live_bytes);
    return watch.faults > 0 ? watch.fault : NULL;
}

static const char *opened_with(struct subject *s, const char *kind, const char *name)
{
    watch_reset(&host);
    if (subject_open(s, &error) < 0) return error.message;
    if (name == NULL) return NULL;
    place(kind, name);
    return s->api.set(s->context, "module.path", folder.path, &error) < 0 ? error.message : NULL;
}

static const char *closed(struct subject *s)
{
    subject_close(s);
    if (host.live_bytes != 0) watch_blame("%lld bytes are left", (long long)host.live_bytes);
    return watch.faults > 0 ? watch.fault : NULL;
}

/* A module that was asked for by name must run, or explain() must say why another one ran. */
static const char *choice(const void *arg)
{
    static const char *const stories[][2] = { { "good", "good ran" },
                                              { "oldargs", "oldargs ran" },
                                              { "preparefails", "the sample cannot prepare" },
                                              { "rundeclines", "the sample library gave up" } };
    struct subject           s;
    char                     text[1024];
    const char              *fault = opened_with(&s, "kernel", arg);

    if (fault != NULL) return fault;
    check_product(&s, arg, GRAFT_OK);
    s.mxm->explain(s.context, NULL, text, sizeof text, &error);
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        if (strcmp(arg, stories[i][0]) == 0 && strstr(text, stories[i][1]) == NULL) watch_blame("explain: %s", text);
    }
    /* With option strict no other kernel may run in place of the named one. */
    s.api.set(s.context, "strict", "yes", &error);
    check_product(&s, arg,
                  strcmp(arg, "rundeclines") == 0 || strcmp(arg, "preparefails") == 0 ? GRAFT_ERR_UNSUPPORTED
                                                                                      : GRAFT_OK);
    return closed(&s);
}

/* A module with the name of an existing one must be refused, and the existing one must stay in use. */
static const char *clash(const void *arg)
{
    const int          twin = strcmp(arg, "twin") == 0;
    const char        *name = twin ? "good" : "reference";
    char               path[PATH_MAX];
    struct subject     s;
    graft_module_entry entry;
    const char        *fault = opened_with(&s, "kernel", "good");

    if (fault != NULL) return fault;
    snprintf(path, sizeof path, "%.3000s/graft_kernel_%s.so", getenv("GRAFT_TEST_MODULES"), (const char *)arg);
    if (s.api.load_module(s.context, path, &error) == GRAFT_OK) watch_blame("it is taken");
    if (!modules_find(&s, "kernel", name, &entry) || entry.state < 0) watch_blame("%s has state %d", name, entry.state);
    else if (strstr(entry.path, twin ? folder.path : "") == NULL) watch_blame("%s has path %s", name, entry.path);
    check_product(&s, name, GRAFT_OK);
    if (!modules_find(&s, "kernel", name, &entry) || entry.state != 1)
        watch_blame("%s has state %d", name, entry.state);
    return closed(&s);
}

static int32_t train_once(struct subject *s)
{
    graft_trainer *trainer = NULL;
    graft_epoch    epoch = GRAFT_INIT(graft_epoch);
    int32_t        rc = s->train->create(s->context, &set.dataset, &trainer, &error);

    if (rc == GRAFT_OK) rc = s->train->epoch(trainer, &epoch, &error);
    s->train->destroy(trainer);
    return rc;
}

static const char *dense_modules(const void *arg)
{
    struct subject s;
    const char    *fault = opened_with(&s, "dense", arg);

    if (fault != NULL) return fault;
    if (train_once(&s) != GRAFT_OK) watch_blame("dense.module auto: %s", error.message);
    s.api.set(s.context, "dense.module", arg, &error);
    s.api.set(s.context, "profile", "yes", &error);
    if (train_once(&s) != GRAFT_ERR_MODULE ||
        (strcmp(arg, "text") != 0 && strstr(error.message, "cannot multiply") == NULL))
        watch_blame("dense.module %s: %s", (const char *)arg, error.message);
    s.api.set(s.context, "dense.module", "reference", &error);
    if (train_once(&s) != GRAFT_OK) watch_blame("dense.module reference: %s", error.message);
    return closed(&s);
}

/* Try folders that do not exist, are listed twice, or are full of other files. */
static const char *many_folders(const void *arg)
{
    struct subject     s;
    graft_module_entry entry;
    char               path[3 * PATH_MAX], file[64];
    const char        *fault = opened_with(&s, "kernel", "good");

    (void)arg;
    if (fault != NULL) return fault;
    for (int i = 0; i < 40; i++) {
        snprintf(file, sizeof file, "graft_kernel_spare%d.so", i);
        write_file(&folder, file, "text", 4);
    }
    write_file(&folder, "graft_kernel_.so", "text", 4);
    write_file(&folder, "graft_transport_good.so", "text", 4);
    write_file(&folder, "graft_kernel_good.so.bak", "text", 4);
    write_file(&folder, "libgraft_kernel_good.so", "text", 4);
    snprintf(path, sizeof path, ":/nowhere::%s:%s/:", folder.path, folder.path);
    if (s.api.set(s.context, "module.path", path, &error) != GRAFT_OK) watch_blame("%s", error.message);
    check_product(&s, "auto", GRAFT_OK);
    check_product(&s, "good", GRAFT_OK);
    if (modules_find(&s, "transport", "good", &entry)) watch_blame("a module of an unknown kind is listed");
    return closed(&s);
}

static void modules_report(const char *name, const char *fault)
{
    ok_or(fault == NULL, fault, "%s", name);
}

int main(void)
{
    struct sample sample = { 3 };

    if (getenv("GRAFT_TEST_MODULES") == NULL) {
        skip(1, "GRAFT_TEST_MODULES does not say where the test modules are");
        return done();
    }
    strict_host_init(&host);
    folder_create(&folder);
    sample_dataset_init(&set, &sample, 17, 4, 3, 0, 0);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        char name[64];
        snprintf(name, sizeof name, "module %s %s", modules[i].kind, modules[i].name);
        modules_report(name, in_child(try_module, &modules[i]));
    }
    modules_report("a kernel that was asked for runs", in_child(choice, "good"));
    modules_report("also if it knows fewer arguments than there are", in_child(choice, "oldargs"));
    modules_report("explain says why one that cannot prepare was passed over", in_child(choice, "preparefails"));
    modules_report("explain says why one that declined was passed over", in_child(choice, "rundeclines"));
    modules_report("a bad module with the name of the plain loops", in_child(clash, "usurper"));
    modules_report("a bad module with the name of a good one", in_child(clash, "twin"));
    modules_report("a dense module that cannot multiply", in_child(dense_modules, "broken"));
    modules_report("one that was built before times is not asked for them", in_child(dense_modules, "oldgemm"));
    modules_report("a dense module that is no library", in_child(dense_modules, "text"));
    modules_report("many folders with many files", in_child(many_folders, NULL));
    sample_dataset_fini(&set);
    folder_destroy(&folder);
    return done();
}
