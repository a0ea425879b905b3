/* Checks files of models: a save that fails, or is killed at any step, must leave the last good file and the one before
 * it; load() must tell which of them is good; and a prediction must not take the memory of training. The test replaces
 * functions of the C library through which the library writes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "harness/files.h"
#include "harness/outputs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 40, FEATURES = 5, CLASSES = 3 };

static struct strict_host     memory;
static const graft_api       *api;
static const graft_train_api *train;
static const graft_model_api *models;
static struct sample_dataset  set;
static graft_error            error = { .size = sizeof error };
static char                   folder[64], path[128], previous[160];

/* -- writes that go wrong ---------------------------------------------------------------------------------------- */

/* Steps after which the process is killed. There is one before and one after each change of the disk. */
static int64_t steps_left = INT64_MAX;
static int     has_links = 1;

static void disk_step(void)
{
    if (steps_left-- <= 0) kill(getpid(), SIGKILL);
}

static int64_t bytes_left = INT64_MAX; /* bytes that the disk still takes */
static int     dies;                   /* whether the process is killed then; otherwise the disk is full */

/* Replaces the function of the C library, also for libgraft.so. */
ssize_t pwrite(int fd, const void *from, size_t count, off_t offset)
{
    const size_t  some = (int64_t)count < bytes_left ? count : (size_t)bytes_left;
    const ssize_t written = some > 0 ? syscall(SYS_pwrite64, fd, from, some, offset) : 0;

    disk_step();
    bytes_left -= written > 0 ? written : 0;
    if (some == count || written > 0) return written;
    if (dies) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
}

int link(const char *from, const char *to)
{
    int made;

    disk_step();
    if (!has_links) return errno = EPERM, -1;
    made = (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    disk_step();
    return made;
}

int rename(const char *from, const char *to)
{
    int made;

    disk_step();
    made = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    disk_step();
    return made;
}

/* One pipe signals that a save has stopped before it is flushed, and the other lets it continue. */
static int pauses[2] = { -1, -1 };

int fsync(int fd)
{
    char byte = 0;

    disk_step();
    if (pauses[0] >= 0 && (write(pauses[0], &byte, 1) != 1 || read(pauses[1], &byte, 1) != 1)) _exit(6);
    pauses[0] = -1;
    return (int)syscall(SYS_fsync, fd);
}

/* -- helpers ----------------------------------------------------------------------------------------------------- */

static graft_trainer *new_trainer(const char *settings)
{
    graft_trainer *trainer = NULL;
    char           text[160];

    snprintf(text, sizeof text, "%s", settings);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        char *equals = strchr(word, '=');

        *equals = '\0';
        if (api->set(api->context, word, equals + 1, &error) < 0) printf("Bail out! %s\n", error.message), exit(2);
    }
    if (train->create(api->context, &set.dataset, &trainer, &error) < 0)
        printf("Bail out! %s\n", error.message), exit(2);
    return trainer;
}

/* The first weight, which differs between models. */
static float first_weight(graft_model *model)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    return model != NULL && models->item(model, 0, &item, NULL) == GRAFT_OK ? ((const float *)item.data)[0] : NAN;
}

/* The first weight of the model in a file, or NAN if the file is not good. */
static float weight_in(const char *file)
{
    graft_model *model = NULL;
    float        weight;

    models->load(api->context, NULL, file, &model, &error);
    weight = first_weight(model);
    models->destroy(model);
    return weight;
}

static int64_t length_of(const char *file)
{
    struct stat status;

    return stat(file, &status) == 0 ? (int64_t)status.st_size : -1;
}

static void cut_file(const char *file, int64_t bytes)
{
    if (truncate(file, bytes) != 0) printf("Bail out! %s cannot be cut\n", file), exit(2);
}

static graft_model *model_of_seed(const char *seed)
{
    graft_trainer *trainer;
    graft_model   *model = NULL;
    char           settings[64];

    snprintf(settings, sizeof settings, "layers=2 hidden=4 seed=%s", seed);
    trainer = new_trainer(settings);
    if (models->create(trainer, GRAFT_MODEL_STATE, &model, &error) < 0)
        printf("Bail out! %s\n", error.message), exit(2);
    train->destroy(trainer);
    return model;
}

