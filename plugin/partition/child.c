/* Runs a program as a child process.
 *
 * The host's state is not changed: no signal handler or mask, and no file that another child would inherit. Input and
 * output of the program are one socket, because writing to a closed socket can be made to fail without a signal. The
 * host receives SIGCHLD when the program ends, and may reap it before this code: then its exit code is unknown, and
 * only its output is checked.
 *
 * The program has none of the host's files, which may be pipes to a launcher that waits for their end. It leads a
 * process group, with the processes that it starts. A pipe, the guard, ends them all: the kernel sends SIGKILL to the
 * group when the writing end of the pipe is closed, which also happens when the host is killed. Processes that the host
 * forks without exec keep this end open; then the group lives until they end. Only the program has the reading end
 * open. SPDX-License-Identifier: Apache-2.0 */
#include "partition/child.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD_FILE = 3, FIRST_FREE = 4, WAIT_MS = 2, MEANWHILE_MS = 20 };

/* Our ends of a socket and two pipes, and the ends of the program. */
enum { OUR_SOCKET, ITS_SOCKET, OUR_ERROR, ITS_ERROR, ITS_GUARD, OUR_GUARD, ENDS };

static void close_end(int *end)
{
    if (*end >= 0) close(*end);
    *end = -1;
}

/* Move a descriptor to FIRST_FREE or above. It may be lower if the host has closed its standard files, and would then
 * be overwritten in the child by a file of the program. */
static int32_t move_up(int *end)
{
    const int moved = *end >= FIRST_FREE ? *end : fcntl(*end, F_DUPFD_CLOEXEC, FIRST_FREE);

    if (moved != *end) close(*end);
    *end = moved;
    return moved >= 0 ? GRAFT_OK : GRAFT_ERR_IO;
}

static int32_t open_ends(int ends[ENDS], graft_error *error)
{
    int32_t rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends + OUR_SOCKET) == 0 &&
                         pipe2(ends + OUR_ERROR, O_CLOEXEC) == 0 && pipe2(ends + ITS_GUARD, O_CLOEXEC) == 0
                     ? GRAFT_OK
                     : GRAFT_ERR_IO;

    for (int i = 0; i < ENDS && rc == GRAFT_OK; i++) rc = move_up(&ends[i]);
    if (rc == GRAFT_OK && fcntl(ends[OUR_ERROR], F_SETFL, O_NONBLOCK) < 0) rc = GRAFT_ERR_IO;
    if (rc < 0) gr_fail_native(error, rc, errno, "no socket or pipe is available for a program: errno %d", errno);
    return rc;
}

/* Let the kernel kill the group of the program when our end of the guard is closed. If the kernel has no such signals,
 * only gr_partition_child_end() kills the group. */
static void arm_guard(int its_guard, pid_t pid)
{
    if (fcntl(its_guard, F_SETOWN, -pid) == 0 && fcntl(its_guard, F_SETSIG, SIGKILL) == 0)
        (void)fcntl(its_guard, F_SETFL, O_ASYNC);
}

/* Close the host's files from descriptor `first` on in the program. musl has no such action, so open descriptors are
 * listed; there a file that another thread opens meanwhile without O_CLOEXEC is inherited. */
static int close_from(posix_spawn_file_actions_t *files, int first)
{
#ifdef __GLIBC__
    return posix_spawn_file_actions_addclosefrom_np(files, first);
#else
    DIR *folder = opendir("/proc/self/fd");
    int  code = folder != NULL ? 0 : errno;

    for (struct dirent *entry; code == 0 && (entry = readdir(folder)) != NULL;)
        if (atoi(entry->d_name) >= first) code = posix_spawn_file_actions_addclose(files, atoi(entry->d_name));
    if (folder != NULL) closedir(folder);
    return code;
#endif
}

