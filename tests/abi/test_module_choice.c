/* Checks which module runs, and from which file it is loaded. The choice must follow the notes of modules, which are
 * read without loading them, and must not depend on what ran before. Each check has its own process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/child.h"
#include "harness/tap.h"
#include "scenario.h"

#include <dlfcn.h>
#include <elf.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/stat.h>

enum { LINES = 64, FILE_BYTES = 1 << 20 };

static struct strict_host    host;
static struct sample_dataset set;
static struct data_folder    first, second;
static graft_error           error = { .size = sizeof error };

/* The lines of the log. */
static struct {
    int             count;
    graft_log_level level[LINES];
    char            text[LINES][600];
} lines;

static void choice_record(void *self, graft_log_level level, const char *message)
{
    (void)self;
    if (lines.count == LINES) return;
    lines.level[lines.count] = level;
    snprintf(lines.text[lines.count++], sizeof lines.text[0], "%s", message);
}

/* Whether a line of the log with this level contains both texts. */
static int choice_logged(graft_log_level level, const char *one, const char *other)
{
    for (int i = 0; i < lines.count; i++)
        if (lines.level[i] == level && strstr(lines.text[i], one) != NULL && strstr(lines.text[i], other) != NULL)
            return 1;
    return 0;
}

static void expect_logged(graft_log_level level, const char *one, const char *other)
{
    if (choice_logged(level, one, other)) return;
    watch_blame("the log has no line of level %d with '%s' and '%s'; the last of %d: %s", level, one, other,
                lines.count, lines.count > 0 ? lines.text[lines.count - 1] : "");
}

static const char *variant(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%.3000s/graft_kernel_%s.so", getenv("GRAFT_TEST_MODULES"), name);
    return path;
}

/* Link test module `name` into a folder under the name `file`, or under its own name if `file` is NULL. */
static void put_link(const struct data_folder *folder, const char *name, const char *file)
{
    char own[64];

    snprintf(own, sizeof own, "graft_kernel_%s.so", name);
    file = folder_path(folder, file != NULL ? file : own);
    files_check(symlink(variant(name), file) == 0, file);
}

static int choice_open(struct subject *s, const char *path)
{
    lines.count = 0;
    if (subject_open(s, &error) < 0 || s->api.set(s->context, "module.path", path, &error) < 0) {
        watch_blame("%s", error.message);
        return 0;
    }
    return 1;
}

static int choice_find(struct subject *s, const char *name, graft_module_entry *entry)
{
    *entry = GRAFT_INIT(graft_module_entry);
    for (int32_t i = 0; s->api.module_info(s->context, i, entry, NULL) == GRAFT_OK; i++)
        if (strcmp(entry->kind, "kernel") == 0 && strcmp(entry->name, name) == 0) return 1;
    return 0;
}

/* The kernel that runs a product with option mxm.kernel = `kernel`; "" if no kernel runs. */
static const char *ran(struct subject *s, const char *kernel)
{
    static char       text[1024], c_bytes[4096], b_bytes[4096];
    const int64_t     n = set.dataset.n_vertices;
    const graft_dense b = { sizeof b, GRAFT_F32, n, 2, 2, b_bytes }, c = { sizeof c, GRAFT_F32, n, 2, 2, c_bytes };
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    graft_matrix     *matrix = NULL;
    int32_t           rc = s->mxm->matrix_create(s->context, set.dataset.graph, 0, &matrix, &error);

    args.semiring = GRAFT_PLUS_SECOND;
    args.a = matrix;
    args.b = &b;
    args.c = &c;
    args.threads = 1;
    if (rc == GRAFT_OK) rc = s->api.set(s->context, "mxm.kernel", kernel, &error);
    if (rc == GRAFT_OK) rc = s->mxm->run(s->context, &args, &error);
    if (rc == GRAFT_OK) rc = s->mxm->explain(s->context, NULL, text, sizeof text, &error);
    if (rc < 0) snprintf(text, sizeof text, "%s", "");
    s->mxm->matrix_destroy(matrix);
    text[strcspn(text, " ")] = '\0';
    return text;
}

static void expect_ran(struct subject *s, const char *kernel, const char *expected)
{
    const char *name = ran(s, kernel);

    if (strcmp(name, expected) != 0)
        watch_blame("mxm.kernel %s ran '%s', expected '%s': %s", kernel, name, expected, error.message);
}

