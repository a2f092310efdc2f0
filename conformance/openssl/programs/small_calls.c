/* usage: small_calls ALGORITHM COUNT BYTES: so many messages of so many bytes by one context: init, update, final. Under a counter of
 * instructions the difference between two counts is what a message takes (docs/results/instructions.md). */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char key[32] = {1}, iv[16] = {2};
static unsigned char in[1 << 16], out[(1 << 16) + 32];

static int encrypt(const char *name, int count, int bytes) {
    int n, ok = 1;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    for (int i = 0; i < count && ok; i++)
        ok = EVP_EncryptInit_ex2(ctx, i ? NULL : cipher, i ? NULL : key, iv, NULL) && EVP_EncryptUpdate(ctx, out, &n, in, bytes) &&
             EVP_EncryptFinal_ex(ctx, out, &n);
    EVP_CIPHER_CTX_free(ctx);
    EVP_CIPHER_free(cipher);
    return ok;
}

static int hash(const char *name, int count, int bytes) {
    int ok = 1;
    EVP_MD *md = EVP_MD_fetch(NULL, name, NULL);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    for (int i = 0; i < count && ok; i++)
        ok = EVP_DigestInit_ex2(ctx, md, NULL) && EVP_DigestUpdate(ctx, in, bytes) && EVP_DigestFinal_ex(ctx, out, NULL);
    EVP_MD_CTX_free(ctx);
    EVP_MD_free(md);
    return ok;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int count = atoi(argv[2]), bytes = atoi(argv[3]);
    return !(strncmp(argv[1], "SHA", 3) ? encrypt(argv[1], count, bytes) : hash(argv[1], count, bytes));
}