/* -- tests ------------------------------------------------------------------------------------------------------- */

/* The disk is full after any number of bytes: save() must fail and leave the old file. */
static void test_full_disk(graft_model *old, graft_model *next)
{
    const float   expected = first_weight(old);
    const int64_t length = length_of(path);
    int64_t       bytes = 0;
    int           fine = 1;

    for (; bytes < length && fine; bytes++) {
        bytes_left = bytes;
        dies = 0;
        fine = models->save(next, path, &error) == GRAFT_ERR_IO && error.native_code == ENOSPC;
        bytes_left = INT64_MAX;
        if (bytes % 64 == 0) fine = fine && weight_in(path) == expected;
    }
    fine = fine && weight_in(path) == expected && length_of(previous) < 0;
    if (!ok(fine && length > 1000, "a disk that gets full at any of %lld bytes leaves the old file unchanged",
            (long long)length))
        diag("%lld bytes: %s", (long long)bytes - 1, error.message);
}

/* Open a context in a child process, and load a model into it. */
static graft_model *load_in_child(const char *from, const graft_model_api **mine)
{
    const graft_api *own = NULL;
    graft_model     *model = NULL;

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &own, NULL) < 0) _exit(3);
    *mine = graft_interface(own, GRAFT_MODEL_ID, sizeof(graft_model_api));
    if ((*mine)->load(own->context, NULL, from, &model, NULL) < 0) _exit(4);
    return model;
}

/* Like the previous test, but the process is killed. */
static void test_killed(graft_model *old)
{
    const float   expected = first_weight(old);
    const int64_t length = length_of(path);
    int64_t       bytes = 0;
    int           fine = 1;

    for (; bytes < length && fine; bytes += 37) {
        const pid_t child = fork();
        int         status = 0;

        if (child == 0) {
            const graft_model_api *mine;
            graft_model           *model = load_in_child(path, &mine);

            bytes_left = bytes;
            dies = 1;
            mine->save(model, path, NULL);
            _exit(5);
        }
        fine = child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
               weight_in(path) == expected;
        fine = fine && models->save(old, path, &error) == GRAFT_OK && files_in(folder) == 2;
    }
    if (!ok(fine, "a process that is killed while it saves leaves the old file, and the next save removes the rest"))
        diag("%lld bytes, %lld files", (long long)bytes, (long long)files_in(folder));
}

/* While a save takes long in another process, other saves run. They must not mistake its temporary file for that of a
 * dead process and remove it. */
static void test_paused(graft_model *old)
{
    int   said[2], go[2], status = 0, fine;
    char  byte = 0;
    pid_t child;

    if (pipe(said) != 0 || pipe(go) != 0) exit(2);
    child = fork();
    if (child == 0) {
        const graft_model_api *mine;
        graft_model           *model = load_in_child(path, &mine);

        pauses[0] = said[1];
        pauses[1] = go[0];
        _exit(mine->save(model, path, NULL) == GRAFT_OK ? 0 : 5);
    }
    fine = read(said[0], &byte, 1) == 1;
    for (int i = 0; i < 3; i++) fine = fine && models->save(old, path, &error) == GRAFT_OK && files_in(folder) == 3;
    fine = write(go[1], &byte, 1) == 1 && fine;
    fine = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 && fine;
    ok(fine && files_in(folder) == 2, "a save that takes long succeeds while other processes save");
    for (int i = 0; i < 2; i++) close(said[i]), close(go[i]);
    unlink(previous);
}