static const char *choice_close(struct subject *s)
{
    subject_close(s);
    if (host.live_bytes != 0) watch_blame("%lld bytes are left", (long long)host.live_bytes);
    return watch.faults > 0 ? watch.fault : NULL;
}

/* With this kernel in the folder, auto must choose `best` in a new context, after other kernels ran by name, and after
 * a reload. */
static const char *same_choice(const char *name, const char *best)
{
    static const char *const before[] = { "reference", "simd.generic", NULL, "simd" };
    struct subject           s;

    put_link(&first, name, NULL);
    for (int round = 0; round < 8; round++) {
        const char *other = before[round % 4];

        if (!choice_open(&s, first.path)) return watch.fault;
        if (round < 4) expect_ran(&s, "auto", best);
        expect_ran(&s, other != NULL ? other : name, other != NULL ? other : name);
        expect_ran(&s, "auto", best);
        expect_ran(&s, name, name);
        expect_ran(&s, "auto", best);
        for (int i = 0; i < lines.count; i++)
            if (lines.level[i] > GRAFT_LOG_INFO) watch_blame("the log has: %s", lines.text[i]);
        if (choice_close(&s) != NULL) return watch.fault;
    }
    return NULL;
}

static const char *noted_is_best(const void *arg)
{
    (void)arg;
    return same_choice("noted", "noted");
}

static const char *modest_is_not(const void *arg)
{
    (void)arg;
    return same_choice("modest", "simd");
}

static const char *without_note(const void *arg)
{
    struct subject     s;
    graft_module_entry entry;

    (void)arg;
    if (same_choice("good", "simd") != NULL) return watch.fault;
    if (!choice_open(&s, first.path)) return watch.fault;
    if (!choice_find(&s, "good", &entry) || entry.preference != 1 || entry.noted != 0)
        watch_blame("it counts as %d", entry.preference);
    if (s.api.load_module(s.context, variant("good"), &error) < 0) watch_blame("%s", error.message);
    expect_ran(&s, "auto", "good"); /* because the host has asked for it by name */
    return choice_close(&s);
}

/* A module that cannot be used here, and the words that the log must have about it. */
struct unfit {
    const char *name, *words;
    int32_t     status;
};

static const struct unfit unfits[] = {
    { "future", "needs contract 2 to 3, this library has 1", GRAFT_ERR_VERSION },
    { "demanding", "needs a processor of level 9", GRAFT_ERR_UNSUPPORTED },
    { "renamed", "its note says kernel 'other', its name states kernel 'renamed'", GRAFT_ERR_MODULE },
    { "unnamed", "its note is damaged", GRAFT_ERR_MODULE },
    { "inverted", "its note is damaged", GRAFT_ERR_MODULE },
};

/* Check that the module is skipped with one line of level info, and is never loaded. */
static const char *skipped(const void *arg)
{
    const struct unfit *unfit = arg;
    struct subject      s;
    graft_module_entry  entry;

    put_link(&first, unfit->name, NULL);
    if (!choice_open(&s, first.path)) return watch.fault;
    if (!choice_find(&s, unfit->name, &entry) || entry.state != unfit->status ||
        strstr(entry.detail, unfit->words) == NULL)
        watch_blame("it has state %d: %s", entry.state, entry.detail);
    expect_logged(GRAFT_LOG_INFO, unfit->words, "skipped ");
    expect_ran(&s, "auto", "simd");
    expect_ran(&s, unfit->name, "simd");
    if (strcmp(unfit->name, "renamed") != 0 &&
        (s.api.load_module(s.context, variant(unfit->name), &error) != unfit->status ||
         strstr(error.message, unfit->words) == NULL))
        watch_blame("load_module says: %s", error.message);
    if (dlopen(variant(unfit->name), RTLD_NOW | RTLD_NOLOAD) != NULL) watch_blame("it is loaded");
    for (int i = 0; i < lines.count; i++)
        if (lines.level[i] > GRAFT_LOG_INFO) watch_blame("the log has: %s", lines.text[i]);
    return choice_close(&s);
}

