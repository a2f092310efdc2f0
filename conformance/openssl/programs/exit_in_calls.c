/* usage: exit_in_calls KIND THREADS MICROSECONDS: so many threads encrypt messages of several sizes by several ciphers and hash, until the first
 * thread returns from main. KIND: "kept", each thread has its contexts from the beginning; "made", a context for each message, of ciphers that
 * are kept; "fetched", ciphers are looked for anew for each message. */
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KINDS 5
#define BYTES_MAX (1 << 18)

static const char *const NAMES[KINDS] = {"AES-256-CBC", "AES-128-CTR", "AES-256-GCM", "AES-128-XTS", "ChaCha20-Poly1305"};
static const int SIZES[] = {16, 1000, 16384, 65536, BYTES_MAX};
static const unsigned char key[64] = {1} /* XTS wants halves that differ. */, iv[16] = {2};
static unsigned char in[BYTES_MAX];
static EVP_CIPHER *ciphers[KINDS];
static const char *kind;

static void message(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, unsigned char *out, int bytes) {
    int n;
    if (EVP_EncryptInit_ex2(ctx, cipher, key, iv, NULL) && EVP_EncryptUpdate(ctx, out, &n, in, bytes))
        EVP_EncryptFinal_ex(ctx, out + n, &n);
}

static void *work(void *number) {
    EVP_CIPHER_CTX *kept[KINDS];
    unsigned char digest[EVP_MAX_MD_SIZE], *out = malloc(BYTES_MAX + 32);
    for (int i = 0; i < KINDS; i++) kept[i] = EVP_CIPHER_CTX_new();
    for (size_t turn = (size_t)number;; turn++) {
        int which = turn % KINDS, bytes = SIZES[turn / KINDS % 5];
        if (!strcmp(kind, "kept")) {
            message(kept[which], ciphers[which], out, bytes);
            continue;
        }
        EVP_CIPHER *fetched = strcmp(kind, "fetched") ? NULL : EVP_CIPHER_fetch(NULL, NAMES[which], NULL);
        EVP_CIPHER_CTX *made = EVP_CIPHER_CTX_new();
        message(made, fetched ? fetched : ciphers[which], out, bytes);
        EVP_CIPHER_CTX_free(made);
        EVP_CIPHER_free(fetched);
        if (fetched) EVP_Digest(in, 1000, digest, NULL, EVP_sha256(), NULL);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    kind = arguments[1];
    for (int i = 0; i < KINDS; i++) {
        if (!(ciphers[i] = EVP_CIPHER_fetch(NULL, NAMES[i], NULL))) return 2;
    }
    for (size_t i = 0, threads = strtoul(arguments[2], NULL, 10); i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(i * 7))) return 2;
    }
    usleep(strtoul(arguments[3], NULL, 10));
    return 0;
}
