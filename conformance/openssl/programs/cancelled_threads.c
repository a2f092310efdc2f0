/* usage: cancelled_threads COUNT BYTES: so many threads, one after the other, encrypt messages of BYTES and hash, and are cancelled (deferred)
 * at an arbitrary moment. Prints "COUNT cancelled" where the program lives on. */
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned char key[32] = {1}, in[1 << 20];
static size_t bytes;

static void forget(void *context) { EVP_CIPHER_CTX_free(context); }

static void *work(void *out) {
    static const unsigned char iv[16] = {2};
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
    int n;
    pthread_cleanup_push(forget, x);
    for (;; pthread_testcancel()) {
        if (!EVP_EncryptInit_ex2(x, cipher, key, iv, NULL) || !EVP_EncryptUpdate(x, out, &n, in, bytes)) abort();
        if (!EVP_Digest(in, 1000, digest, NULL, EVP_sha256(), NULL)) abort();
    }
    pthread_cleanup_pop(0);
    return NULL;
}

int main(int count, char **arguments) {
    static unsigned char out[sizeof in + 32];
    if (count < 3) return 2;
    int threads = atoi(arguments[1]);
    bytes = strtoul(arguments[2], NULL, 10);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        void *end;
        if (pthread_create(&thread, NULL, work, out)) return 2;
        usleep(i * 37 % 3000);
        pthread_cancel(thread);
        pthread_join(thread, &end);
        if (end != PTHREAD_CANCELED) return 1;
    }
    printf("%d cancelled\n", threads);
    return 0;
}
