/* Parses the command line with argp of the GNU C library.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1 /* memfd_create(), and dladdr() in find_library.h */
#include "arguments.h"
#include "launch.h"
#include "problem.h"

#include "../find_library.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    KEY_SET = 's',
    KEY_KERNEL = 'k',
    KEY_VERBOSE = 'v',
    KEY_JSON = 256,
    KEY_PREDICT,
    KEY_MODEL,
    KEY_VERTICES,
    KEY_PROBABILITIES,
    KEY_PROFILE,
    KEY_SAVE,
    KEY_RESUME,
    KEY_EXPLAIN,
    KEY_LIST
};

static const struct argp_option OPTIONS[] = {
    { "set", KEY_SET, "KEY=VALUE", 0, "Set an option of the library; more KEY=VALUE may follow", 0 },
    { "kernel", KEY_KERNEL, "NAME", 0, "Kernel of the sparse products: --set mxm.kernel=NAME", 0 },
    { "json", KEY_JSON, "FILE", 0, "Write results, options and history as JSON", 0 },
    { "predict", KEY_PREDICT, "FILE.npy", 0,
      "Write the predicted class of every vertex, or float outputs (best weights)", 0 },
    { "model", KEY_MODEL, "FILE", 0,
      "Do not train: write predictions of this saved model (--predict, --probabilities); DIR/checkpoint.safetensors is "
      "a saved model",
      0 },
    { "vertices", KEY_VERTICES, "FILE.npy", 0,
      "With --model: predict only the vertices of this list, int64 or int32 [m], in its order", 0 },
    { "probabilities", KEY_PROBABILITIES, "FILE.npy", 0,
      "With --model: write the probability of each class, float32 [n, classes]", 0 },
    { "profile", KEY_PROFILE, "FILE", 0, "Write the time of each phase as a Chrome trace, and print a summary", 0 },
    { "save", KEY_SAVE, "DIR", 0,
      "Write DIR/checkpoint.safetensors at the end, when interrupted, or the last good state if training diverges; "
      "rank R > 0 writes its caches to DIR/checkpoint.rank-R.safetensors",
      0 },
    { "resume", KEY_RESUME, "DIR", 0,
      "Continue from DIR/checkpoint.safetensors, rank R > 0 with the caches in DIR/checkpoint.rank-R.safetensors; the "
      "option epochs counts in total",
      0 },
    { "explain", KEY_EXPLAIN, NULL, 0,
      "Print memory by purpose before training, and the measured peak after it (only the first with --set epochs=0)",
      0 },
    { "list-options", KEY_LIST, "all", OPTION_ARG_OPTIONAL, "List the usual options of the library, or all, and exit",
      0 },
    { "verbose", KEY_VERBOSE, NULL, 0, "Print the whole log of the library, not only warnings", 0 },
    { NULL, 0, NULL, 0, NULL, 0 },
};

struct parse {
    struct arguments *arguments;
    int               in_settings; /* whether the previous argument was --set KEY=VALUE or belonged to it */
};

/** Returns whether the text is KEY=VALUE. A '/' identifies a path that contains a '='. */
static int is_setting(const char *text)
{
    const char *end = text;

    while (isalnum((unsigned char)*end) || *end == '_' || *end == '.') end++;
    return end > text && *end == '=';
}

static void take_setting(struct parse *parse, const char *text, struct argp_state *state)
{
    if (!is_setting(text)) argp_failure(state, EXIT_USAGE, 0, "--set expects KEY=VALUE, found '%s'", text);
    parse->arguments->settings[parse->arguments->n_settings++] = text;
}

static void take_positional(struct parse *parse, const char *text, struct argp_state *state)
{
    struct arguments *arguments = parse->arguments;

    if (parse->in_settings && is_setting(text)) {
        take_setting(parse, text, state);
        return;
    }
    parse->in_settings = 0;
    if (arguments->dataset != NULL) {
        argp_failure(state, EXIT_USAGE, 0, "one DATASET is expected, found '%s' and '%s'", arguments->dataset, text);
    }
    arguments->dataset = text;
}

/** Refuse arguments that cannot be combined with a saved model, and arguments that require one. */
static void check_model(const struct arguments *a, struct argp_state *state)
{
    if (a->model == NULL && (a->vertices != NULL || a->probabilities != NULL))
        argp_failure(state, EXIT_USAGE, 0, "%s needs --model FILE",
                     a->vertices != NULL ? "--vertices" : "--probabilities");
    if (a->model == NULL) return;
    if ((a->predict == NULL && a->probabilities == NULL) || a->resume != NULL || arguments_report(a))
        argp_failure(state, EXIT_USAGE, 0,
                     "--model FILE needs --predict or --probabilities, and writes nothing else: no --resume, --save, "
                     "--json or --profile");
}

