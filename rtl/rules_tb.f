dma/tb/weightstream.sv
