rtl/serial_registers.v
rtl/serial_kernel.v
