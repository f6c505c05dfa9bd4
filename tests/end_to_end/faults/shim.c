/* Stands between a process and its C library: what a test does to the daemon's world without the daemon knowing.
 *
 * SHIM_CONTROL names a file that the test maps too; its numbers say what holds at this moment. SHIM_JOURNAL names a file
 * that gets every change of a file under SHIM_FOLDER, and every fsync of one, in order: what a disk would have known.
 * See shim.py for both layouts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    double clock_offset;  /* s, added to the wall clock */
    double fsync_delay;   /* s, before an fsync of a file under SHIM_FOLDER */
    int64_t fsync_errno;  /* what such an fsync returns instead of being done; 0: it is done */
    int64_t write_errno;  /* the same for writes and truncations of such files */
    int64_t no_inotify;   /* whether there is no inotify instance left */
    int64_t kill_after;   /* changes of files under SHIM_FOLDER, after which the process dies; 0: it lives */
};

static struct control nothing, *now = &nothing;
static int journal = -1;
static const char *folder;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SHIM_CONTROL");
    folder = getenv("SHIM_FOLDER");
    if (path) {
        int fd = REAL(open)(path, O_RDWR | O_CLOEXEC);
        void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) abort();
        now = at;
        close(fd);
    }
    path = getenv("SHIM_JOURNAL");
    if (path) {
        journal = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (journal < 0) abort();
    }
}

/* The name, within the folder, of the file behind a descriptor; empty where it is elsewhere. */
static void name_of(int fd, char *name, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, size - 1);
    name[length < 0 ? 0 : length] = 0;
    size_t prefix = folder ? strlen(folder) : 0;
    if (!prefix || strncmp(name, folder, prefix) || name[prefix] != '/') name[0] = 0;
    else memmove(name, name + prefix + 1, strlen(name + prefix + 1) + 1);
}

/* One more change of the state: the last one, perhaps. */
static void step(const char *name) {
    static int64_t steps;
    if (name[0] && now->kill_after && __atomic_add_fetch(&steps, 1, __ATOMIC_SEQ_CST) >= now->kill_after) {
        kill(getpid(), SIGKILL);
        pause();
    }
}

static void note(char what, const char *name, const char *other, int64_t place, const void *data, int64_t length) {
    step(name);
    if (journal < 0 || !name[0]) return;
    struct timespec at;
    REAL(clock_gettime)(CLOCK_MONOTONIC, &at);
    struct { double at; int64_t place, length; char what, name[95], other[96]; } head = {0};
    head.at = at.tv_sec + at.tv_nsec / 1e9;
    head.place = place;
    head.length = length;
    head.what = what;
    snprintf(head.name, sizeof head.name, "%s", name);
    snprintf(head.other, sizeof head.other, "%s", other);
    pthread_mutex_lock(&lock);
    if (REAL(write)(journal, &head, sizeof head) != sizeof head) abort();
    if (data && REAL(write)(journal, data, length) != length) abort();
    pthread_mutex_unlock(&lock);
}

/* Writing */

static void wrote(int fd, const void *data, int64_t length, int64_t place) {
    char name[4096];
    if (!folder || length <= 0) return;
    name_of(fd, name, sizeof name);
    note('w', name, "", place, data, length);
}

/* Whether a change of the file behind a descriptor is refused. */
static int refused(int fd) {
    char name[4096];
    if (!now->write_errno) return 0;
    name_of(fd, name, sizeof name);
    if (!name[0]) return 0;
    errno = now->write_errno;
    return 1;
}

ssize_t write(int fd, const void *data, size_t size) {
    if (refused(fd)) return -1;
    ssize_t length = REAL(write)(fd, data, size);
    if (folder && length > 0) wrote(fd, data, length, lseek(fd, 0, SEEK_CUR) - length);
    return length;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    if (refused(fd)) return -1;
    ssize_t length = REAL(pwrite)(fd, data, size, place);
    wrote(fd, data, length, place);
    return length;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    if (refused(fd)) return -1;
    ssize_t length = REAL(pwrite64)(fd, data, size, place);
    wrote(fd, data, length, place);
    return length;
}

static void cut(int fd, int64_t length) {
    char name[4096];
    name_of(fd, name, sizeof name);
    note('t', name, "", length, NULL, 0);
}

int ftruncate(int fd, off_t length) {
    if (refused(fd)) return -1;
    int code = REAL(ftruncate)(fd, length);
    if (!code) cut(fd, length);
    return code;
}

int ftruncate64(int fd, off64_t length) {
    if (refused(fd)) return -1;
    int code = REAL(ftruncate64)(fd, length);
    if (!code) cut(fd, length);
    return code;
}

/* Names; the tests only use paths that begin with the folder as it is given */

static const char *inside(const char *path) {
    size_t prefix = folder ? strlen(folder) : 0;
    return prefix && !strncmp(path, folder, prefix) && path[prefix] == '/' ? path + prefix + 1 : "";
}

int rename(const char *old, const char *new) {
    int code = REAL(rename)(old, new);
    if (!code) note('r', inside(old), inside(new), 0, NULL, 0);
    return code;
}

int unlink(const char *path) {
    int code = REAL(unlink)(path);
    if (!code) note('u', inside(path), "", 0, NULL, 0);
    return code;
}

/* Making durable */

static int synced(int fd, int (*real)(int)) {
    char name[4096];
    name_of(fd, name, sizeof name);
    if (!name[0]) return real(fd);
    if (now->fsync_delay > 0) usleep(now->fsync_delay * 1e6);
    if (now->fsync_errno) {
        errno = now->fsync_errno;
        return -1;
    }
    int code = real(fd);
    if (!code) note('s', name, "", 0, NULL, 0);
    return code;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

/* The clock, and inotify */

static void shift(struct timespec *at) {
    double seconds = now->clock_offset, whole = (double)(int64_t)seconds;
    at->tv_sec += (time_t)whole;
    at->tv_nsec += (long)((seconds - whole) * 1e9);
    if (at->tv_nsec >= 1000000000L) at->tv_nsec -= 1000000000L, at->tv_sec++;
    if (at->tv_nsec < 0) at->tv_nsec += 1000000000L, at->tv_sec--;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int code = REAL(clock_gettime)(clock, at);
    if (!code && clock == CLOCK_REALTIME) shift(at);
    return code;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    at->tv_sec = exact.tv_sec;
    at->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (at) *at = exact.tv_sec;
    return exact.tv_sec;
}

int inotify_init1(int flags) {
    if (now->no_inotify) {
        errno = EMFILE;
        return -1;
    }
    return REAL(inotify_init1)(flags);
}
