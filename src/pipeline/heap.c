// SPDX-License-Identifier: MIT
#include "pipeline/heap.h"

#include <stddef.h>

bool fl_task_is_before(const fl_task *a, const fl_task *b)
{
    return a->number != b->number ? a->number < b->number : a->first < b->first;
}

static fl_task *meld(fl_task *a, fl_task *b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    fl_task *parent = fl_task_is_before(b, a) ? b : a;
    fl_task *child = parent == a ? b : a;
    child->sibling = parent->child;
    parent->child = child;
    return parent;
}

void fl_heap_push(fl_heap *heap, fl_task *task)
{
    task->child = task->sibling = NULL;
    heap->top = meld(heap->top, task);
    heap->count++;
}

// Two passes: meld the children in pairs from the left, then the pairs from the right.
fl_task *fl_heap_pop(fl_heap *heap)
{
    fl_task *popped = heap->top;
    fl_task *rest = popped->child, *pairs = NULL;
    while (rest) {
        fl_task *a = rest, *b = a->sibling;
        rest = b ? b->sibling : NULL;
        a->sibling = NULL;
        if (b)
            b->sibling = NULL;
        fl_task *pair = meld(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }

    fl_task *top = NULL;
    while (pairs) {
        fl_task *next = pairs->sibling;
        pairs->sibling = NULL;
        top = meld(top, pairs);
        pairs = next;
    }
    heap->top = top;
    heap->count--;
    popped->child = popped->sibling = NULL;
    return popped;
}
