/* The parts that all targets share. A target defines three functions. Compiled with -DGRAFT_FUZZ and -fsanitize=fuzzer
 * they are a fuzz target. Otherwise they are a test whose arguments are files or folders of files; it calls
 * target_fault() for each file, or TARGET_REPLAYS(path, bytes, count) if that is defined.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include "data_memory.h"
#include "graft_load.h"
#include "harness/tap.h"

#include <sys/stat.h>

/** The functions that each target defines: what to do before the first input, what to do after the last one, and how to
 * run one input. The last one returns NULL, or says what is wrong. */
void        target_begin(void);
void        target_end(void);
const char *target_fault(const uint8_t *bytes, size_t count);

/** A supply of bytes, which are taken from the beginning of an input. When the input is used up, it supplies zeros. */
struct supply {
    const uint8_t *at, *end;
};

UNUSED static uint8_t supply_byte(struct supply *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

UNUSED static void supply_bytes(struct supply *s, void *to, size_t count)
{
    for (size_t i = 0; i < count; i++) ((uint8_t *)to)[i] = supply_byte(s);
}

UNUSED static int32_t supply_i32(struct supply *s)
{
    int32_t value;

    supply_bytes(s, &value, sizeof value);
    return value;
}

UNUSED static int64_t supply_i64(struct supply *s)
{
    int64_t value;

    supply_bytes(s, &value, sizeof value);
    return value;
}

/** Load the library with an allocator that counts. If that fails, the program ends. */
UNUSED static const graft_api *target_load(struct memory *counted)
{
    graft_host       host = GRAFT_INIT(graft_host);
    graft_error      error = GRAFT_INIT(graft_error);
    const graft_api *loaded = NULL;

    host.self = counted;
    host.allocate = data_allocate;
    host.deallocate = data_deallocate;
    if (graft_load(getenv("GRAFT_LIBRARY"), &host, &loaded, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        exit(2);
    }
    return loaded;
}

#ifdef GRAFT_FUZZ

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    folders_in_memory();
    target_begin();
    atexit(target_end);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const char *fault = target_fault(bytes, count);

    if (fault != NULL) {
        fprintf(stderr, "%s\n", fault);
        abort();
    }
    return 0;
}

#else

#ifdef TARGET_REPLAYS
static void TARGET_REPLAYS(const char *path, const uint8_t *bytes, size_t count);
#else
static void replay_input(const char *path, const uint8_t *bytes, size_t count)
{
    const char *fault = target_fault(bytes, count);

    ok_or(fault == NULL, fault, "%s", strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path);
}
#define TARGET_REPLAYS replay_input
#endif

static void replay_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE          *file = fopen(path, "rb");
    uint8_t       *exact; /* a copy without spare bytes, so that a sanitizer finds an access beyond its end */
    size_t         count;

    files_check(file != NULL, path);
    count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    exact = malloc(count + (count == 0));
    files_check(exact != NULL, "malloc");
    memcpy(exact, bytes, count);
    TARGET_REPLAYS(path, exact, count);
    free(exact);
}

static void replay(const char *path)
{
    struct stat     status;
    struct dirent **items;
    int             count;

    files_check(stat(path, &status) == 0, path);
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path);
        return;
    }
    count = scandir(path, &items, NULL, alphasort);
    files_check(count >= 0, path);
    for (int i = 0; i < count; i++) {
        char name[PATH_MAX];

        snprintf(name, sizeof name, "%.3000s/%s", path, items[i]->d_name);
        if (items[i]->d_name[0] != '.') replay_file(name);
        free(items[i]);
    }
    free(items);
}

int main(int argc, char **argv)
{
    folders_in_memory();
    target_begin();
    for (int i = 1; i < argc; i++) replay(argv[i]);
    target_end();
    return done();
}

#endif

#endif
