/* The files of data/samples/ as read-only data. The assembler finds them through -I; CMake names
   them as dependencies of this file. '%' before a section type is understood on every ELF target. */

  .macro embed symbol, file
  .balign 64
  .globl \symbol\()_begin
  .hidden \symbol\()_begin
  .globl \symbol\()_end
  .hidden \symbol\()_end
\symbol\()_begin:
  .incbin "\file"
\symbol\()_end:
  .byte 0
  .endm

  .section .rodata.assay_samples,"a",%progbits
  embed assay_sample_digits_images, "samples/digits-images-idx3-ubyte"
  embed assay_sample_digits_labels, "samples/digits-labels-idx1-ubyte"
  embed assay_sample_text, "samples/text.txt"

  .section .note.GNU-stack,"",%progbits
