// SPDX-License-Identifier: MIT
// The counters of an engine as a dict; a snapshot, in which numbers of one moment stand
// beside those of the next.
#include "binding/engine_object.h"
#include "binding/engine_options.h"

// 0, or -1 with an exception set.
static int set_number(PyObject *dict, const char *name, int64_t number)
{
    PyObject *value = PyLong_FromLongLong(number);
    int result = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

// Takes `value`, which may be NULL with an exception set.
static int set_value(PyObject *dict, const char *name, PyObject *value)
{
    int result = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

typedef struct entry {
    const char *name;
    int64_t number;
} entry;

static PyObject *make_dict(const entry *entries, size_t count)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < count; i++) {
        if (set_number(dict, entries[i].name, entries[i].number) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *make_stage(const fl_stage_counters *stage)
{
    const entry entries[] = {
        {"items", fl_counter_read(&stage->items)},
        {"bytes", fl_counter_read(&stage->bytes)},
        {"errors", fl_counter_read(&stage->errors)},
        {"busy_ns", fl_counter_read(&stage->busy_ns)},
        {"starved_ns", fl_counter_read(&stage->starved_ns)},
        {"blocked_ns", fl_counter_read(&stage->blocked_ns)},
        {"queued", fl_counter_read(&stage->queued)},
        {"threads", fl_counter_read(&stage->threads)},
    };
    return make_dict(entries, Py_ARRAY_LENGTH(entries));
}

static PyObject *make_stages(const fl_counters_block *block)
{
    static const char *const names[FL_STAGE_COUNT] = {
        [FL_STAGE_PLAN] = "plan",       [FL_STAGE_FETCH] = "fetch",
        [FL_STAGE_COMPUTE] = "compute", [FL_STAGE_PYTHON] = "python",
        [FL_STAGE_COPY] = "copy",
    };
    PyObject *stages = PyDict_New();
    for (int i = 0; stages && i < FL_STAGE_COUNT; i++) {
        if (set_value(stages, names[i], make_stage(&block->stages[i])) < 0)
            Py_CLEAR(stages);
    }
    return stages;
}

static PyObject *make_pool(fl_slab_pool *pool)
{
    fl_slab_pool_usage usage = fl_slab_pool_read_usage(pool);
    const entry entries[] = {
        {"free_slabs", usage.free_slabs},
        {"free_bytes", usage.free_bytes},
        {"out_slabs", usage.out_slabs},
        {"out_bytes", usage.out_bytes},
        {"made", usage.made},
    };
    return make_dict(entries, Py_ARRAY_LENGTH(entries));
}

static PyObject *make_totals(const fl_counters_block *block)
{
    const entry entries[] = {
        {"batches_delivered", fl_counter_read(&block->batches_delivered)},
        {"samples_delivered", fl_counter_read(&block->samples_delivered)},
        {"batches_ready", fl_counter_read(&block->batches_ready)},
        {"consumer_wait_ns", fl_counter_read(&block->consumer_wait_ns)},
        {"consumer_waits", fl_counter_read(&block->consumer_waits)},
        {"waiting_since_ns", fl_counter_read(&block->waiting_since_ns)},
        {"fetched_bytes", fl_counter_read(&block->fetched_bytes)},
        {"oversize_tasks", fl_counter_read(&block->oversize_tasks)},
        {"python_fallbacks", fl_counter_read(&block->python_fallbacks)},
        {"jpeg_warnings", fl_counter_read(&block->jpeg_warnings)},
    };
    return make_dict(entries, Py_ARRAY_LENGTH(entries));
}

PyObject *fl_engine_stats(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    fl_loader *loader = ((fl_engine_object *)self)->loader;
    const fl_counters_block *block = fl_loader_counters(loader)->block;
    PyObject *stats = make_totals(block);
    if (stats && (set_value(stats, "stages", make_stages(block)) < 0 ||
                  set_value(stats, "pool", make_pool(fl_loader_pool(loader))) < 0))
        Py_CLEAR(stats);
    return stats;
}
