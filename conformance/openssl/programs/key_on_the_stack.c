/* usage: key_on_the_stack: encrypts by each of five ciphers in four sizes, frees all, and looks through the stack below for the key. Prints a
 * line for each cipher and size that left one; the status is 1 then. */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEARCHED = 1 << 16 };

static unsigned char in[1 << 20], out[(1 << 20) + 32];

static __attribute__((noinline)) void encrypt(const unsigned char *key, const char *name, size_t bytes) {
    static const unsigned char iv[16] = {1};
    int n;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
    EVP_EncryptInit_ex2(x, cipher, key, iv, NULL);
    EVP_EncryptUpdate(x, out, &n, in, bytes);
    EVP_CIPHER_CTX_free(x);
    EVP_CIPHER_free(cipher);
}

/* What lies below this frame is dead, and read all the same. */
static __attribute__((noinline)) int copies(const unsigned char *key) {
    volatile unsigned char *top = __builtin_frame_address(0);
    int found = 0;
    for (volatile unsigned char *p = top - SEARCHED; p < top - 200; p++) {
        int same = 0;
        while (same < 16 && p[same] == key[same]) same++;
        found += same == 16;
    }
    return found;
}

static __attribute__((noinline)) void clear(void) {
    volatile char room[SEARCHED - 4096];
    for (size_t i = 0; i < sizeof room; i++) room[i] = 0;
}

int main(void) {
    static const char *const names[] = {"AES-256-CBC", "AES-256-CTR", "AES-256-ECB", "AES-256-GCM", "AES-256-XTS"};
    static const size_t sizes[] = {16, 4096, 65536, 1 << 20};
    unsigned char *key = malloc(64);
    int bad = 0;
    for (int i = 0; i < 64; i++) key[i] = i * 37 + 11;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++) {
            clear();
            encrypt(key, names[i], sizes[j]);
            int n = copies(key);
            if (n) printf("%s, %zu bytes: %d copies of the key\n", names[i], sizes[j], n), bad = 1;
        }
    return bad;
}
