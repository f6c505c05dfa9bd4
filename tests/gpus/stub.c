/* A small libnvidia-ml.so.1 for tests: the functions that capwatch calls, with values and faults from a text file.

   The file is named by the environment variable NVML_STUB and read at every call, so it can change at any time. Without
   it there is no driver. Its lines:
     cards N                    how many there are (default 0)
     value CARD NAME NUMBER     what CARD tells under NAME (the functions below say the names)
     uuid CARD TEXT             (default GPU-<card>)
     fail FUNCTION CARD CODE    FUNCTION answers CODE for CARD (-1: for all, and for functions without a card)
     hang FUNCTION              FUNCTION does not come back while this line is there
     xid NUMBER CARD CODE       event NUMBER (counted from 1) of CARD; each is handed out once for each file
   A handle is valid until the library is opened again, as after a card was lost and came back. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK 0
#define INVALID 2
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define DRIVER_NOT_LOADED 9
#define TIMEOUT 10
#define MOST 64

static int generation = 0;
static long events_told = 0;

typedef struct { int generation, card, instance; } handle;
static handle handles[1024];
static int handles_used = 0;

static int reading(const char *kind, const char *name, int card, char *found, size_t size) {
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512], what[32], which[128], rest[256];
    int there = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        int number = -1;
        if (strcmp(kind, "cards") == 0 && sscanf(line, "cards %255s", rest) == 1) { snprintf(found, size, "%s", rest); there = 1; }
        if (strcmp(kind, "value") == 0 && sscanf(line, "%31s %d %127s %255s", what, &number, which, rest) == 4
            && !strcmp(what, kind) && number == card && !strcmp(which, name)) { snprintf(found, size, "%s", rest); there = 1; }
        if (strcmp(kind, "uuid") == 0 && sscanf(line, "%31s %d %255s", what, &number, rest) == 3
            && !strcmp(what, kind) && number == card) { snprintf(found, size, "%s", rest); there = 1; }
        if (strcmp(kind, "fail") == 0 && sscanf(line, "%31s %127s %d %255s", what, which, &number, rest) == 4
            && !strcmp(what, kind) && !strcmp(which, name) && (number == card || number == -1)) { snprintf(found, size, "%s", rest); there = 1; }
        if (strcmp(kind, "hang") == 0 && sscanf(line, "%31s %127s", what, which) == 2
            && !strcmp(what, kind) && !strcmp(which, name)) there = 1;
    }
    fclose(file);
    return there;
}

static int driver(void) { const char *path = getenv("NVML_STUB"); return path && access(path, R_OK) == 0; }

static int fault(const char *function, int card) {
    char code[32];
    while (reading("hang", function, card, code, sizeof code)) usleep(2000);
    if (!driver()) return DRIVER_NOT_LOADED;
    return reading("fail", function, card, code, sizeof code) ? atoi(code) : OK;
}

static int told(int card, const char *name, double *value) {
    char text[64];
    if (!reading("value", name, card, text, sizeof text)) return 0;
    *value = atof(text);
    return 1;
}

static int count(void) {
    char text[32];
    return reading("cards", "", -1, text, sizeof text) ? atoi(text) : 0;
}

static handle *handle_of(int card, int instance) {
    for (int i = 0; i < handles_used; i++)
        if (handles[i].generation == generation && handles[i].card == card && handles[i].instance == instance) return &handles[i];
    handles[handles_used] = (handle){generation, card, instance};
    return &handles[handles_used++];
}

static int check(handle *h, const char *function) {
    if (!h || h->generation != generation) return INVALID;
    return fault(function, h->card);
}

#define CHECK(function) do { int code = check(h, function); if (code) return code; } while (0)
#define WHOLE() do { if (h->instance >= 0) return NOT_SUPPORTED; } while (0)
#define VALUE(name, into, type) do { double v; if (!told(h->card, name, &v)) return NOT_SUPPORTED; *(into) = (type)v; } while (0)

int nvmlInitWithFlags(unsigned flags) { (void)flags; int code = fault("nvmlInitWithFlags", -1); if (!code) generation++; return code; }
int nvmlShutdown(void) { return fault("nvmlShutdown", -1); }
const char *nvmlErrorString(int code) { static char text[32]; snprintf(text, sizeof text, "stub error %d", code); return text; }

int nvmlSystemGetDriverVersion(char *into, unsigned size) {
    int code = fault("nvmlSystemGetDriverVersion", -1);
    if (!code) snprintf(into, size, "580.1");
    return code;
}

int nvmlDeviceGetCount_v2(unsigned *into) {
    int code = fault("nvmlDeviceGetCount_v2", -1);
    if (!code) *into = (unsigned)count();
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle **into) {
    int code = fault("nvmlDeviceGetHandleByIndex_v2", (int)index);
    if (!code && (int)index >= count()) code = INVALID;
    if (!code) *into = handle_of((int)index, -1);
    return code;
}

int nvmlDeviceGetUUID(handle *h, char *into, unsigned size) {
    char text[256];
    CHECK("nvmlDeviceGetUUID");
    if (!reading("uuid", "", h->card, text, sizeof text)) snprintf(text, sizeof text, "GPU-%d", h->card);
    if (h->instance >= 0) snprintf(into, size, "MIG-%d-%s", h->instance, text); else snprintf(into, size, "%s", text);
    return OK;
}

int nvmlDeviceGetName(handle *h, char *into, unsigned size) { CHECK("nvmlDeviceGetName"); snprintf(into, size, "Stub 80GB"); return OK; }

int nvmlDeviceGetUtilizationRates(handle *h, unsigned *into) {
    CHECK("nvmlDeviceGetUtilizationRates"); WHOLE();
    VALUE("busy", &into[0], unsigned); VALUE("memory_busy", &into[1], unsigned);
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(handle *h, struct { unsigned version; unsigned long long total, reserved, free, used; } *into) {
    CHECK("nvmlDeviceGetMemoryInfo_v2");
    VALUE("total", &into->total, unsigned long long); VALUE("used", &into->used, unsigned long long);
    if (h->instance >= 0) { into->total /= 2; into->used /= 2; }
    return OK;
}

int nvmlDeviceGetMemoryInfo(handle *h, struct { unsigned long long total, free, used; } *into) {
    CHECK("nvmlDeviceGetMemoryInfo");
    VALUE("total", &into->total, unsigned long long); VALUE("used", &into->used, unsigned long long);
    return OK;
}

int nvmlDeviceGetPowerUsage(handle *h, unsigned *into) { CHECK("nvmlDeviceGetPowerUsage"); WHOLE(); VALUE("milliwatts", into, unsigned); return OK; }
int nvmlDeviceGetTotalEnergyConsumption(handle *h, unsigned long long *into) { CHECK("nvmlDeviceGetTotalEnergyConsumption"); WHOLE(); VALUE("millijoules", into, unsigned long long); return OK; }
int nvmlDeviceGetTemperature(handle *h, int sensor, unsigned *into) { (void)sensor; CHECK("nvmlDeviceGetTemperature"); WHOLE(); VALUE("celsius", into, unsigned); return OK; }
int nvmlDeviceGetClockInfo(handle *h, int kind, unsigned *into) { (void)kind; CHECK("nvmlDeviceGetClockInfo"); WHOLE(); VALUE("megahertz", into, unsigned); return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(handle *h, unsigned long long *into) { CHECK("nvmlDeviceGetCurrentClocksEventReasons"); WHOLE(); VALUE("reasons", into, unsigned long long); return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(handle *h, unsigned long long *into) { CHECK("nvmlDeviceGetCurrentClocksThrottleReasons"); WHOLE(); VALUE("reasons", into, unsigned long long); return OK; }
int nvmlDeviceGetTotalEccErrors(handle *h, int kind, int counter, unsigned long long *into) { (void)counter; CHECK("nvmlDeviceGetTotalEccErrors"); WHOLE(); VALUE(kind ? "uncorrected" : "corrected", into, unsigned long long); return OK; }

int nvmlDeviceGetMigMode(handle *h, unsigned *current, unsigned *pending) {
    double instances = 0;
    CHECK("nvmlDeviceGetMigMode"); WHOLE();
    *current = *pending = told(h->card, "instances", &instances) && instances > 0;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(handle *h, unsigned *into) { CHECK("nvmlDeviceGetMaxMigDeviceCount"); *into = 7; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(handle *h, unsigned index, handle **into) {
    double instances = 0;
    CHECK("nvmlDeviceGetMigDeviceHandleByIndex");
    told(h->card, "instances", &instances);
    if (index >= (unsigned)instances) return NOT_FOUND;
    *into = handle_of(h->card, (int)index);
    return OK;
}

static int listening[MOST];

int nvmlEventSetCreate(void **into) { int code = fault("nvmlEventSetCreate", -1); if (!code) { memset(listening, 0, sizeof listening); *into = listening; } return code; }
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceRegisterEvents(handle *h, unsigned long long types, void *set) { (void)types; (void)set; CHECK("nvmlDeviceRegisterEvents"); listening[h->card] = 1; return OK; }

int nvmlEventSetWait_v2(void *set, struct { handle *device; unsigned long long type, data; unsigned gpu, compute; } *into, unsigned timeout) {
    const char *path = getenv("NVML_STUB");
    char line[512];
    long number; int card; unsigned long long xid;
    FILE *file;
    int code = fault("nvmlEventSetWait_v2", -1);
    static char last[512];
    (void)set; (void)timeout;
    if (code) return code;
    if (strcmp(last, path)) { snprintf(last, sizeof last, "%s", path); events_told = 0; }
    file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "xid %ld %d %llu", &number, &card, &xid) == 3 && number > events_told && listening[card]) {
            events_told = number;
            into->device = handle_of(card, -1); into->type = 8; into->data = xid;
            fclose(file);
            return OK;
        }
    }
    if (file) fclose(file);
    return TIMEOUT;
}
