// SPDX-License-Identifier: MIT
// The queue of tasks against a sorted list: random pushes and pops.
#include "check.h"
#include "model_program.h"
#include "pipeline/heap.h"

enum { TASKS = 400 };

static int compare(const void *a, const void *b)
{
    const fl_task *first = *(fl_task *const *)a, *second = *(fl_task *const *)b;
    return fl_task_is_before(first, second) ? -1 : fl_task_is_before(second, first);
}

static void test_order(void)
{
    fl_task plan = {.number = 3, .first = -1}, row = {.number = 3, .first = 0};
    fl_task next = {.number = 4, .first = -1};
    CHECK(fl_task_is_before(&plan, &row) && !fl_task_is_before(&row, &plan));
    CHECK(fl_task_is_before(&row, &next) && !fl_task_is_before(&next, &row));
    CHECK(!fl_task_is_before(&row, &row));
}

// Sorted pushes, as batches come, are the worst case of an unbalanced tree.
static void test_sorted(bool is_rising)
{
    static fl_task tasks[TASKS];
    fl_heap heap = {0};
    for (int32_t i = 0; i < TASKS; i++) {
        fl_task *task = &tasks[is_rising ? i : TASKS - 1 - i];
        *task = (fl_task){.number = (task - tasks) / 8, .first = (int32_t)(task - tasks)};
        fl_heap_push(&heap, task);
        CHECK_INT(heap.count, i + 1);
    }
    for (int32_t i = 0; i < TASKS; i++) {
        CHECK(heap.top == &tasks[i]);
        CHECK(fl_heap_pop(&heap) == &tasks[i]);
    }
    CHECK(!heap.top && heap.count == 0);
}

static void test_random(uint64_t seed)
{
    static fl_task tasks[TASKS];
    fl_task *queued[TASKS];
    fl_heap heap = {0};
    int32_t count = 0, used = 0;
    for (uint64_t step = 0; used < TASKS || count > 0; step++) {
        uint64_t draw = model_hash(seed, step);
        if (used < TASKS && draw % 5 < 3) {
            fl_task *task = &tasks[used++];
            *task = (fl_task){.number = (int64_t)(draw >> 8) % 20, .first = used};
            fl_heap_push(&heap, task);
            queued[count++] = task;
        } else if (count > 0) {
            qsort(queued, (size_t)count, sizeof(queued[0]), compare);
            fl_task *popped = fl_heap_pop(&heap);
            CHECK(popped == queued[0]);
            CHECK(!popped->child && !popped->sibling);
            queued[0] = queued[--count];
        }
        CHECK_INT(heap.count, count);
        CHECK_INT(heap.top == NULL, count == 0);
    }
}

int main(void)
{
    test_order();
    test_sorted(true);
    test_sorted(false);
    for (uint64_t seed = 0; seed < 100; seed++)
        test_random(seed);
    return 0;
}
