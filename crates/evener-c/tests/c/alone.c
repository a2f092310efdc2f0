/* No worker threads: evener_submit does the work, and poll tells of it as it does elsewhere. */
#include <evener.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 5 };

#define DEMAND(is_so) do { if (!(is_so)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_so, evener_error_text()); exit(1); } } while (0)

static int is_readable(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    DEMAND(poll(&ready, 1, 0) >= 0 && !(ready.revents & ~POLLIN));
    return ready.revents != 0;
}

int main(void)
{
    static struct evener_job jobs[DEPTH + 1], *burst[DEPTH + 1], *came[DEPTH + 1];
    struct evener_runtime *runtime;
    struct evener_session *session;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;
    int fd;

    options.threads = 0, options.flags = EVENER_NO_COST_CACHE;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_OK);
    DEMAND(evener_session_open(runtime, &session, "SHA-256", EVENER_ENCRYPT, 0, NULL, 0) == EVENER_OK);
    DEMAND(evener_queue_open(runtime, &queue, DEPTH) == EVENER_OK);
    for (int i = 0; i <= DEPTH; i++)
        jobs[i].session = session, jobs[i].src = "abc", jobs[i].src_len = 3, burst[i] = &jobs[i];

    /* A descriptor that is opened late tells of what waits already. */
    DEMAND(evener_submit(queue, burst, 1) == 1);
    fd = evener_queue_fd(queue);
    DEMAND(fd >= 0 && is_readable(fd));
    DEMAND(evener_reap(queue, came, DEPTH, 0, 0) == 1 && came[0] == burst[0] && !is_readable(fd));

    for (int round = 0; round < 100; round++) {
        DEMAND(evener_submit(queue, burst, DEPTH + 1) == DEPTH && is_readable(fd));
        DEMAND(evener_submit(queue, burst + DEPTH, 1) == 0 && evener_in_flight(queue) == DEPTH);
        DEMAND(evener_cancel(queue) == EVENER_OK); /* all are done already */
        DEMAND(evener_reap(queue, came, 2, 0, 0) == 2 && is_readable(fd));
        DEMAND(evener_reap(queue, came + 2, DEPTH, DEPTH, -1) == DEPTH - 2 && !is_readable(fd));
        for (int i = 0; i < DEPTH; i++) {
            DEMAND(came[i]->status == EVENER_OK && came[i]->tag[0] == 0xba && came[i]->tag[31] == 0xad);
            came[i]->status = 99, memset(came[i]->tag, 0, sizeof came[i]->tag);
        }
        /* What is waited for elsewhere is told to nobody. */
        DEMAND(evener_crypt(queue, burst, 2) == 2 && !is_readable(fd));
    }
    DEMAND(evener_submit(queue, burst, 1) == 1 && evener_queue_close(queue) == EVENER_OK && jobs[0].status == EVENER_OK);
    DEMAND(evener_session_close(session) == EVENER_OK && evener_runtime_close(runtime) == EVENER_OK);
    puts("done and told without threads");
    return 0;
}
