/* usage: resident: fetches AES-128-CBC, encrypts one message of 16 bytes, and prints how many KiB of memory the process then has in use, and how many of
 * them no other has. Run with and without a provider, the difference is what the provider takes (cargo xtask small). */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static const unsigned char key[16] = {1}, iv[16] = {2}, in[16] = {3};

int main(void) {
    unsigned char out[32];
    int n, ok;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-CBC", NULL);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    ok = EVP_EncryptInit_ex2(ctx, cipher, key, iv, NULL) && EVP_EncryptUpdate(ctx, out, &n, in, sizeof in) &&
         EVP_EncryptFinal_ex(ctx, out + n, &n);
    if (!ok) return 1;
    char line[256];
    long all = -1, own = -1;
    FILE *maps = fopen("/proc/self/smaps_rollup", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        sscanf(line, "Rss: %ld", &all);
        sscanf(line, "Private_Dirty: %ld", &own);
    }
    printf("%ld %ld\n", all, own);
    return all < 0 || own < 0;
}
