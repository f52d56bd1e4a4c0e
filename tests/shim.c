/* Preloaded into a process: the n-th write, sync, rename, unlink, lock or connect fails, or the process dies there.
 *
 * shim_arm(n, what) counts from now on. what > 0: the call fails with this errno, and so do all of its kind after it if
 * shim_keep(1) was called; KILL: SIGKILL instead of the call; HALF: SIGKILL after half of what was to be written.
 * shim_calls() copies the kinds of the calls so far: w, s, r, u, l, c. Calls on standard streams do not count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 100000
enum { KILL = -1, HALF = -2 };

static volatile int armed, what, keep;
static volatile long wanted, seen;
static volatile char failing;
static char kinds[MOST];

void shim_arm(long n, int code) { wanted = n; what = code; seen = 0; failing = 0; armed = 1; }
void shim_keep(int always) { keep = always; }
void shim_disarm(void) { armed = 0; }
long shim_calls(char *into, long most) {
  long n = seen < MOST ? seen : MOST;
  memcpy(into, kinds, n < most ? n : most);
  return n;
}

static int due(char kind) {
  if (!armed) return 0;
  long n = __sync_add_and_fetch(&seen, 1);
  if (n <= MOST) kinds[n - 1] = kind;
  if (n == wanted) failing = kind;
  if (n != wanted && !(keep && failing == kind)) return 0;
  if (what == KILL) kill(getpid(), SIGKILL);
  if (what > 0) errno = what;
  return what;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)
#define FAIL(kind) do { int met = due(kind); if (met > 0) return -1; if (met) kill(getpid(), SIGKILL); } while (0)
#define WRITE(name, extra, pass, ...)                                     \
  ssize_t name(int fd, const void *from, size_t size extra) {             \
    REAL(ssize_t, name, __VA_ARGS__);                                     \
    if (fd > 2) {                                                         \
      int met = due('w');                                                 \
      if (met > 0) return -1;                                             \
      if (met == HALF) { size /= 2; real(fd, from, size pass); kill(getpid(), SIGKILL); } \
    }                                                                     \
    return real(fd, from, size pass);                                     \
  }
#define COMMA ,
WRITE(write, , , int, const void *, size_t)
WRITE(pwrite, COMMA off_t at, COMMA at, int, const void *, size_t, off_t)
WRITE(pwrite64, COMMA off64_t at, COMMA at, int, const void *, size_t, off64_t)
int ftruncate(int fd, off_t to) { REAL(int, ftruncate, int, off_t); FAIL('w'); return real(fd, to); }
int ftruncate64(int fd, off64_t to) { REAL(int, ftruncate64, int, off64_t); FAIL('w'); return real(fd, to); }
int fsync(int fd) { REAL(int, fsync, int); FAIL('s'); return real(fd); }
int fdatasync(int fd) { REAL(int, fdatasync, int); FAIL('s'); return real(fd); }
int rename(const char *a, const char *b) { REAL(int, rename, const char *, const char *); FAIL('r'); return real(a, b); }
int renameat(int x, const char *a, int y, const char *b) {
  REAL(int, renameat, int, const char *, int, const char *);
  FAIL('r');
  return real(x, a, y, b);
}
int unlink(const char *a) { REAL(int, unlink, const char *); FAIL('u'); return real(a); }
int unlinkat(int x, const char *a, int f) { REAL(int, unlinkat, int, const char *, int); FAIL('u'); return real(x, a, f); }
int flock(int fd, int how) { REAL(int, flock, int, int); FAIL('l'); return real(fd, how); }
int connect(int fd, const struct sockaddr *to, socklen_t size) {
  REAL(int, connect, int, const struct sockaddr *, socklen_t);
  FAIL('c');
  return real(fd, to, size);
}
#define CONTROL(name)                                                     \
  int name(int fd, int command, ...) {                                    \
    REAL(int, name, int, int, ...);                                       \
    va_list rest;                                                         \
    va_start(rest, command);                                              \
    void *argument = va_arg(rest, void *);                                \
    va_end(rest);                                                         \
    int lock = command == F_SETLK || command == F_SETLKW;                 \
    if (lock && ((struct flock *)argument)->l_type != F_UNLCK) FAIL('l'); \
    return real(fd, command, argument);                                   \
  }
CONTROL(fcntl)
CONTROL(fcntl64)