/* Save in a child process that is killed after so many steps. The result is whether it was killed. */
static int save_and_die(const char *from, int64_t steps)
{
    const pid_t child = fork();
    int         status = 0;

    if (child == 0) {
        const graft_model_api *mine;
        graft_model           *model = load_in_child(from, &mine);

        steps_left = steps;
        _exit(mine->save(model, path, NULL) == GRAFT_OK ? 0 : 5);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
        printf("Bail out! a process could not save\n"), exit(2);
    return WIFSIGNALED(status);
}

/* Kill a save at each step, with hard links or without, and through a symbolic link. There must always be a whole file
 * and the one before it. */
static void test_steps(graft_model *const at[3], int links, int symbolic)
{
    char    third[160], target[160];
    int64_t steps = 0;
    int     fine = 1, killed = 1;

    snprintf(third, sizeof third, "%s/third", folder);
    snprintf(target, sizeof target, "%s/target", folder);
    unlink(path);
    unlink(previous);
    models->save(at[0], symbolic ? target : path, &error);
    if (symbolic && symlink("target", path) != 0) fine = 0;
    models->save(at[2], third, &error);
    has_links = links;
    for (; fine && killed; steps++) {
        struct stat status;
        float       now;

        fine = models->save(at[0], path, &error) == GRAFT_OK && models->save(at[1], path, &error) == GRAFT_OK &&
               files_in(folder) == 3 + symbolic;
        killed = save_and_die(third, steps);
        now = weight_in(path);
        fine = fine && (now == first_weight(at[2]) || (killed && now == first_weight(at[1])));
        now = weight_in(previous);
        fine = fine && (now == first_weight(at[1]) || (killed && now == first_weight(at[0])));
        if (symbolic)
            fine = fine && lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && weight_in(target) == weight_in(path);
    }
    has_links = 1;
    ok(fine && steps > 6,
       "a process that is killed at any of %lld steps%s%s leaves a complete file and the one "
       "before it, and the next save no others",
       (long long)steps, links ? "" : " without hard links", symbolic ? " behind a symbolic link" : "");
    unlink(path);
    unlink(previous);
    unlink(third);
    unlink(target);
}

/* Save through a link to `to`, which must become the file of this name in the folder. */
static const char *dangling_fault(graft_model *model, const char *to, const char *name)
{
    char        target[160];
    struct stat status;
    const char *fault = NULL;

    snprintf(target, sizeof target, "%s/%s", folder, name);
    unlink(path);
    if (symlink(to, path) != 0) return "no link";
    if (models->save(model, path, &error) < 0) fault = error.message;
    else if (lstat(path, &status) != 0 || !S_ISLNK(status.st_mode)) fault = "the link is replaced";
    else if (weight_in(target) != first_weight(model)) fault = "its target is not the file";
    unlink(path);
    unlink(target);
    return fault;
}

/* The target of a link need not exist. */
static void test_dangling(graft_model *model)
{
    char        absolute[160], second[160];
    struct stat status;

    snprintf(absolute, sizeof absolute, "%s/target", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    ok_fault("a link to a file that does not exist stays, and its target is the file",
             dangling_fault(model, "target", "target"));
    ok_fault("a link with an absolute path stays, and its target is the file",
             dangling_fault(model, absolute, "target"));
    if (symlink("target", second) == 0)
        ok_fault("a link to a link stays, and its target is the file", dangling_fault(model, "second", "target"));
    unlink(second);
    ok(symlink("model", second) == 0 && symlink("second", path) == 0 &&
           models->save(model, second, &error) == GRAFT_ERR_IO && error.native_code == ELOOP &&
           lstat(path, &status) == 0 && S_ISLNK(status.st_mode),
       "links in a cycle stay, and save() returns ERR_IO");
    unlink(second);
    unlink(path);
}

static void test_generations(graft_model *first, graft_model *second, graft_model *third)
{
    ok(models->save(second, path, &error) == GRAFT_OK && weight_in(path) == first_weight(second) &&
           weight_in(previous) == first_weight(first),
       "a second save keeps the file of the first one as the previous file");
    ok(models->save(third, path, &error) == GRAFT_OK && weight_in(previous) == first_weight(second),
       "a third save replaces the previous file by that of the second one");
    cut_file(path, length_of(path) - 1);
    ok_or(isnan(weight_in(path)) && error.code == GRAFT_ERR_FORMAT && strstr(error.message, ".previous' is good"),
          error.message, "where a file is damaged, load() says that the one before it is good");
    ok(models->save(first, path, &error) == GRAFT_OK && weight_in(previous) == first_weight(second),
       "a damaged file does not replace the previous file, which is good");
    unlink(path);
    ok(isnan(weight_in(path)) && error.code == GRAFT_ERR_NOT_FOUND && strstr(error.message, ".previous' is good"),
       "if the file is missing, load() says that the previous file is good");
    ok(models->save(first, path, &error) == GRAFT_OK, "if the file is missing, a model can be saved again");
    cut_file(path, 20);
    cut_file(previous, 30);
    ok_or(isnan(weight_in(path)) && strstr(error.message, ".previous' is not good either"), error.message,
          "where both are damaged, load() says that");
}

static void flip_bit_at(const char *file, long at, int whence)
{
    FILE *f = fopen(file, "r+b");
    int   byte;

    if (f == NULL || fseek(f, at, whence) != 0 || (byte = fgetc(f)) == EOF) exit(2);
    fseek(f, at, whence);
    fputc(byte ^ 1, f);
    fclose(f);
}

/* A bit that flips in the weights of a file must be noticed, with the byte. */
static void test_checksum_of(const char *file)
{
    flip_bit_at(file, -5, SEEK_END);
    ok_or(isnan(weight_in(file)) && strstr(error.message, "CRC32C") != NULL && strstr(error.message, "from byte"),
          error.message, "a changed bit of a weight is noticed");
}

/* A file with a damaged header must be refused, and not become the previous file. */
static void test_header_checksum(graft_model *old, graft_model *next)
{
    models->save(old, path, &error);
    models->save(next, path, &error);
    flip_bit_at(path, 28, SEEK_SET); /* inside of the format text */
    ok_or(isnan(weight_in(path)) && strstr(error.message, "from byte 8 to byte ") != NULL, error.message,
          "a changed bit of a text is noticed");
    ok(models->save(next, path, &error) == GRAFT_OK && weight_in(previous) == first_weight(old),
       "a file with a changed bit does not replace the previous file, which is good");
}

/* The checksums of a large tensor must show which part of it is damaged. */
static void test_blocks(void)
{
    graft_trainer *trainer = new_trainer("model=mlp layers=3 hidden=700 seed=1"); /* its weights have 1960000 bytes */
    graft_model   *model = NULL;
    long long      begin = 0, end = 0, length;
    const char    *place;

    if (models->create(trainer, GRAFT_MODEL_LAST, &model, &error) < 0) exit(2);
    train->destroy(trainer);
    ok(models->save(model, path, &error) == GRAFT_OK && weight_in(path) == first_weight(model),
       "tensors of several blocks are saved and loaded");
    models->destroy(model);
    length = length_of(path);
    for (long long at = length - 1900000; at < length; at += 400000) {
        flip_bit_at(path, (long)at, SEEK_SET);
        weight_in(path);
        place = strstr(error.message, "from byte");
        ok_or(place != NULL && sscanf(place, "from byte %lld to byte %lld", &begin, &end) == 2 && begin <= at &&
                  at < end && end - begin <= 1 << 20,
              error.message, "a changed bit at byte %lld of %lld is in bytes %lld to %lld", at, length, begin, end);
        flip_bit_at(path, (long)at, SEEK_SET);
    }
    ok(!isnan(weight_in(path)), "a file whose changed bit is restored is loaded");
}

/* Copy a file with `count` texts in place of the checksums. */
static void write_texts(const char *from, const char *to, int count)
{
    static char text[1 << 16], bytes[1 << 16];
    FILE       *file = fopen(from, "rb");
    uint64_t    header = 0, length;
    const char *sum;
    size_t      n, used;

    if (file == NULL || fread(&header, 8, 1, file) != 1 || fread(bytes, 1, header, file) != header) exit(2);
    bytes[header] = '\0';
    sum = strstr(bytes, "\"crc32c\"");
    used = (size_t)(sum - bytes);
    memcpy(text, bytes, used);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"more.%d\":\"1\"", i > 0 ? "," : "", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", strchr(sum, '}'));
    while (used % 8 != 0) text[used++] = ' ';
    n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    file = fopen(to, "wb");
    length = used;
    if (fwrite(&length, 8, 1, file) != 1 || fwrite(text, 1, used, file) != used || fwrite(bytes, 1, n, file) != n)
        exit(2);
    fclose(file);
}

/* A file of another program may have as many texts as load() takes. What is saved from it can be loaded and has
 * checksums. */
static void test_many_texts(graft_model *model)
{
    char         foreign[160];
    graft_model *loaded = NULL;
    int          count = 1;

    snprintf(foreign, sizeof foreign, "%s/foreign", folder);
    models->save(model, path, &error);
    while (count < 300 && (write_texts(path, foreign, count), !isnan(weight_in(foreign)))) count++;
    write_texts(path, foreign, count - 1);
    ok(count > 100 && count < 256 && models->load(api->context, NULL, foreign, &loaded, &error) == GRAFT_OK,
       "a file with %d additional texts is loaded, and one with %d is refused", count - 1, count);
    ok(models->save(loaded, path, &error) == GRAFT_OK && weight_in(path) == first_weight(model),
       "a model that was loaded with additional texts can be saved and loaded: %s", error.message);
    models->destroy(loaded);
    test_checksum_of(path);
}

/* Weights of 12 MB predict a data set of a few kB without optimiser, gradients or a copy. */
static void test_prediction_memory(void)
{
    graft_trainer *trainer = new_trainer("model=mlp layers=3 hidden=1700 seed=1");
    graft_model   *model = NULL;
    int32_t        labels[N];
    int64_t        before, calls;
    int            fine = models->create(trainer, GRAFT_MODEL_LAST, &model, &error) == GRAFT_OK;

    train->destroy(trainer);
    before = memory.live_bytes;
    ok(fine && before > 11000000 && before < 13000000, "a model of weights alone has one copy of its weights");
    memory.most_bytes = memory.live_bytes;
    calls = memory.calls;
    output_clear(labels, sizeof labels);
    fine = models->predict(model, GRAFT_WEIGHTS_LAST, &set.dataset, labels, NULL, &error) == GRAFT_OK;
    for (int i = 0; i < N; i++) fine = fine && labels[i] >= 0;
    if (!ok(fine && memory.most_bytes - before < 2500000 && memory.calls > calls,
            "a prediction needs less memory than the weights"))
        diag("%lld bytes, %s", (long long)(memory.most_bytes - before), error.message);
    ok(memory.live_bytes == before, "a prediction frees the memory that it needs");
    models->destroy(model);
}

int main(void)
{
    struct sample sample = { 3 };
    graft_model  *at[3];

    strict_host_init(&memory);
    if (graft_load(getenv("GRAFT_LIBRARY"), &memory.table, &api, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        return 2;
    }
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof(graft_train_api));
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof(graft_model_api));
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    snprintf(folder, sizeof folder, "/tmp/graft-model-XXXXXX");
    if (mkdtemp(folder) == NULL) return 2;
    snprintf(path, sizeof path, "%s/model", folder);
    snprintf(previous, sizeof previous, "%s.previous", path);
    at[0] = model_of_seed("1"), at[1] = model_of_seed("2"), at[2] = model_of_seed("3");
    ok(models->save(at[0], path, &error) == GRAFT_OK && weight_in(path) == first_weight(at[0]),
       "a model is saved to a file");
    test_full_disk(at[0], at[1]);
    test_killed(at[0]);
    test_paused(at[0]);
    for (int i = 0; i < 4; i++) test_steps(at, i % 2, i / 2);
    test_dangling(at[0]);
    models->save(at[0], path, &error);
    test_generations(at[0], at[1], at[2]);
    models->save(at[0], path, &error);
    test_checksum_of(path);
    test_header_checksum(at[0], at[1]);
    test_blocks();
    test_many_texts(at[0]);
    for (int i = 0; i < 3; i++) models->destroy(at[i]);
    test_prediction_memory();
    sample_dataset_fini(&set);
    api->close(api->context);
    ok(memory.live_bytes == 0 && memory.fault == NULL, "no memory is left after the context is closed");
    remove_folder(folder);
    return done();
}
