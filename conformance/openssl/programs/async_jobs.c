/* usage: async_jobs CONNECTIONS [blocked]: encrypts in asynchronous jobs as a server does, some jobs to each wait context, and watches the descriptors that
 * the wait contexts have: one that is there at the end, and that no pause ever told of, would have a server let go of what it never had.
 * With `blocked`, pauses are not allowed. Prints "N jobs, N finished without a pause, N unshown". */
#include <openssl/async.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 65536
#define JOBS_EACH 4
#define FDS_MAX 16

static const unsigned char key[16] = {1}, iv[16] = {2};
static unsigned char in[BYTES], out[BYTES + 16];
static EVP_CIPHER_CTX *ctx;
static int is_blocked;

static int encrypt(void *unused) {
    int n;
    (void)unused;
    if (is_blocked) ASYNC_block_pause();
    int ok = EVP_EncryptUpdate(ctx, out, &n, in, BYTES);
    if (is_blocked) ASYNC_unblock_pause();
    return ok;
}

/* Of a wait context: what the program was told of. */
static OSSL_ASYNC_FD known[FDS_MAX];
static size_t known_count;

static int is_known(OSSL_ASYNC_FD fd) {
    for (size_t i = 0; i < known_count; i++)
        if (known[i] == fd) return 1;
    return 0;
}

static void hear(ASYNC_WAIT_CTX *wait) {
    OSSL_ASYNC_FD added[FDS_MAX], deleted[FDS_MAX];
    size_t added_count = FDS_MAX, deleted_count = FDS_MAX;
    if (!ASYNC_WAIT_CTX_get_changed_fds(wait, NULL, &added_count, NULL, &deleted_count)) exit(4);
    if (added_count > FDS_MAX || deleted_count > FDS_MAX) exit(4);
    if (!ASYNC_WAIT_CTX_get_changed_fds(wait, added, &added_count, deleted, &deleted_count)) exit(4);
    for (size_t i = 0; i < added_count; i++) known[known_count++] = added[i];
}

static size_t unshown(ASYNC_WAIT_CTX *wait) {
    OSSL_ASYNC_FD all[FDS_MAX];
    size_t count = FDS_MAX, strangers = 0;
    if (!ASYNC_WAIT_CTX_get_all_fds(wait, NULL, &count) || count > FDS_MAX) exit(4);
    if (!ASYNC_WAIT_CTX_get_all_fds(wait, all, &count)) exit(4);
    for (size_t i = 0; i < count; i++) strangers += !is_known(all[i]);
    return strangers;
}

/* False where it was put aside at no time. */
static int run(ASYNC_WAIT_CTX *wait) {
    ASYNC_JOB *job = NULL;
    int result = 0, pauses = 0;
    while (1) {
        switch (ASYNC_start_job(&job, wait, &result, encrypt, NULL, 0)) {
        case ASYNC_PAUSE:
            pauses++;
            hear(wait);
            struct pollfd fds[FDS_MAX];
            for (size_t i = 0; i < known_count; i++) fds[i] = (struct pollfd){known[i], POLLIN, 0};
            /* Where nothing rings, the job is forgotten. */
            if (poll(fds, known_count, 10000) < 1) exit(5);
            break;
        case ASYNC_FINISH:
            if (!result) exit(6);
            return pauses > 0;
        default: exit(7);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    int connections = atoi(argv[1]);
    if (!ASYNC_init_thread(4, 4)) return 3;
    is_blocked = argc > 2 && !strcmp(argv[2], "blocked");
    ctx = EVP_CIPHER_CTX_new();
    if (!EVP_EncryptInit_ex(ctx, EVP_aes_128_cbc(), NULL, key, iv)) return 3;
    int jobs = 0, quick = 0;
    size_t strangers = 0;
    for (int i = 0; i < connections; i++) {
        ASYNC_WAIT_CTX *wait = ASYNC_WAIT_CTX_new();
        known_count = 0;
        for (int j = 0; j < JOBS_EACH; j++, jobs++) quick += !run(wait);
        strangers += unshown(wait);
        ASYNC_WAIT_CTX_free(wait);
    }
    printf("%d jobs, %d finished without a pause, %zu unshown\n", jobs, quick, strangers);
    EVP_CIPHER_CTX_free(ctx);
    return strangers != 0;
}
