-F dma.f
dma/tb/ws_kernel.sv
ws_axil_demux.sv
weightstream.sv