/* Set the files of the program: its ends of the socket and the pipes, and no file of the host. */
static int give_files(posix_spawn_file_actions_t *files, const int ends[ENDS])
{
    int code = posix_spawn_file_actions_adddup2(files, ends[ITS_SOCKET], STDIN_FILENO);

    if (code == 0) code = posix_spawn_file_actions_adddup2(files, ends[ITS_SOCKET], STDOUT_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(files, ends[ITS_ERROR], STDERR_FILENO);
    if (code == 0) code = posix_spawn_file_actions_adddup2(files, ends[ITS_GUARD], GUARD_FILE);
    return code != 0 ? code : close_from(files, FIRST_FREE);
}

/* Give the program a separate process group, and the signal state of a program started from a shell. */
static int give_signals(posix_spawnattr_t *attributes)
{
    const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    sigset_t    all, none;
    int         code;

    sigfillset(&all);
    sigemptyset(&none);
    code = posix_spawnattr_setsigdefault(attributes, &all);
    if (code == 0) code = posix_spawnattr_setsigmask(attributes, &none);
    if (code == 0) code = posix_spawnattr_setpgroup(attributes, 0);
    return code != 0 ? code : posix_spawnattr_setflags(attributes, flags);
}

/* Start the program. \return 0, or an errno */
static int spawn_child(struct gr_child *child, const int ends[ENDS], const char *program, char *const *variables)
{
    char *const                argv[] = { (char *)(uintptr_t)program, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attributes;
    int                        code = posix_spawn_file_actions_init(&files);

    if (code != 0) return code;
    code = posix_spawnattr_init(&attributes);
    if (code == 0) {
        code = give_files(&files, ends);
        if (code == 0) code = give_signals(&attributes);
        if (code == 0) code = posix_spawn(&child->pid, program, &files, &attributes, argv, variables);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    if (code == 0) arm_guard(ends[ITS_GUARD], child->pid);
    return code;
}

int32_t gr_partition_child_start(struct gr_child *child, const char *program, char *const *variables, double timeout,
                                 graft_error *error)
{
    int     ends[ENDS] = { -1, -1, -1, -1, -1, -1 }, code;
    int32_t rc;

    *child = (struct gr_child){
        .pid = -1, .both = -1, .error_end = -1, .guard = -1, .timeout = timeout, .program = program
    };
    child->deadline = gr_seconds() + timeout;
    GR_TRY_DONE(open_ends(ends, error));
    code = spawn_child(child, ends, program, variables);
    if (code != 0) {
        child->pid = -1;
        rc = code == ENOMEM || code == EAGAIN ? GRAFT_ERR_IO : GRAFT_ERR_NOT_FOUND;
        GR_TRY_DONE(gr_fail_native(error, rc, code, "the program '%.300s' cannot be run: %s", program,
                                   gr_file_errno_text(code)));
    }
    child->both = ends[OUR_SOCKET];
    child->error_end = ends[OUR_ERROR];
    child->guard = ends[OUR_GUARD];
    ends[OUR_SOCKET] = ends[OUR_ERROR] = ends[OUR_GUARD] = -1;
done:
    for (int i = 0; i < ENDS; i++) close_end(&ends[i]);
    return rc;
}

static int32_t child_fail(struct gr_child *child, const char *how, graft_error *error)
{
    const char *name = strrchr(child->program, '/');

    while (child->error_length > 0 && child->error_text[child->error_length - 1] == ' ')
        child->error_text[--child->error_length] = '\0';
    name = name != NULL ? name + 1 : child->program;
    return gr_fail(error, GRAFT_ERR_MODULE, "the program '%.60s' %s%s%s%s", name, how,
                   child->error_length > 0 ? "; its standard error is '" : "", child->error_text,
                   child->error_length > 0 ? "'" : "");
}

/* Store the standard error of the program, up to the capacity; the rest is read too, so that the program does not
 * block. */
static void read_error_text(struct gr_child *child)
{
    char          buffer[512];
    const ssize_t count = read(child->error_end, buffer, sizeof buffer);

    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) close_end(&child->error_end);
    for (ssize_t i = 0; i < count && child->error_length + 1 < GR_CHILD_ERROR_TEXT; i++) {
        const char c = buffer[i];
        child->error_text[child->error_length++] = c >= ' ' && c <= '~' ? c : ' ';
    }
}

/* The bytes to send to the program. */
struct outgoing {
    gr_child_source source;
    void           *arg;
    char            buffer[GR_CHILD_BUFFER];
    int64_t         at, count;
    int             ended;
};

/* Send some input. It is no error here if the program stops reading; its exit code decides. */
static void send_input(struct gr_child *child, struct outgoing *out)
{
    ssize_t sent;

    if (out->at == out->count) {
        out->at = 0;
        out->count = out->source(out->arg, out->buffer, GR_CHILD_BUFFER);
        out->ended = out->count == 0;
        if (out->ended) shutdown(child->both, SHUT_WR);
        if (out->ended) return;
    }
    sent = send(child->both, out->buffer + out->at, (size_t)(out->count - out->at), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) out->at += sent;
    else if (errno != EINTR && errno != EAGAIN) out->ended = 1;
}

/* Read some output; *have becomes bytes + 1 if it is too long. \return 1 at the end of the output */
static int receive_output(struct gr_child *child, char *output, int64_t bytes, int64_t *have)
{
    char          more;
    const int     is_full = *have == bytes;
    const ssize_t count =
        recv(child->both, is_full ? &more : output + *have, is_full ? 1 : (size_t)(bytes - *have), MSG_DONTWAIT);

    if (count > 0) *have += count;
    return count == 0 || *have > bytes || (count < 0 && errno != EINTR && errno != EAGAIN);
}

static int milliseconds_left(const struct gr_child *child)
{
    const double left = (child->deadline - gr_seconds()) * 1000;

    return left <= 0 ? 0 : left > 3600000 ? 3600000 : (int)left + 1;
}

static int32_t do_meanwhile(const struct gr_meanwhile *meanwhile, graft_error *error)
{
    return meanwhile != NULL ? meanwhile->call(meanwhile->arg, error) : GRAFT_OK;
}

/* Send and receive until the program has closed its output. */
static int32_t exchange_bytes(struct gr_child *child, struct outgoing *out, char *output, int64_t bytes, int64_t *have,
                              const struct gr_meanwhile *meanwhile, graft_error *error)
{
    int ended = 0;

    while (!ended) {
        struct pollfd wait[2] = { { .fd = child->both, .events = (short)(POLLIN | (out->ended ? 0 : POLLOUT)) },
                                  { .fd = child->error_end, .events = POLLIN } };
        const int     left = milliseconds_left(child);

        if (left == 0) {
            char how[80];

            snprintf(how, sizeof how, "has not ended after %.0f seconds (option partition)", child->timeout);
            return child_fail(child, how, error);
        }
        GR_TRY(do_meanwhile(meanwhile, error));
        if (poll(wait, 2, meanwhile != NULL && left > MEANWHILE_MS ? MEANWHILE_MS : left) <= 0) continue;
        if (wait[1].revents != 0) read_error_text(child);
        if (wait[0].revents & POLLOUT && !out->ended) send_input(child, out);
        if (wait[0].revents & (POLLIN | POLLHUP | POLLERR)) ended = receive_output(child, output, bytes, have);
    }
    return GRAFT_OK;
}

/* Reap the program. *status is the one of waitpid(); 0 if the host has reaped the program; -1 at the deadline. */
static int32_t reap_child(struct gr_child *child, int *status, const struct gr_meanwhile *meanwhile, graft_error *error)
{
    while (child->pid >= 0) {
        const pid_t   got = waitpid(child->pid, status, WNOHANG);
        struct pollfd wait = { .fd = child->error_end, .events = POLLIN };

        if (got == child->pid || (got < 0 && errno == ECHILD)) {
            child->pid = -1;
            if (got < 0) *status = 0;
        } else if (milliseconds_left(child) == 0) {
            *status = -1;
            break;
        } else {
            GR_TRY(do_meanwhile(meanwhile, error));
            if (poll(&wait, 1, WAIT_MS) > 0) read_error_text(child);
        }
    }
    return GRAFT_OK;
}

int32_t gr_partition_child_talk(struct gr_child *child, gr_child_source source, void *arg, char *output, int64_t bytes,
                                const struct gr_meanwhile *meanwhile, graft_error *error)
{
    struct outgoing out = { .source = source, .arg = arg };
    int64_t         have = 0;
    char            how[120];
    int32_t         rc = exchange_bytes(child, &out, output, bytes, &have, meanwhile, error);
    int             status = 0;

    GR_ASSERT(child->pid >= 0 || child->both >= 0);
    if (rc < 0) return rc;
    close_end(&child->both);
    GR_TRY(reap_child(child, &status, meanwhile, error));
    if (child->error_end >= 0) read_error_text(child);
    if (status != -1 && WIFEXITED(status)) child->exit_code = WEXITSTATUS(status);
    if (status == -1) snprintf(how, sizeof how, "has not ended after %.0f seconds (option partition)", child->timeout);
    else if (WIFSIGNALED(status)) snprintf(how, sizeof how, "was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) snprintf(how, sizeof how, "failed with exit code %d", WEXITSTATUS(status));
    else if (have > bytes) snprintf(how, sizeof how, "wrote more than %lld bytes", (long long)bytes);
    else if (have < bytes)
        snprintf(how, sizeof how, "wrote %lld bytes, expected %lld", (long long)have, (long long)bytes);
    else return GRAFT_OK;
    return child_fail(child, how, error);
}

/* Closing the guard kills the group, also processes that the program left. The second kill is for a program that has
 * closed its end of the guard. The host may have reaped the process, and its id may be in use again: so first ask
 * whether it is still our child. */
void gr_partition_child_end(struct gr_child *child)
{
    siginfo_t info;

    close_end(&child->guard);
    close_end(&child->both);
    close_end(&child->error_end);
    if (child->pid < 0) return;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        kill(-child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    child->pid = -1;
}
