/* usage: sandboxed WARM COUNT [child|ssh|first]: so many requests of each size, then a filter that ends the process at the first call by which anything
 * is opened, made or begun, then more requests. With `child`, a forked child does all that, after one request of its parent's. With WARM 0 only
 * small messages precede the filter, and only such follow. With `ssh`, a forked child enters the filter in which OpenSSH's server (9.2) receives keys and
 * passwords, right away: a file is refused there, and what it does not expect ends the process. With `first` the same, and its parent has loaded the
 * configuration and had no request. Prints "alive". */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE (4 << 20)
#include "message.h"

static int requests(int bytes, int count) {
    unsigned char digest[32];
    int ok = 1;
    for (int i = 0; i < count; i++)
        ok = ok && encrypt(EVP_aes_128_cbc(), bytes) && encrypt(EVP_aes_256_ctr(), bytes) && encrypt(EVP_aes_256_gcm(), bytes) &&
             EVP_Digest(in, bytes < 4096 ? bytes : 4096, digest, NULL, EVP_sha256(), NULL);
    return ok;
}

static int all_requests(int count, int is_large) {
    if (!requests(100, 300)) return 0;
    return !is_large || (requests(16384, count) && requests(65536, count) && requests(LARGE, count / 3 + 1));
}

#define ENDS(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int enter(struct sock_filter *lines, size_t count) {
    struct sock_fprog program = {count, lines};
    /* For threads that are there already, too. */
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

#define ANSWERS(name, how) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, how)
#define DENIES(name) ANSWERS(name, SECCOMP_RET_ERRNO | EACCES)
#define ALLOWS(name) ANSWERS(name, SECCOMP_RET_ALLOW)

/* sandbox-seccomp-filter.c, without its looks at arguments. */
static int filter_of_openssh(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENIES(lstat), DENIES(fstat), DENIES(open), DENIES(openat), DENIES(newfstatat), DENIES(stat),
        DENIES(shmget), DENIES(shmat), DENIES(shmdt), DENIES(statx),
        ALLOWS(brk), ALLOWS(clock_gettime), ALLOWS(close), ALLOWS(exit), ALLOWS(exit_group), ALLOWS(futex),
        ALLOWS(geteuid), ALLOWS(getpgid), ALLOWS(getpid), ALLOWS(getrandom), ALLOWS(gettid), ALLOWS(gettimeofday),
        ALLOWS(getuid), ALLOWS(madvise), ALLOWS(mmap), ALLOWS(mprotect), ALLOWS(mremap), ALLOWS(munmap),
        ALLOWS(nanosleep), ALLOWS(clock_nanosleep), ALLOWS(ppoll), ALLOWS(poll), ALLOWS(pselect6), ALLOWS(read),
        ALLOWS(rt_sigprocmask), ALLOWS(select), ALLOWS(shutdown), ALLOWS(time), ALLOWS(write), ALLOWS(writev),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    return enter(lines, sizeof lines / sizeof *lines);
}

static int filter(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ENDS(clone), ENDS(clone3), ENDS(fork), ENDS(vfork), ENDS(execve),
        ENDS(socket), ENDS(connect),
        ENDS(shmget), ENDS(shmat), ENDS(memfd_create), ENDS(eventfd2), ENDS(epoll_create1), ENDS(epoll_ctl), ENDS(pipe2),
        ENDS(open), ENDS(openat), ENDS(openat2), ENDS(mkdir), ENDS(mkdirat), ENDS(unlinkat), ENDS(fallocate), ENDS(ftruncate),
        ENDS(getdents64), ENDS(kill), ENDS(ioctl), ENDS(setsockopt), ENDS(statx), ENDS(newfstatat),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return enter(lines, sizeof lines / sizeof *lines);
}

static int work(int warm, int count, int is_ssh) {
    memset(in, 1, sizeof in);
    if (is_ssh) return filter_of_openssh() ? (all_requests(count, 1) ? 0 : 5) : 4;
    if (!all_requests(warm, warm > 0)) return 3;
    if (!filter()) return 4;
    return all_requests(count, warm > 0) ? 0 : 5;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int warm = atoi(argv[1]), count = atoi(argv[2]), status = 0;
    if (argc > 3) {
        int is_first = !strcmp(argv[3], "first");
        if (!(is_first ? OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL) : requests(16384, 1))) return 3;
        pid_t child = fork();
        if (child < 0) return 2;
        if (!child) _exit(work(warm, count, is_first || !strcmp(argv[3], "ssh")));
        if (waitpid(child, &status, 0) != child) return 2;
        if (WIFSIGNALED(status)) fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    } else
        status = work(warm, count, 0);
    if (status) return 1;
    return write(1, "alive\n", 6) != 6;
}
