// SPDX-License-Identifier: MIT
// The yardstick: libjpeg-turbo decodes whole pictures to RGB on one thread, and nothing
// else. It reads the same files as the loaders.
//   bare_decode EPOCHS FILE...    prints JSON: images, wall and CPU seconds
#include <stdio.h>
// jpeglib.h wants stdio.h before it.
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>
#include <time.h>

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf fault;
    unsigned char *bytes, *pixels;
    size_t bytes_size, pixels_size;
} decoder;

static void on_fault(j_common_ptr jpeg)
{
    longjmp(((decoder *)jpeg->client_data)->fault, 1);
}

static void on_message(j_common_ptr jpeg)
{
    (void)jpeg; // warnings are ignored, as the loaders do
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// A block of at least `size` bytes in place of `block`.
static unsigned char *grow(unsigned char *block, size_t *held, size_t size)
{
    if (size <= *held)
        return block;
    free(block);
    block = malloc(size);
    if (!block) {
        perror("bare_decode");
        exit(1);
    }
    *held = size;
    return block;
}

static size_t read_file(decoder *self, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    long size = ftell(file);
    rewind(file);
    self->bytes = grow(self->bytes, &self->bytes_size, (size_t)size);
    if (fread(self->bytes, 1, (size_t)size, file) != (size_t)size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return (size_t)size;
}

static int decode(decoder *self, size_t size)
{
    struct jpeg_decompress_struct *jpeg = &self->jpeg;
    if (setjmp(self->fault)) {
        jpeg_abort_decompress(jpeg);
        return 0;
    }
    jpeg_mem_src(jpeg, self->bytes, size);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components != 4)
        jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    size_t stride = (size_t)jpeg->output_width * (size_t)jpeg->output_components;
    self->pixels = grow(self->pixels, &self->pixels_size, stride * jpeg->output_height);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = self->pixels + stride * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
    return 1;
}

int main(int count, char **arguments)
{
    static decoder self;
    long images = 0, epochs = count > 2 ? strtol(arguments[1], NULL, 10) : 0;
    if (epochs < 1) {
        fprintf(stderr, "usage: bare_decode EPOCHS FILE...\n");
        return 2;
    }
    self.jpeg.err = jpeg_std_error(&self.errors);
    self.errors.error_exit = on_fault;
    self.errors.output_message = on_message;
    jpeg_create_decompress(&self.jpeg);
    self.jpeg.client_data = &self;

    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    for (long epoch = 0; epoch < epochs; epoch++)
        for (int i = 2; i < count; i++)
            images += decode(&self, read_file(&self, arguments[i]));
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;

    printf("{\"images\": %ld, \"wall\": %.6f, \"cpu\": %.6f, \"first\": 0}\n", images,
           wall, cpu);
    jpeg_destroy_decompress(&self.jpeg);
    free(self.bytes);
    free(self.pixels);
    return 0;
}
