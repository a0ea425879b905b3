/* A check in a child process, so that a crash or a hang fails this one check and not the whole program. The caller must
 * not have started OpenMP threads, because fork() does not copy them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CHILD_H
#define CHILD_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 20 };

/** Run check(arg) in a child process. It returns NULL or an error in words, and so does this function, with a sentence
 *  about the signal or the exit status if the child did not end by itself. The text is valid until the next call. */
__attribute__((unused)) static const char *in_child(const char *(*check)(const void *arg), const void *arg)
{
    static char text[1024];
    int         channel[2], status = 0;
    size_t      used = 0;
    ssize_t     more;
    pid_t       child;

    fflush(NULL);
    if (pipe(channel) != 0 || (child = fork()) < 0) return "there is no pipe or no process for this check";
    if (child == 0) {
        const char *fault;

        alarm(CHILD_SECONDS);
        close(channel[0]);
        fault = check(arg);
        if (fault != NULL && write(channel[1], fault, strlen(fault)) < 0) _exit(2);
        _exit(fault != NULL);
    }
    close(channel[1]);
    while ((more = read(channel[0], text + used, sizeof text - 1 - used)) > 0) used += (size_t)more;
    text[used] = '\0';
    close(channel[0]);
    if (waitpid(child, &status, 0) != child) return "the process of this check is lost";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "it hung";
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0 && used == 0) snprintf(text, sizeof text, "exit status %d", WEXITSTATUS(status));
    else if (WEXITSTATUS(status) == 0 && used == 0) return NULL;
    return text;
}

#endif