static const char *two_preferences(const void *arg)
{
    struct subject s;

    (void)arg;
    put_link(&first, "boasting", NULL);
    if (!choice_open(&s, first.path)) return watch.fault;
    expect_ran(&s, "auto", "simd");
    expect_logged(GRAFT_LOG_INFO, "preference 1001 in its note and 1000 in its table", "boasting");
    expect_ran(&s, "auto", "simd");
    return choice_close(&s);
}

static void expect_path(struct subject *s, const char *name, const struct data_folder *folder)
{
    graft_module_entry entry;

    if (!choice_find(s, name, &entry)) watch_blame("%s is not listed", name);
    else if (strstr(entry.path, folder->path) == NULL) watch_blame("%s is listed as %s", name, entry.path);
}

/* The folders of module.path are searched in their order, whatever the value of the option was before. A module that is
 * in use stays loaded. */
static const char *first_folder(const void *arg)
{
    struct subject     s;
    graft_module_entry entry;
    char               both[2 * PATH_MAX + 2];

    (void)arg;
    put_link(&first, "noted", NULL);
    put_link(&second, "noted", NULL);
    put_link(&second, "modest", NULL);
    snprintf(both, sizeof both, "%s:%s", second.path, first.path);
    if (!choice_open(&s, first.path)) return watch.fault;
    expect_path(&s, "noted", &first);
    s.api.set(s.context, "module.path", both, &error);
    expect_path(&s, "noted", &second);
    expect_path(&s, "modest", &second);
    expect_logged(GRAFT_LOG_INFO, first.path, "kernel 'noted' was found before in");
    s.api.set(s.context, "module.path", "", &error);
    if (choice_find(&s, "noted", &entry) || choice_find(&s, "modest", &entry)) watch_blame("they are still listed");
    s.api.set(s.context, "module.path", both, &error);
    expect_ran(&s, "auto", "noted");
    s.api.set(s.context, "module.path", first.path, &error);
    expect_path(&s, "noted", &second);
    expect_logged(GRAFT_LOG_INFO, first.path, "kernel 'noted' is in use from");
    if (choice_find(&s, "modest", &entry)) watch_blame("modest is still listed");
    expect_ran(&s, "auto", "noted");
    return choice_close(&s);
}

static void copy_to(const char *from, const struct data_folder *folder, const char *name, mode_t mode)
{
    static char bytes[FILE_BYTES];
    FILE       *in = fopen(from, "rb"), *out = fopen(folder_path(folder, name), "wb");
    size_t      count;

    files_check(in != NULL && out != NULL, from);
    while ((count = fread(bytes, 1, sizeof bytes, in)) > 0) fwrite(bytes, 1, count, out);
    fclose(in);
    files_check(fclose(out) == 0 && chmod(folder_path(folder, name), mode) == 0, name);
}

/* module.path is searched before the library's folder, even if it is set after open(). */
static const char *beside_library(const void *arg)
{
    struct subject s;

    (void)arg;
    copy_to(getenv("GRAFT_LIBRARY"), &second, "libgraft.so", 0755);
    copy_to(variant("noted"), &second, "graft_kernel_noted.so", 0755);
    put_link(&first, "noted", NULL);
    setenv("GRAFT_LIBRARY", folder_path(&second, "libgraft.so"), 1);
    if (!choice_open(&s, "")) return watch.fault;
    expect_path(&s, "noted", &second);
    s.api.set(s.context, "module.path", first.path, &error);
    expect_path(&s, "noted", &first);
    expect_ran(&s, "auto", "noted");
    expect_path(&s, "noted", &first);
    return choice_close(&s);
}

/* A file with the name of a built-in module must be refused, with a line in the log. */
static const char *built_in(const void *arg)
{
    struct subject     s;
    graft_module_entry entry;

    (void)arg;
    put_link(&first, "pretender", "graft_kernel_reference.so");
    if (!choice_open(&s, first.path)) return watch.fault;
    expect_logged(GRAFT_LOG_WARNING, "graft_kernel_reference.so", "kernel 'reference' is built in");
    if (s.api.load_module(s.context, variant("pretender"), &error) != GRAFT_ERR_STATE ||
        strstr(error.message, "kernel 'reference' is built in") == NULL)
        watch_blame("load_module says: %s", error.message);
    if (!choice_find(&s, "reference", &entry) || entry.path[0] != '\0') watch_blame("reference is %s", entry.path);
    expect_ran(&s, "reference", "reference");
    expect_ran(&s, "auto", "simd");
    return choice_close(&s);
}

