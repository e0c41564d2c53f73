// SPDX-License-Identifier: MIT
// The program for data sets of one file a sample: read the file, decode it, send it
// through the chain of each picture field, store the row. Immutable once the engine runs
// it: any thread.
#ifndef FL_PIPELINE_FILE_PROGRAM_H
#define FL_PIPELINE_FILE_PROGRAM_H

#include "catalog/catalog.h"
#include "order/cursor.h"
#include "pipeline/program.h"
#include "transform/chain.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum fl_field_source {
    FL_SOURCE_FILE,  // the sample's file
    FL_SOURCE_LABEL, // the sample's label
} fl_field_source;

typedef enum fl_field_decode {
    FL_DECODE_IMAGE, // source FILE: pixels, through the chain
    FL_DECODE_BYTES, // source FILE: the bytes as they are; LATE
    FL_DECODE_INT64, // source LABEL
} fl_field_decode;

typedef struct fl_field_spec {
    const char *name;
    fl_field_source source;
    fl_field_decode decode;
    const fl_op_spec *ops; // IMAGE only
    int32_t op_count;
    fl_pixel_layout layout; // IMAGE only
} fl_field_spec;

typedef struct fl_file_program_spec {
    fl_catalog *catalog; // a reference is taken
    const fl_field_spec *fields;
    int32_t field_count; // at most FL_MAX_FIELDS - 2
    int32_t batch_size;
    int64_t max_pixels;    // a picture that claims more is refused
    int64_t max_file_size; // bytes; as is a larger file
    size_t scratch_plan;   // bytes a compute thread may take without the permit
    bool has_fallback;     // a Python step decodes what the core does not read
} fl_file_program_spec;

// Copies the specs. The layout has two hidden fields behind the user's: "index", int64,
// and "valid", bool. The engine releases the program.
FL_MUST_CHECK fl_status fl_file_program_create(const fl_file_program_spec *spec,
                                               fl_program *out, fl_error *error);
// Where warnings of decoders are counted; before the first run.
void fl_file_program_count_warnings(fl_program program, _Atomic int64_t *counter);

// The context of one run. Takes the cursor always; fl_program_vtable.run_release frees
// it.
FL_MUST_CHECK fl_status fl_file_program_run(fl_cursor *cursor, uint64_t seed,
                                            uint64_t epoch, void **out, fl_error *error);
void fl_file_program_run_free(void *run_context);

#endif
