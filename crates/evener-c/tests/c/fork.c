/* A child of a process that has a runtime with jobs under way: every call says so, closing hangs at nothing, and the parent goes on. */
#include <evener.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 64, BYTES = 65536 };

static struct evener_job jobs[JOBS], *burst[JOBS];
static unsigned char buffers[JOBS][BYTES];

#define DEMAND(is_so) do { if (!(is_so)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_so, evener_error_text()); _exit(1); } } while (0)

static void child(struct evener_runtime *runtime, struct evener_session *session, struct evener_queue *queue, int is_idle)
{
    struct evener_statistics statistics = {.size = sizeof statistics};
    struct evener_session *another;
    struct evener_queue *other;
    size_t length = 0;
    DEMAND(evener_submit(queue, burst, JOBS) == EVENER_EFORK);
    DEMAND(evener_crypt(queue, burst, JOBS) == EVENER_EFORK);
    DEMAND(evener_reap(queue, burst, JOBS, JOBS, -1) == EVENER_EFORK);
    DEMAND(evener_cancel(queue) == EVENER_EFORK);
    DEMAND(evener_queue_fd(queue) == EVENER_EFORK);
    DEMAND(evener_queue_open(runtime, &other, 4) == EVENER_EFORK);
    DEMAND(evener_session_open(runtime, &another, "SHA-256", EVENER_ENCRYPT, 0, NULL, 0) == EVENER_EFORK);
    DEMAND(evener_statistics(runtime, &statistics) == EVENER_EFORK);
    DEMAND(evener_explain(runtime, "SHA-256", EVENER_ENCRYPT, 1, 0, NULL, &length) == EVENER_EFORK);
    DEMAND(evener_queue_close(queue) == EVENER_EFORK);
    DEMAND(evener_session_close(session) == EVENER_OK);
    DEMAND(evener_runtime_close(runtime) == EVENER_EFORK);
    /* One of its own works, where no thread of the parent was inside libcrypto, whose locks the child would find held. */
    if (!is_idle)
        _exit(0);
    DEMAND(evener_runtime_open(&runtime, NULL) == EVENER_OK);
    DEMAND(evener_session_open(runtime, &session, "SHA-256", EVENER_ENCRYPT, 0, NULL, 0) == EVENER_OK);
    DEMAND(evener_queue_open(runtime, &queue, 4) == EVENER_OK);
    struct evener_job job = {.session = session, .src = "abc", .src_len = 3}, *one = &job;
    DEMAND(evener_submit(queue, &one, 1) == 1 && evener_reap(queue, &one, 1, 1, -1) == 1);
    DEMAND(job.status == EVENER_OK && job.tag[0] == 0xba && job.tag[31] == 0xad);
    DEMAND(evener_queue_close(queue) == EVENER_OK && evener_session_close(session) == EVENER_OK);
    DEMAND(evener_runtime_close(runtime) == EVENER_OK);
    _exit(0);
}

int main(void)
{
    struct evener_runtime *runtime;
    struct evener_session *session;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;
    options.threads = 2;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_OK);
    DEMAND(evener_session_open(runtime, &session, "AES-128-CBC", EVENER_ENCRYPT, 0, "0123456789abcdef", 16) == EVENER_OK);
    DEMAND(evener_queue_open(runtime, &queue, JOBS) == EVENER_OK);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].session = session, jobs[i].src = jobs[i].dst = buffers[i], jobs[i].src_len = jobs[i].dst_space = BYTES;
        burst[i] = &jobs[i];
    }
    for (int round = 0; round <= 20; round++) {
        int is_idle = round == 20;
        pid_t pid;
        int status;
        if (!is_idle)
            DEMAND(evener_submit(queue, burst, JOBS) == JOBS);
        if ((pid = fork()) == 0)
            child(runtime, session, queue, is_idle);
        DEMAND(pid > 0);
        for (int came = 0; came < JOBS && !is_idle;) {
            struct evener_job *space[JOBS];
            int count = evener_reap(queue, space, JOBS, JOBS, -1);
            DEMAND(count > 0);
            for (int i = 0; i < count; i++)
                DEMAND(space[i]->status == EVENER_OK);
            came += count;
        }
        DEMAND(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    DEMAND(evener_queue_close(queue) == EVENER_OK && evener_session_close(session) == EVENER_OK);
    DEMAND(evener_runtime_close(runtime) == EVENER_OK);
    puts("children know that they are");
    return 0;
}
