/*
 * Hashes and MACs: many messages of unlike lengths in one burst, each with a digest of its own; and jobs that cannot be.
 *
 *   cc hashes.c $(pkg-config --cflags --libs evener) && ./a.out
 */
#include <evener.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 100 };

static void check(int answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "%s: %s (%s)\n", what, evener_error_text(), evener_strerror(answer));
        exit(1);
    }
}

static void demand(int is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static int is_hex(const unsigned char *bytes, size_t length, const char *hex)
{
    char text[129] = "";
    for (size_t i = 0; i < length; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return strcmp(text, hex) == 0;
}

int main(void)
{
    static unsigned char message[MESSAGES];
    static struct evener_job jobs[MESSAGES], *burst[MESSAGES];
    struct evener_runtime *runtime;
    struct evener_session *sha256, *hmac;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;

    options.threads = 1;
    check(evener_runtime_open(&runtime, &options), "evener_runtime_open");
    check(evener_session_open(runtime, &sha256, "SHA-256", EVENER_ENCRYPT, 0, NULL, 0), "evener_session_open");
    check(evener_session_open(runtime, &hmac, "HMAC-SHA-256", EVENER_ENCRYPT, 0, "Jefe", 4), "evener_session_open");
    check(evener_queue_open(runtime, &queue, MESSAGES), "evener_queue_open");

    for (int i = 0; i < MESSAGES; i++) {
        jobs[i].session = sha256;
        jobs[i].src = message, jobs[i].src_len = (size_t)i; /* many may read one message */
        burst[i] = &jobs[i];
    }
    jobs[3].src = "abc";                               /* FIPS 180-4 */
    jobs[28].session = hmac;                           /* RFC 4231, case 2 */
    jobs[28].src = "what do ya want for nothing?";
    jobs[50].reserved[2] = 1;                          /* of another time */
    jobs[51].src = NULL;
    jobs[52].aad = message, jobs[52].aad_len = 1;      /* no AEAD */
    check(evener_submit(queue, burst, MESSAGES), "evener_submit");
    for (int left = MESSAGES; left > 0;) {
        int count = evener_reap(queue, burst, MESSAGES, MESSAGES, -1);
        check(count, "evener_reap");
        left -= count;
    }
    demand(is_hex(jobs[0].tag, 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), "SHA-256 of nothing");
    demand(is_hex(jobs[3].tag, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "SHA-256 of abc");
    demand(is_hex(jobs[28].tag, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"), "HMAC-SHA-256");
    for (int i = 0; i < MESSAGES; i++)
        demand(jobs[i].status == (i >= 50 && i <= 52 ? EVENER_EINVAL : EVENER_OK), "a status");
    printf("%d digests, and three jobs that cannot be: %s\n", MESSAGES - 3, evener_strerror(jobs[50].status));

    check(evener_queue_close(queue), "evener_queue_close");
    check(evener_session_close(sha256), "evener_session_close");
    check(evener_session_close(hmac), "evener_session_close");
    check(evener_runtime_close(runtime), "evener_runtime_close");
    return 0;
}
