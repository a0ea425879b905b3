/* graft-train, the reference host. It trains a graph neural network through the interfaces in abi/, and demonstrates
 * the order of the calls of a host. run_host(), at the end of this file, has this order. Every step has its own file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"
#include "checkpoint.h"
#include "interrupt.h"
#include "launch.h"
#include "output_file.h"
#include "predict.h"
#include "report.h"
#include "run.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK_KB = 256 };

/** Print a line of the log of the library to standard error. If there is a progress bar, the line is above it. */
static void print_log(void *self, graft_log_level level, const char *message)
{
    static const char *const NAMES[] = { "debug", "info", "warning", "error" };
    struct run              *run = self;

    if (problem_is_silent() || (level < GRAFT_LOG_WARNING && !run->arguments->verbose)) return;
    progress_clear(&run->progress);
    fprintf(stderr, "graft-train: %s: %s\n", NAMES[level < 0 ? 0 : level > 3 ? 3 : level], message);
}

/** Check before training that all outputs can be written. */
static int32_t check_outputs(const struct arguments *arguments, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (arguments->json != NULL) TRY(output_check(arguments->json, error));
    if (arguments->predict != NULL) TRY(output_check(arguments->predict, error));
    if (arguments->probabilities != NULL) TRY(output_check(arguments->probabilities, error));
    if (arguments->profile != NULL) TRY(output_check(arguments->profile, error));
    if (arguments->save != NULL) TRY(checkpoint_prepare(arguments->save, error));
done:
    return rc;
}

/** Returns whether an output was written. Otherwise the function prints the error and sets the exit code. An error on
 *  which all ranks have agreed is printed later, by one rank. */
static int is_written(int32_t rc, const graft_error *error, int *code)
{
    if (rc < 0) *code = rc == GRAFT_ERR_PEER ? problem_code(error) : problem_print(error);
    return rc >= 0;
}

/** Write all requested outputs, most of them on rank 0. If one output fails, the others are still written. Returns the
 *  exit code. */
static int write_outputs(struct run *run)
{
    const char *save = run->arguments->save, *predict = run->arguments->predict, *json = run->arguments->json;
    const char *profile = run->arguments->profile;
    graft_error error = GRAFT_INIT(graft_error);
    int         code = EXIT_FINE;

    if (predict != NULL) run->predicted = is_written(predict_write(run, &error), &error, &code);
    if (save != NULL && !run->saved) {
        const int32_t rc = checkpoint_write(&run->library, run->trainer, run->ranks.rank, save, &error);

        run->saved = is_written(ranks_agree(&run->ranks, rc, &error), &error, &code);
    }
    if (run->ranks.rank > 0) return code;
    if (profile != NULL) run->profiled = is_written(profile_write(&run->profile, profile, &error), &error, &code);
    if (json != NULL) run->reported = is_written(report_write(run, json, &error), &error, &code);
    return code;
}

/** Flush standard output, which may fail, for instance because a disk is full. */
static int flush_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fputs("graft-train: cannot write to standard output\n", stderr);
    return EXIT_PROBLEM;
}

/** Check that all ranks have the same arguments, which determine the actions and the files of the program. The library
 *  compares its options itself. */
static int32_t compare_arguments(struct run *run, graft_error *error)
{
    const struct arguments *a = run->arguments;
    const struct ranks_word words[RANKS_WORDS] = { { "--list-options",
                                                     a->list_options ? a->list_all ? "all" : "" : NULL },
                                                   { "DATASET", a->dataset },
                                                   { "--resume", a->resume },
                                                   { "--model", a->model },
                                                   { "--predict", a->predict },
                                                   { "--vertices", a->vertices },
                                                   { "--probabilities", a->probabilities },
                                                   { "--save", a->save },
                                                   { "--json", a->json },
                                                   { "--profile", a->profile },
                                                   { "--explain", a->explain ? "" : NULL } };

    return ranks_compare(&run->ranks, words, error);
}

/** Set the options, which include the deadline for other ranks, and join the ranks. Then the ranks agree on earlier
 *  errors of single ranks, in the command line (`read`) and in options. */
static int32_t join(struct run *run, const graft_error *read, graft_error *error)
{
    graft_error mine = *read;
    int32_t     rc;

    if (mine.code == GRAFT_OK) mine.code = library_configure(&run->library, run->arguments, &mine);
    TRY(ranks_init(&run->ranks, &run->library, error));
    if (mine.code == GRAFT_OK) mine.code = ranks_prepare(&run->ranks, &mine);
    *error = mine;
    TRY(ranks_agree(&run->ranks, mine.code, error));
    rc = compare_arguments(run, error);
done:
    return rc;
}

