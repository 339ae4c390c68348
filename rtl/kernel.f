ws_pkg.sv
kernel/ws_kernel_pkg.sv
-y kernel
