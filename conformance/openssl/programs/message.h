/* A message of a program: one key and IV, input of LARGE bytes, which is defined before, and its ciphertext. */
#include <openssl/evp.h>

static const unsigned char key[32] = {1}, iv[16] = {2};
static unsigned char in[LARGE], out[LARGE + 16];

static int encrypt(const EVP_CIPHER *cipher, int bytes) {
    int n;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int ok = EVP_EncryptInit_ex(ctx, cipher, NULL, key, iv) && EVP_EncryptUpdate(ctx, out, &n, in, bytes);
    EVP_CIPHER_CTX_free(ctx);
    return ok;
}