/* Files whose names look like those of modules, but which are not modules, must be logged. Other files must not be
 * logged. */
static const char *odd_names(const void *arg)
{
    static const char *const odd[] = { "graft_partition_x.so",    "graft_kernel_.so",          "graft_kernel_My.so",
                                       "libgraft_kernel_good.so", "graft_kernel_good.so.1",    "graft_kernel.so",
                                       "graft_kernel_a-b.so",     "graft_kernel_a.so.1.so.so", "graft_.so" };
    static const char *const others[] = { "graft_notes.txt", "good.so", "graft_kernel_good.so.bak", "graft.so" };
    struct subject           s;

    (void)arg;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) put_link(&first, "noted", odd[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) put_link(&first, "noted", others[i]);
    if (!choice_open(&s, first.path)) return watch.fault;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char name[64];
        snprintf(name, sizeof name, "/%s: ", odd[i]);
        expect_logged(GRAFT_LOG_INFO, name, i == 0 ? "none of the kinds" : "a module is named");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char name[64];
        snprintf(name, sizeof name, "/%s: ", others[i]);
        if (choice_logged(GRAFT_LOG_INFO, name, "")) watch_blame("%s is logged", others[i]);
    }
    return choice_close(&s);
}

/* Read a module into memory. */
static size_t read_variant(const char *name, unsigned char *bytes)
{
    FILE  *file = fopen(variant(name), "rb");
    size_t count = file != NULL ? fread(bytes, 1, FILE_BYTES, file) : 0;

    files_check(count > sizeof(Elf64_Ehdr), name);
    fclose(file);
    return count;
}

