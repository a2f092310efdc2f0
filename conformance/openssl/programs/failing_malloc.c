/* usage: failing_malloc WHEN EACH [CONFIGURATION]: every EACHth allocation of a run of calls fails, alone and with all that follow, each in
 * a process of its own. An error may come of it; afterwards the same calls succeed. WHEN: `loaded` after the same calls went well;
 * `threads` as that, in threads of their own; `loading` while CONFIGURATION is loaded into a library context of its own, and with the calls
 * after that. Prints "CASES cases: FINE fine, ERRORS errors, BAD bad", and a line for each bad one before that. */
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of one run of calls: one takes some milliseconds, and several on a busy machine. */
enum { CASES_MAX = 400 };

static atomic_long seen, fail_at = -1;
static atomic_int armed, goes_on;

static int fails(void) {
    if (!armed) return 0;
    long n = atomic_fetch_add(&seen, 1);
    return fail_at >= 0 && (goes_on ? n >= fail_at : n == fail_at);
}

/* glibc's own functions under their other names, so that its whole process comes through here. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
#define ELSE_FAIL(call) \
    if (fails()) { errno = ENOMEM; return NULL; } \
    return call
void *malloc(size_t n) { ELSE_FAIL(__libc_malloc(n)); }
void *calloc(size_t count, size_t n) { ELSE_FAIL(__libc_calloc(count, n)); }
void *realloc(void *p, size_t n) { ELSE_FAIL(__libc_realloc(p, n)); }
void *aligned_alloc(size_t alignment, size_t n) { ELSE_FAIL(__libc_memalign(alignment, n)); }
void *memalign(size_t alignment, size_t n) { ELSE_FAIL(__libc_memalign(alignment, n)); }
int posix_memalign(void **p, size_t alignment, size_t n) {
    if (fails()) return ENOMEM;
    *p = __libc_memalign(alignment, n);
    return *p ? 0 : ENOMEM;
}

static unsigned char key[64], iv[16] = {1}, in[1 << 20];
static OSSL_LIB_CTX *library;

static int encrypt(const char *name, int bytes, unsigned char *out) {
    int n, ok = 0;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(library, name, NULL);
    EVP_CIPHER_CTX *x = cipher ? EVP_CIPHER_CTX_new() : NULL, *copy = NULL;
    if (x) ok = EVP_EncryptInit_ex2(x, cipher, key, iv, NULL) && EVP_EncryptUpdate(x, out, &n, in, bytes);
    if (ok && bytes < 65536) ok = (copy = EVP_CIPHER_CTX_new()) && EVP_CIPHER_CTX_copy(copy, x);
    if (ok) ok = EVP_EncryptFinal_ex(x, out + n, &n);
    EVP_CIPHER_CTX_free(copy);
    EVP_CIPHER_CTX_free(x);
    EVP_CIPHER_free(cipher);
    return ok;
}

static int hash(const char *name) {
    unsigned char digest[64];
    EVP_MD *md = EVP_MD_fetch(library, name, NULL);
    int ok = md && EVP_Digest(in, 100000, digest, NULL, md, NULL);
    EVP_MD_free(md);
    return ok;
}

static int calls(void) {
    static const struct { const char *name; int bytes; } all[] = {
        {"AES-256-CBC", 1 << 20}, {"AES-128-CTR", 1 << 20}, {"AES-256-XTS", 1 << 18}, {"AES-256-GCM", 1 << 18}, {"AES-256-CBC", 4096}, {"AES-128-GCM", 100},
    };
    unsigned char *out = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int ok = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ok &= encrypt(all[i].name, all[i].bytes, out);
    munmap(out, 2 << 20);
    return ok & hash("SHA2-256");
}

static void *thread(void *ok) {
    *(int *)ok = calls();
    return NULL;
}

static int calls_of_a_thread(void) {
    pthread_t id;
    int ok = 0;
    if (pthread_create(&id, NULL, thread, &ok)) return 0;
    pthread_join(id, NULL);
    return ok;
}

static const char *configuration;

static int load_and_call(void) {
    library = OSSL_LIB_CTX_new();
    if (!library) return 0;
    int ok = OSSL_LIB_CTX_load_config(library, configuration) && calls();
    OSSL_LIB_CTX_free(library);
    library = NULL;
    return ok;
}

/* 0: all went well; 1: an error, and all is well later; 2: not even later. */
static int one(int (*run)(void), long at, int on) {
    alarm(20);
    if (!freopen("/dev/null", "w", stderr)) return 2;
    fail_at = at;
    goes_on = on;
    seen = 0;
    armed = 1;
    int ok = run();
    armed = 0;
    return ok ? 0 : run() || run() ? 1 : 2;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    int (*run)(void) = !strcmp(arguments[1], "loading") ? load_and_call : !strcmp(arguments[1], "threads") ? calls_of_a_thread : calls;
    int each = atoi(arguments[2]), status;
    configuration = count > 3 ? arguments[3] : NULL;
    long cases = 0, results[3] = {0}, *total = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 64; i++) key[i] = i * 7;
    /* What libcrypto itself does once in a process, and never again where it failed, is done before. */
    calls();
    if (!run()) return fprintf(stderr, "the calls fail with all memory that they want\n"), 2;
    if (!fork()) {
        armed = 1;
        int ok = run();
        *total = seen;
        _exit(!ok);
    }
    wait(&status);
    if (status) return fprintf(stderr, "the calls fail in a child with all memory that they want\n"), 2;
    /* One child of some looks for what ended processes left, which takes memory for each. */
    if (*total / each >= CASES_MAX) each = *total / CASES_MAX + 1;
    for (int on = 0; on < 2; on++)
        for (long at = 0; at < *total; at += each, cases++) {
            fflush(stdout);
            if (!fork()) _exit(one(run, at, on));
            wait(&status);
            int result = WIFEXITED(status) && WEXITSTATUS(status) < 2 ? WEXITSTATUS(status) : 2;
            results[result]++;
            if (result == 2) printf("allocation %ld of %ld%s: %s %d\n", at, *total, on ? " and all that follow" : "", WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    printf("%ld cases: %ld fine, %ld errors, %ld bad\n", cases, results[0], results[1], results[2]);
    return results[2] != 0;
}
