/*
 * An event loop: bursts are handed over, and poll says when finished jobs wait. Worker threads do the work meanwhile.
 *
 *   cc poll.c $(pkg-config --cflags --libs evener) && ./a.out
 */
#include <evener.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 1000, DEPTH = 128, BURST = 32, BYTES = 2048 };

static void check(int answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "%s: %s (%s)\n", what, evener_error_text(), evener_strerror(answer));
        exit(1);
    }
}

int main(void)
{
    static unsigned char buffers[JOBS][BYTES], seen[JOBS];
    static struct evener_job jobs[JOBS], *burst[JOBS], *came[BURST];
    static const unsigned char key[32] = "a key that nobody else has, 32 b";
    struct evener_runtime *runtime;
    struct evener_session *session;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;
    struct evener_statistics statistics = {.size = sizeof statistics};
    int submitted = 0, finished = 0, polls = 0, fd;

    options.threads = 2;
    check(evener_runtime_open(&runtime, &options), "evener_runtime_open");
    check(evener_session_open(runtime, &session, "AES-256-CTR", EVENER_ENCRYPT, 0, key, sizeof key), "evener_session_open");
    check(evener_queue_open(runtime, &queue, DEPTH), "evener_queue_open");
    fd = evener_queue_fd(queue);
    check(fd, "evener_queue_fd");

    for (int i = 0; i < JOBS; i++) {
        jobs[i].session = session;
        jobs[i].src = jobs[i].dst = buffers[i];
        jobs[i].src_len = jobs[i].dst_space = BYTES;
        jobs[i].iv[0] = (unsigned char)i, jobs[i].iv[1] = (unsigned char)(i >> 8); /* a counter block of its own each */
        jobs[i].user_data = (uint64_t)i;
        burst[i] = &jobs[i];
    }
    while (finished < JOBS) {
        if (submitted < JOBS) { /* as many as fit; where none do, some are finished first */
            int left = JOBS - submitted, taken = evener_submit(queue, burst + submitted, (unsigned)(left < BURST ? left : BURST));
            check(taken, "evener_submit");
            submitted += taken;
        }
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, submitted < JOBS && evener_in_flight(queue) < DEPTH ? 0 : 10000) < 0) {
            perror("poll");
            return 1;
        }
        polls++;
        if (!(ready.revents & POLLIN))
            continue;
        int count = evener_reap(queue, came, BURST, 0, 0);
        check(count, "evener_reap");
        for (int i = 0; i < count; i++) {
            check(came[i]->status, "a job");
            seen[came[i]->user_data]++;
        }
        finished += count;
    }
    for (int i = 0; i < JOBS; i++)
        if (seen[i] != 1) {
            fprintf(stderr, "job %d came back %d times\n", i, seen[i]);
            return 1;
        }
    check(evener_statistics(runtime, &statistics), "evener_statistics");
    if (statistics.jobs != JOBS || statistics.failed != 0) {
        fprintf(stderr, "%llu jobs are counted\n", (unsigned long long)statistics.jobs);
        return 1;
    }
    printf("%d jobs came back once each, told by poll\n", JOBS);
    fprintf(stderr, "%d polls\n", polls);

    check(evener_session_close(session), "evener_session_close");
    check(evener_queue_close(queue), "evener_queue_close");
    check(evener_runtime_close(runtime), "evener_runtime_close");
    return 0;
}
