/*
 * One burst: 64 messages are encrypted in place by one call, and decrypted to another place by a second one.
 *
 *   cc burst.c $(pkg-config --cflags --libs evener) && ./a.out
 */
#include <evener.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 64, BYTES = 4096 };

/* Key, IV and the first block of SP 800-38A, F.2.1 (CBC-AES128). */
static const unsigned char key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const unsigned char text[16] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a};
static const unsigned char cipher[16] = {0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9, 0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d};

static void check(int answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "%s: %s (%s)\n", what, evener_error_text(), evener_strerror(answer));
        exit(1);
    }
}

static void run(struct evener_queue *queue, struct evener_job *jobs)
{
    struct evener_job *burst[JOBS];
    for (int i = 0; i < JOBS; i++)
        burst[i] = &jobs[i];
    check(evener_crypt(queue, burst, JOBS), "evener_crypt");
    for (int i = 0; i < JOBS; i++)
        check(jobs[i].status, "a job");
}

int main(void)
{
    static unsigned char buffers[JOBS][BYTES], back[JOBS][BYTES];
    static struct evener_job jobs[JOBS];
    struct evener_runtime *runtime;
    struct evener_session *encrypt, *decrypt;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;

    options.threads = 0; /* evener_crypt needs none */
    check(evener_runtime_open(&runtime, &options), "evener_runtime_open");
    check(evener_session_open(runtime, &encrypt, "AES-128-CBC", EVENER_ENCRYPT, 0, key, sizeof key), "evener_session_open");
    check(evener_session_open(runtime, &decrypt, "AES-128-CBC", EVENER_DECRYPT, 0, key, sizeof key), "evener_session_open");
    check(evener_queue_open(runtime, &queue, JOBS), "evener_queue_open");

    for (int i = 0; i < JOBS; i++) {
        memset(buffers[i], i, BYTES);
        memcpy(buffers[i], text, sizeof text);
        jobs[i].session = encrypt;
        jobs[i].src = jobs[i].dst = buffers[i]; /* in place */
        jobs[i].src_len = jobs[i].dst_space = BYTES;
        for (int b = 0; b < 16; b++)
            jobs[i].iv[b] = (unsigned char)b;
    }
    run(queue, jobs);
    for (int i = 0; i < JOBS; i++)
        if (memcmp(buffers[i], cipher, sizeof cipher) != 0) {
            fprintf(stderr, "job %d is not what SP 800-38A says\n", i);
            return 1;
        }

    for (int i = 0; i < JOBS; i++) {
        jobs[i].session = decrypt;
        jobs[i].dst = back[i]; /* apart */
    }
    run(queue, jobs);
    for (int i = 0; i < JOBS; i++)
        if (memcmp(back[i], text, sizeof text) != 0 || back[i][BYTES - 1] != i || jobs[i].written != BYTES) {
            fprintf(stderr, "job %d did not come back as it was\n", i);
            return 1;
        }
    printf("%d messages of %d bytes there and back\n", JOBS, BYTES);

    check(evener_queue_close(queue), "evener_queue_close");
    check(evener_session_close(encrypt), "evener_session_close");
    check(evener_session_close(decrypt), "evener_session_close");
    check(evener_runtime_close(runtime), "evener_runtime_close");
    return 0;
}
