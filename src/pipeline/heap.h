// SPDX-License-Identifier: MIT
// A queue of tasks in position order: an intrusive pairing heap. A push cannot fail and
// allocates nothing, since the links lie in the tasks; a task is queued at most once.
// Guarded by whoever owns the heap.
#ifndef FL_PIPELINE_HEAP_H
#define FL_PIPELINE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fl_task_kind {
    FL_TASK_PLAN,    // make the batch's positions and samples
    FL_TASK_FETCH,   // one sample: bytes
    FL_TASK_COMPUTE, // a range of samples: decode to store
    FL_TASK_PYTHON,  // one sample: a step that only Python can do
    FL_TASK_COPY,    // LATE fields into the slab that the consumer supplied
} fl_task_kind;

// Where a task waits. Oversize computes have a queue of their own, since they need the
// permit.
typedef enum fl_queue {
    FL_QUEUE_FETCH,
    FL_QUEUE_COMPUTE,
    FL_QUEUE_OVERSIZE,
    FL_QUEUE_PYTHON,
    FL_QUEUE_COUNT,
} fl_queue;

typedef struct fl_task {
    struct fl_task *child,
        *sibling; // the heap's; `sibling` also links lists of loose tasks
    struct fl_batch *batch;
    int64_t number;       // of the batch: with `first`, the order of the heap
    int32_t first, count; // rows; -1 for tasks of the whole batch, which go first
    fl_task_kind kind;
    fl_queue queue;  // where it goes when it is pushed
    bool is_charged; // it holds bytes of the fetch budget, `charged` of them
    int64_t charged;
    bool has_permit; // it runs with the oversize permit
} fl_task;

typedef struct fl_heap {
    fl_task *top; // the lowest (number, first), NULL if empty
    int64_t count;
} fl_heap;

bool fl_task_is_before(const fl_task *a, const fl_task *b);
void fl_heap_push(fl_heap *heap, fl_task *task);
fl_task *fl_heap_pop(fl_heap *heap); // the top; the heap is not empty

#endif
