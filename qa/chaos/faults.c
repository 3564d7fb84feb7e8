/* Makes system calls on files below some folders fail, as a page shared with the driver says (injection.py).
 *
 * LD_PRELOAD this with CHAOS_PAGE naming the page's file. A process that is forked or started later shares the page:
 * its calls are counted together with those of all others. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { OPEN_TO_READ, OPEN_TO_WRITE, READ, WRITE, SYNC, RENAME, CALLS };
enum { SHORT = -1, KILL = -2 };

struct page {
    char root[2][512];
    int64_t seen[CALLS];
    int64_t injected;
    int32_t armed, call, action; /* action: errno, SHORT or KILL */
    int64_t at, times;           /* from the at-th call on, so many times; at 0: at random */
    int64_t seed, per_million;
    char where[512]; /* the file of the first fault */
};

static struct page *page;

__attribute__((constructor)) static void map_page(void) {
    const char *path = getenv("CHAOS_PAGE");
    int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor < 0) return;
    void *memory = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory != MAP_FAILED) page = memory;
}

static int is_below(const char *path) {
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(page->root[i]);
        if (length && !strncmp(path, page->root[i], length)) return 1;
    }
    return 0;
}

static uint64_t mixed(uint64_t value) { /* splitmix64 */
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* What is to happen to this call on `path`: 0, an errno, or SHORT. */
static int fate(enum call call, const char *path) {
    if (!page || !page->armed || !is_below(path)) return 0;
    int64_t number = __sync_add_and_fetch(&page->seen[call], 1);
    if (page->call != (int)call) return 0;
    if (page->at ? number < page->at : mixed(page->seed ^ (uint64_t)number) % 1000000 >= (uint64_t)page->per_million)
        return 0;
    if (__sync_add_and_fetch(&page->injected, 1) > page->times) return 0;
    if (!page->where[0]) strncpy(page->where, path, sizeof page->where - 1);
    if (page->action == KILL) kill(getpid(), SIGKILL);
    return page->action;
}

static int fate_of_path(enum call call, const char *path) {
    char absolute[4096];
    if (!page || !page->armed || !path) return 0;
    if (path[0] == '/') return fate(call, path);
    if (!getcwd(absolute, sizeof absolute - 1)) return 0;
    size_t length = strlen(absolute);
    snprintf(absolute + length, sizeof absolute - length, "/%s", path);
    return fate(call, absolute);
}

static int fate_of_file(enum call call, int descriptor) {
    char link[64], path[4096];
    if (!page || !page->armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return fate(call, path);
}

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* Sets errno and returns -1 where the call must fail; with SHORT, halves `size`. */
#define FAIL_OR_SHORTEN(fate_, size)                     \
    do {                                                 \
        int fate__ = (fate_);                            \
        if (fate__ > 0) { errno = fate__; return -1; }   \
        if (fate__ == SHORT && (size) > 1) (size) /= 2;  \
    } while (0)
#define FAIL(fate_) do { size_t one__ = 1; FAIL_OR_SHORTEN(fate_, one__); } while (0)

#define REAL_OPEN ((int (*)(const char *, int, ...))real("open"))
static void note(const char *path) { /* while nothing is to fail, in a file beside the page */
    char file[4096];
    if (!page || !page->armed || page->call >= 0 || !path) return;
    snprintf(file, sizeof file, "%s.opened", getenv("CHAOS_PAGE"));
    int descriptor = REAL_OPEN(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    dprintf(descriptor, "%s\n", path);
    close(descriptor);
}

static int is_opened(const char *path, int flags) {
    if ((flags & O_ACCMODE) == O_RDONLY) note(path);
    FAIL(fate_of_path((flags & O_ACCMODE) == O_RDONLY ? OPEN_TO_READ : OPEN_TO_WRITE, path));
    return 0;
}

#define MODE(last)                       \
    mode_t mode = 0;                     \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list rest;                    \
        va_start(rest, last);            \
        mode = va_arg(rest, mode_t);     \
        va_end(rest);                    \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return is_opened(path, flags) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags)
    return is_opened(path, flags) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return is_opened(path, flags) ? -1 : REAL(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return is_opened(path, flags) ? -1 : REAL(openat64)(folder, path, flags, mode);
}
FILE *fopen(const char *path, const char *mode) {
    return is_opened(path, mode[0] == 'r' ? O_RDONLY : O_WRONLY) ? NULL : REAL(fopen)(path, mode);
}
FILE *fopen64(const char *path, const char *mode) {
    return is_opened(path, mode[0] == 'r' ? O_RDONLY : O_WRONLY) ? NULL : REAL(fopen64)(path, mode);
}
ssize_t read(int descriptor, void *buffer, size_t size) {
    FAIL_OR_SHORTEN(fate_of_file(READ, descriptor), size);
    return REAL(read)(descriptor, buffer, size);
}
ssize_t pread64(int descriptor, void *buffer, size_t size, off64_t offset) {
    FAIL_OR_SHORTEN(fate_of_file(READ, descriptor), size);
    return REAL(pread64)(descriptor, buffer, size, offset);
}
ssize_t write(int descriptor, const void *buffer, size_t size) {
    FAIL_OR_SHORTEN(fate_of_file(WRITE, descriptor), size);
    return REAL(write)(descriptor, buffer, size);
}
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    FAIL_OR_SHORTEN(fate_of_file(WRITE, descriptor), count);
    return REAL(writev)(descriptor, parts, count);
}
size_t fwrite(const void *buffer, size_t size, size_t count, FILE *file) { /* its own writes can't be reached */
    int fated = fate_of_file(WRITE, fileno(file));
    if (fated > 0) { errno = fated; return 0; }
    return REAL(fwrite)(buffer, size, count, file);
}
int fsync(int descriptor) {
    FAIL(fate_of_file(SYNC, descriptor));
    return REAL(fsync)(descriptor);
}
int rename(const char *from, const char *to) {
    FAIL(fate_of_path(RENAME, to));
    return REAL(rename)(from, to);
}
