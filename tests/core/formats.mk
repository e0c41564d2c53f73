# The optional formats whose libraries pkg-config knows: DEFINES for the core, LIBRARIES to link.
HAS       = $(shell pkg-config --exists $(1) 2>/dev/null && echo yes)
PNG      := $(call HAS,libpng)
WEBP     := $(call HAS,libwebp libwebpdemux)
DEFINES  := $(if $(PNG),-DFL_HAVE_PNG) $(if $(WEBP),-DFL_HAVE_WEBP)
LIBRARIES := -ljpeg $(if $(PNG),-lpng -lz) $(if $(WEBP),-lwebpdemux -lwebp) -lm