static error_t parse_one(int key, char *text, struct argp_state *state)
{
    struct parse     *parse = state->input;
    struct arguments *arguments = parse->arguments;

    if (key == ARGP_KEY_ARG) {
        take_positional(parse, text, state);
        return 0;
    }
    parse->in_settings = key == KEY_SET;
    switch (key) {
    case KEY_SET: take_setting(parse, text, state); return 0;
    case KEY_KERNEL: arguments->kernel = text; return 0;
    case KEY_JSON: arguments->json = text; return 0;
    case KEY_PREDICT: arguments->predict = text; return 0;
    case KEY_MODEL: arguments->model = text; return 0;
    case KEY_VERTICES: arguments->vertices = text; return 0;
    case KEY_PROBABILITIES: arguments->probabilities = text; return 0;
    case KEY_PROFILE: arguments->profile = text; return 0;
    case KEY_SAVE: arguments->save = text; return 0;
    case KEY_RESUME: arguments->resume = text; return 0;
    case KEY_EXPLAIN: arguments->explain = 1; return 0;
    case KEY_LIST:
        if (text != NULL && strcmp(text, "all") != 0)
            argp_failure(state, EXIT_USAGE, 0, "--list-options expects 'all' or nothing, found '%s'", text);
        arguments->list_options = 1;
        arguments->list_all = text != NULL;
        return 0;
    case KEY_VERBOSE: arguments->verbose = 1; return 0;
    case ARGP_KEY_END:
        if (arguments->dataset == NULL && !arguments->list_options) {
            argp_failure(state, EXIT_USAGE, 0,
                         "a DATASET is expected, a folder of .npy files or a .mtx file; see --help");
        }
        check_model(arguments, state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_library(FILE *stream, struct argp_state *state)
{
    (void)state;
    print_version(stream, "graft-train", NULL);
}

int arguments_report(const struct arguments *a)
{
    return a->save != NULL || a->json != NULL || a->profile != NULL;
}

/** Returns whether an argument, such as --help, makes argp print a text and exit. */
static int is_question(int argc, char **argv)
{
    static const char *const QUESTIONS[] = { "--help", "-?", "--usage", "--version", "-V" };

    for (int i = 1; i < argc; i++)
        for (size_t q = 0; q < sizeof QUESTIONS / sizeof *QUESTIONS; q++)
            if (strcmp(argv[i], QUESTIONS[q]) == 0) return 1;
    return 0;
}

/** Redirect standard error to a file in memory. Returns its old descriptor, or -1. */
static int keep_errors(int *file)
{
    const int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    *file = memfd_create("errors", MFD_CLOEXEC);
    if (before >= 0 && *file >= 0 && dup2(*file, STDERR_FILENO) >= 0) return before;
    if (before >= 0) close(before);
    if (*file >= 0) close(*file);
    return -1;
}

/** Restore standard error. The message that argp printed is stored in `error`, without the name of the program. */
static int32_t take_errors(int file, int before, graft_error *error)
{
    char          said[sizeof error->message];
    const ssize_t length = pread(file, said, sizeof said - 1, 0);
    const size_t  name = strlen(program_invocation_short_name) + 2;

    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
    if (length <= 0) return GRAFT_OK;
    said[length] = '\0';
    said[strcspn(said, "\n")] = '\0'; /* a second line mentions --help */
    return problem(error, GRAFT_ERR_OPTION, "%s", said + (strlen(said) > name ? name : 0));
}

int32_t arguments_init(struct arguments *arguments, int argc, char **argv, graft_error *error)
{
    static const struct argp ARGP = {
        .options = OPTIONS,
        .parser = parse_one,
        .args_doc = "DATASET",
        .doc = "Train a graph neural network on DATASET, a folder of .npy files or a Matrix Market file."
               "\vThe library is $GRAFT_LIBRARY, else the one that was built or installed with this program. "
               "Exit status: 0 fine, 1 failure, 2 wrong usage, 130 interrupted.",
    };
    struct parse parse = { arguments, 0 };
    int          file, failed;
    const int    before = launch_size() > 1 && !is_question(argc, argv) ? keep_errors(&file) : -1;
    const int    flags = ARGP_IN_ORDER | (before >= 0 ? ARGP_NO_EXIT : 0);

    memset(arguments, 0, sizeof *arguments);
    arguments->settings = calloc((size_t)argc + 1, sizeof *arguments->settings);
    argv[0] = program_invocation_short_name; /* the prefix of all messages */
    argp_program_version_hook = print_library;
    argp_err_exit_status = EXIT_USAGE;
    failed = arguments->settings == NULL || argp_parse(&ARGP, argc, argv, flags, NULL, &parse) != 0;
    if (before >= 0 && take_errors(file, before, error) < 0) return error->code;
    if (failed && before >= 0) return problem_memory(error, "the command line");
    if (failed) {
        fputs("graft-train: the command line cannot be read: out of memory\n", stderr);
        exit(EXIT_PROBLEM);
    }
    return GRAFT_OK;
}

void arguments_fini(struct arguments *arguments)
{
    free(arguments->settings);
    arguments->settings = NULL;
}
