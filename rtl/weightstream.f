-F dma.f
-F kernel.f
ws_axil_demux.sv
weightstream.sv
