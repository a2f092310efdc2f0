/* What a program's malloc does after it has encrypted: from which size on it maps memory, and how many pages a loop over large buffers touches anew. glibc moves its thresholds when a mapped block is
   freed, so that a library that frees a large one changes both for the program. */
#include <malloc.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BUFFER = 256 << 10, LONGEST = 2 << 20, LOOPS = 100 };

static unsigned char text[LONGEST], sealed[LONGEST + 64];

static void encrypt(const EVP_CIPHER *cipher, int bytes, int messages) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    unsigned char key[32] = {1}, iv[16] = {2};
    int length;
    for (int i = 0; i < messages; i++) {
        if (EVP_EncryptInit_ex(context, cipher, NULL, key, iv) != 1 ||
            EVP_EncryptUpdate(context, sealed, &length, text, bytes) != 1 ||
            EVP_EncryptFinal_ex(context, sealed + length, &length) != 1)
            exit(2);
    }
    EVP_CIPHER_CTX_free(context);
}

int main(void) {
    const EVP_CIPHER *ciphers[] = {EVP_aes_256_gcm(), EVP_aes_256_ctr(), EVP_aes_256_cbc()};
    for (int i = 0; i < 3; i++)
        for (int bytes = 64; bytes <= LONGEST; bytes *= 8)
            encrypt(ciphers[i], bytes, 40);
    malloc_trim(0);
    size_t mapped = 64 << 10;
    /* The bit of a block that is mapped; such a block is never freed here, for that would move the threshold. */
    for (; mapped < 64 << 20; mapped += 4096) {
        volatile size_t *block = malloc(mapped);
        if (*(block - 1) & 2)
            break;
        free((void *)block);
    }
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < LOOPS; i++) {
        char *buffers[3];
        for (int j = 0; j < 3; j++)
            memset(buffers[j] = malloc(BUFFER), 1, BUFFER);
        for (int j = 0; j < 3; j++)
            free(buffers[j]);
    }
    getrusage(RUSAGE_SELF, &after);
    printf("%zu %ld\n", mapped, after.ru_minflt - before.ru_minflt);
    return 0;
}
