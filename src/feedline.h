// SPDX-License-Identifier: MIT
// The C API: describe a loader, open it, start runs, take batches, read the state and the
// counters, close. The only header that the binding includes; what it includes here is
// part of the API.
#ifndef FL_FEEDLINE_H
#define FL_FEEDLINE_H

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/philox.h"
#include "base/status.h"
#include "batch/layout.h"
#include "batch/slab.h"
#include "catalog/catalog.h"
#include "decode/decoder.h"
#include "deliver/dlpack.h"
#include "order/cursor.h"
#include "order/permutation.h"
#include "pipeline/engine.h"
#include "pipeline/file_program.h"
#include "stats/counters.h"
#include "transform/chain.h"

typedef struct fl_loader_spec {
    fl_catalog *catalog; // a reference is taken
    const fl_field_spec *fields;
    int32_t field_count; // at most FL_MAX_FIELDS - 2
    int32_t batch_size;
    bool full_batches; // runs fill them up (FL_UNEVEN_MASK); else no batch has more rows
                       // than there are samples, and no memory is taken for more
    int32_t compute_threads, fetch_threads; // at least 1
    int32_t python_threads;   // for the Pillow step; 0: there is none, and files that no
                              // decoder takes are errors that say how to get it
    int32_t prefetch_batches; // undelivered batches, at least 1
    int64_t memory_limit;     // bytes of undelivered batches and fetched files
    bool in_order;
    int64_t max_pixels; // a picture that claims more is refused
} fl_loader_spec;

typedef struct fl_loader fl_loader;

// Checks the description, plans the layout, makes the engine; starts nothing. Takes the
// allocator always: a failure destroys it.
FL_MUST_CHECK fl_status fl_loader_open(const fl_loader_spec *spec, fl_allocator allocator,
                                       fl_loader **out, fl_error *error);
// Stops without waiting and drops the loader's references; runs and batches stay valid.
// Call fl_engine_close(fl_loader_engine(...)) first to wait.
void fl_loader_free(fl_loader *loader);
fl_engine *fl_loader_engine(const fl_loader *loader); // borrowed
const fl_layout *
fl_loader_layout(const fl_loader *loader);             // with the two hidden fields last:
                                                       // "index" int64, "valid" bool
int32_t fl_loader_batch_size(const fl_loader *loader); // also where rows are fewer
const fl_counters *fl_loader_counters(const fl_loader *loader); // borrowed
fl_slab_pool *fl_loader_pool(const fl_loader *loader);          // borrowed

// What was planned from the spec, for explain().
typedef struct fl_loader_plan {
    int32_t window;       // undelivered batches a run
    int64_t fetch_bytes;  // of files that are read and not yet decoded
    int64_t late_bytes;   // of undelivered fields without a fixed size
    int64_t scratch_plan; // a compute thread may take before it needs the permit
} fl_loader_plan;
fl_loader_plan fl_loader_read_plan(const fl_loader *loader);

// A run over the loader's catalog; spec->count and spec->batch_size are the loader's.
FL_MUST_CHECK fl_status fl_loader_start_run(fl_loader *loader, const fl_cursor_spec *spec,
                                            fl_run **out, fl_error *error);

#endif