static int32_t prepare(struct run *run, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (run->ranks.rank == 0) rc = check_outputs(run->arguments, error);
    TRY(ranks_agree(&run->ranks, rc, error));
    TRY(run_init(run, error));
    if (run->model != NULL) rc = ranks_agree(&run->ranks, predict_write(run, error), error);
    else rc = run_train(run, error);
done:
    return rc;
}

/** Print an error that occurred before the ranks have joined. Each rank prints its own error, with its rank. */
static int print_alone(const graft_error *error)
{
    if (launch_size() == 1) return problem_print(error);
    fprintf(stderr, "graft-train: rank %d: %s\n", launch_rank(), error->message);
    return problem_code(error);
}

/** Print an error on which all ranks have agreed. Rank 0 prints it. If rank 0 failed it may not be able to print, so
 *  rank 1 prints it. */
static int print_agreed(struct run *run, const graft_error *error)
{
    const int speaker = error->code == GRAFT_ERR_PEER && error->rank == 0 ? 1 : 0;

    if (run->ranks.group == NULL) return print_alone(error);
    problem_silence(run->ranks.rank != speaker);
    return problem_print(error);
}

/** Print where the predictions of a saved model are. Over ranks rank 0 has written them. */
static int print_predictions(const struct run *run)
{
    const struct arguments *a = run->arguments;

    if (run->ranks.rank == 0 && a->predict != NULL) printf("predictions     %s\n", a->predict);
    if (run->ranks.rank == 0 && a->probabilities != NULL) printf("probabilities   %s\n", a->probabilities);
    return EXIT_FINE;
}

/** End the program after a call was cancelled before the first result. Returns the exit code. */
static int stop_early(struct run *run, graft_error *error)
{
    if (run_settle(run, error) < 0) return print_agreed(run, error);
    if (run->ranks.rank == 0) fputs("graft-train: interrupted before there was anything to save\n", stderr);
    return 128 + run->signal;
}

static int train(struct run *run, graft_error *error)
{
    graft_error late = GRAFT_INIT(graft_error);
    int32_t     rc;
    int         code;

    /* A signal may end a single process until training begins. Over ranks all ranks must be notified of a signal. */
    if (run->ranks.n_ranks > 1) interrupt_begin(run->library.api);
    rc = prepare(run, error);
    if (rc == GRAFT_ERR_CANCELLED) return stop_early(run, error);
    if (rc < 0) return print_agreed(run, error);
    if (run->model != NULL) return print_predictions(run);
    code = write_outputs(run);
    if (run->profile.count > 0) profile_print(&run->profile, run_seconds(run));
    report_print(run);
    if (code == EXIT_FINE && run->signal != 0) code = 128 + run->signal;
    if (ranks_largest(&run->ranks, &code, &late) < 0) code = print_agreed(run, &late);
    return code;
}

static int list_options(const struct library *library, int all, graft_error *error)
{
    return library_list_options(library, all, error) < 0 ? problem_print(error) : EXIT_FINE;
}

static int work(struct run *run, const graft_error *read)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (join(run, read, &error) < 0) return print_agreed(run, &error);
    return run->arguments->list_options ? list_options(&run->library, run->arguments->list_all, &error)
                                        : train(run, &error);
}

/** Open closed standard files, so that no other file gets their descriptors. Ignore SIGXFSZ, so that writing too large
 *  a file is an error. */
static void prepare_process(void)
{
    int fd;

    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
    signal(SIGXFSZ, SIG_IGN);
}

static int has_stack(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_KB * 1024) return 1;
    fprintf(stderr, "graft-train: the stack may have %d kB, expected %d or more (ulimit -s)\n",
            (int)(limit.rlim_cur / 1024), STACK_KB);
    return 0;
}

/** Run the program. This is a separate function, because the stack frame of main() would use the stack before its size
 *  is checked. */
static __attribute__((noinline)) int run_host(int argc, char **argv)
{
    struct arguments arguments;
    struct run       run = { .arguments = &arguments, .began = progress_clock() };
    graft_host       host = GRAFT_INIT(graft_host);
    graft_error      error = GRAFT_INIT(graft_error), read = GRAFT_INIT(graft_error);
    int              code;

    if (launch_rank() > 0) { /* only rank 0 prints */
        problem_silence(1);
        if (freopen("/dev/null", "w", stdout) == NULL) return EXIT_PROBLEM;
    }
    setlocale(LC_CTYPE, ""); /* for UTF-8 or ASCII output; LC_NUMERIC is unchanged */
    arguments_init(&arguments, argc, argv, &read);
    host.self = &run;
    host.log = print_log;
    if (library_init(&run.library, &host, &error) < 0) code = print_alone(&error);
    else code = work(&run, &read);
    code = flush_output(code);
    interrupt_end();
    run_fini(&run, code);
    library_fini(&run.library);
    arguments_fini(&arguments);
    return code;
}

int main(int argc, char **argv)
{
    prepare_process();
    return has_stack() ? run_host(argc, argv) : EXIT_PROBLEM;
}