/* A module for another processor must not be reported as broken. */
static const char *other_machine(const void *arg)
{
    static unsigned char bytes[FILE_BYTES];
    struct subject       s;
    graft_module_entry   entry;
    const size_t         count = read_variant("noted", bytes);
    const Elf64_Half     machine = EM_SPARCV9;

    (void)arg;
    memcpy(bytes + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
    write_file(&first, "graft_kernel_noted.so", bytes, count);
    if (!choice_open(&s, first.path)) return watch.fault;
    if (!choice_find(&s, "noted", &entry) || entry.state != GRAFT_ERR_MODULE) watch_blame("state %d", entry.state);
    expect_logged(GRAFT_LOG_INFO, "another processor: 64 bits and ELF machine 43", "skipped ");
    expect_ran(&s, "auto", "simd");
    return choice_close(&s);
}

/* Files whose headers or notes (graft_module_note) are damaged in one place, or which are truncated. The search must
 * continue and load none of them. */
static const char *hostile(const void *arg)
{
    static const unsigned char odd[] = { 0x00, 0x01, 0x7F, 0x80, 0xFF };
    static unsigned char       bytes[FILE_BYTES];
    struct subject             s;
    const size_t               count = read_variant("noted", bytes);
    const unsigned char       *note = memmem(bytes, count, "Graft\0\0\0H\0\0", 11);
    const size_t               at = note != NULL ? (size_t)(note - bytes) : 0;

    (void)arg;
    if (note == NULL) return "the module has no note";
    if (!choice_open(&s, "")) return watch.fault;
    for (size_t i = 0; i < 64 + 16 * 56 + 96; i++) {
        const size_t        place = i < 64 + 16 * 56 ? i : at - 12 + (i - 64 - 16 * 56);
        const unsigned char was = bytes[place];

        bytes[place] = odd[i % sizeof odd];
        write_file(&first, "graft_kernel_noted.so", bytes, count);
        if (s.api.set(s.context, "module.path", first.path, &error) < 0) watch_blame("%s", error.message);
        bytes[place] = was;
    }
    for (size_t end = 0; end < at + 96; end += end < 1000 ? 7 : 61) {
        write_file(&first, "graft_kernel_noted.so", bytes, end);
        if (s.api.set(s.context, "module.path", first.path, &error) < 0) watch_blame("%s", error.message);
    }
    if (dlopen(folder_path(&first, "graft_kernel_noted.so"), RTLD_NOW | RTLD_NOLOAD) != NULL) watch_blame("loaded");
    remove(folder_path(&first, "graft_kernel_noted.so"));
    /* Opening a pipe could block. */
    files_check(mkfifo(folder_path(&first, "graft_kernel_pipe.so"), 0600) == 0, "mkfifo");
    lines.count = 0;
    s.api.set(s.context, "module.path", first.path, &error);
    expect_logged(GRAFT_LOG_INFO, "graft_kernel_pipe.so", "is a pipe");
    s.api.set(s.context, "module.path", "/no/such/folder", &error);
    expect_logged(GRAFT_LOG_INFO, "skipped folder '/no/such/folder'", "No such file");
    return choice_close(&s);
}

/* This program, started a second time, prints whether it is a set-id program, and whether the kernel in the folder of
 * variable GRAFT_MODULE_PATH is listed. */
static int print_listed(const char *library)
{
    struct subject     s;
    graft_module_entry entry;

    if (setenv("GRAFT_LIBRARY", library, 1) != 0 || subject_open(&s, &error) < 0) return 1;
    printf("%d%d", getauxval(AT_SECURE) != 0, choice_find(&s, "noted", &entry));
    subject_close(&s);
    return 0;
}

static void run_copy(char answer[8])
{
    char  command[3 * PATH_MAX];
    FILE *output;

    snprintf(command, sizeof command, "GRAFT_MODULE_PATH='%s' '%s' --listed '%s'", first.path,
             folder_path(&second, "program"), getenv("GRAFT_LIBRARY"));
    output = popen(command, "r");
    if (output == NULL || fgets(answer, 8, output) == NULL) snprintf(answer, 8, "none");
    if (output != NULL) pclose(output);
}

/* Check that a set-id program ignores the environment variables. */
static void test_set_id(void)
{
    const struct group *other = getgrnam("nogroup");
    char                answer[8];

    put_link(&first, "noted", NULL);
    copy_to("/proc/self/exe", &second, "program", 0755);
    run_copy(answer);
    ok(strcmp(answer, "01") == 0, "GRAFT_MODULE_PATH is read: %s", answer);
    if (other == NULL || chown(folder_path(&second, "program"), (uid_t)-1, other->gr_gid) != 0 ||
        chmod(folder_path(&second, "program"), 02755) != 0) {
        skip(1, "only root can make a set-id program");
        return;
    }
    run_copy(answer);
    if (answer[0] != '1') skip(1, "there is no set-id program in this folder: %s", answer);
    else ok(strcmp(answer, "10") == 0, "but not by a set-id program: %s", answer);
}

static void check_choice(const char *name, const char *(*check)(const void *), const void *arg)
{
    watch_reset(&host);
    ok_fault(name, in_child(check, arg));
    folder_clear(&first);
    folder_clear(&second);
}

int main(int argc, char **argv)
{
    struct sample sample = { 3 };

    strict_host_init(&host);
    watch_reset(&host);
    if (argc == 3 && strcmp(argv[1], "--listed") == 0) return print_listed(argv[2]);
    host.table.log = choice_record;
    folder_create(&first);
    folder_create(&second);
    sample_dataset_init(&set, &sample, 17, 4, 3, 0, 0);
    check_choice("auto chooses a module by its note, whatever ran before", noted_is_best, NULL);
    check_choice("and one that has a lower preference than simd never", modest_is_not, NULL);
    check_choice("a module without a note counts as 1, unless the host loads it", without_note, NULL);
    for (size_t i = 0; i < sizeof unfits / sizeof *unfits; i++) {
        char name[64];
        snprintf(name, sizeof name, "module %s is skipped before it is loaded", unfits[i].name);
        check_choice(name, skipped, &unfits[i]);
    }
    check_choice("a note that says another preference than the table", two_preferences, NULL);
    check_choice("the first folder that has a name counts", first_folder, NULL);
    check_choice("module.path comes before the folder of the library", beside_library, NULL);
    check_choice("nothing replaces the plain loops", built_in, NULL);
    check_choice("odd names are logged", odd_names, NULL);
    check_choice("a module for another processor", other_machine, NULL);
    check_choice("damaged files", hostile, NULL);
    test_set_id();
    sample_dataset_fini(&set);
    folder_destroy(&first);
    folder_destroy(&second);
    return done();
}
