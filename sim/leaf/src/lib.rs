//! weightstream's leaf modules under Verilator, each by itself: ports by name, one clock.
//!
//! The modules, with their parameters, are the table in `build.rs`. A cycle of a testbench is: set
//! inputs, [`Leaf::eval`] and look at outputs that follow them at once, [`Leaf::tick`]. Registers
//! without a reset start with random bits, the same in every run.

// The runtime that the models call; nothing of it is called from Rust.
use weightstream_verilated as _;

mod bits;
mod bridge;

use std::collections::HashMap;

pub use bits::Bits;
use bridge::ffi;

/// What a testbench did wrong, or the module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    #[error("no module {name:?} in this build; it has {}", known.join(", "))]
    UnknownModule { name: String, known: Vec<String> },

    #[error("{module} has no port {port:?}")]
    UnknownPort { module: String, port: String },

    #[error("{module}.{port} is an output")]
    Output { module: String, port: String },

    #[error("{module}.{port} has {width} bits: {value} does not fit")]
    Width {
        module: String,
        port: String,
        width: usize,
        value: String,
    },

    /// A failed assertion of the module, or `$fatal`. `message` begins with file and line.
    #[error("{module} stopped in cycle {cycle}: {message}")]
    Stopped {
        module: String,
        cycle: u64,
        message: String,
    },
}

pub type Result<T> = std::result::Result<T, LeafError>;

struct Port {
    index: usize,
    width: usize,
    input: bool,
}

/// A module that stands by itself.
pub struct Leaf {
    module: String,
    model: cxx::UniquePtr<ffi::Model>,
    ports: HashMap<String, Port>,
    cycle: u64,
}

impl Leaf {
    /// The module of that name in `build.rs`, all inputs 0.
    pub fn new(module: &str) -> Result<Leaf> {
        let model = ffi::create(module);
        let Some(there) = model.as_ref() else {
            return Err(LeafError::UnknownModule {
                name: module.to_owned(),
                known: ffi::model_names(),
            });
        };
        let ports = (0..there.ports())
            .map(|index| {
                let port = Port {
                    index,
                    width: there.width(index) as usize,
                    input: there.input(index),
                };
                (there.name(index).to_owned(), port)
            })
            .collect();
        let mut leaf = Leaf {
            module: module.to_owned(),
            model,
            ports,
            cycle: 0,
        };
        let inputs: Vec<(usize, usize)> = leaf
            .ports
            .values()
            .filter(|port| port.input)
            .map(|port| (port.index, port.width))
            .collect();
        for (index, width) in inputs {
            leaf.model.pin_mut().set(index, Bits::zero(width).bytes());
        }
        Ok(leaf)
    }

    /// Sets an input to `value`, bits above it 0.
    pub fn set(&mut self, port: &str, value: impl Into<u64>) -> Result<()> {
        let value = value.into();
        let width = self.port(port)?.width;
        if width < 64 && value >> width != 0 {
            return Err(self.too_wide(port, value.to_string()));
        }
        let value = Bits::zero(width).with(0, width.min(64), value.into());
        self.put(port, &value)
    }

    /// Sets an input to a two's complement number.
    pub fn set_signed(&mut self, port: &str, value: impl Into<i128>) -> Result<()> {
        let value = value.into();
        let width = self.port(port)?.width;
        let bits = Bits::zero(width).with(0, width.min(128), value as u128);
        if width > 128 || bits.signed(0, width) != value {
            return Err(self.too_wide(port, value.to_string()));
        }
        self.put(port, &bits)
    }

    /// Sets an input to a value of just its width.
    pub fn set_bits(&mut self, port: &str, value: &Bits) -> Result<()> {
        if self.port(port)?.width != value.width() {
            return Err(self.too_wide(port, format!("{value:?}")));
        }
        self.put(port, value)
    }

    /// The value of a port of at most 64 bits.
    pub fn get(&self, port: &str) -> Result<u64> {
        let bits = self.get_bits(port)?;
        if bits.width() > 64 {
            return Err(self.too_wide(port, "a u64".into()));
        }
        Ok(bits.field(0, bits.width()) as u64)
    }

    /// Whether a port has any bit set.
    pub fn is(&self, port: &str) -> Result<bool> {
        Ok(self.get_bits(port)?.bytes().iter().any(|&byte| byte != 0))
    }

    /// The two's complement value of a port of at most 128 bits.
    pub fn get_signed(&self, port: &str) -> Result<i128> {
        let bits = self.get_bits(port)?;
        if bits.width() > 128 {
            return Err(self.too_wide(port, "an i128".into()));
        }
        Ok(bits.signed(0, bits.width()))
    }

    pub fn get_bits(&self, port: &str) -> Result<Bits> {
        let port = self.port(port)?;
        let mut bytes = vec![0; port.width.div_ceil(8)];
        self.model.get(port.index, &mut bytes);
        Ok(Bits::from_bytes(&bytes).cut(port.width))
    }

    /// Lets the outputs follow the inputs, the clock low.
    pub fn eval(&mut self) -> Result<()> {
        self.model
            .pin_mut()
            .eval()
            .map_err(|error| LeafError::Stopped {
                module: self.module.clone(),
                cycle: self.cycle,
                message: error.what().to_owned(),
            })
    }

    /// One cycle: a rising edge of the clock with the inputs as they are. Outputs are then those
    /// after the edge.
    pub fn tick(&mut self) -> Result<()> {
        self.eval()?;
        let clock = self.either("clk_i", "aclk")?;
        self.set(clock, true)?;
        self.eval()?;
        self.set(clock, false)?;
        self.eval()?;
        self.cycle += 1;
        Ok(())
    }

    /// Two cycles of reset. A module may register its reset, so assertions count from the second.
    pub fn reset(&mut self) -> Result<()> {
        let reset = self.either("rst_ni", "aresetn")?;
        self.set(reset, false)?;
        self.model.pin_mut().assertions(false);
        let first = self.tick();
        self.model.pin_mut().assertions(true);
        first?;
        self.tick()?;
        self.set(reset, true)?;
        self.eval()
    }

    /// Cycles so far.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The width of a port in bits.
    pub fn width(&self, port: &str) -> Result<usize> {
        Ok(self.port(port)?.width)
    }

    fn either(&self, one: &'static str, other: &'static str) -> Result<&'static str> {
        if self.ports.contains_key(other) {
            return Ok(other);
        }
        self.port(one).map(|_| one)
    }

    fn port(&self, port: &str) -> Result<&Port> {
        self.ports.get(port).ok_or_else(|| LeafError::UnknownPort {
            module: self.module.clone(),
            port: port.to_owned(),
        })
    }

    fn put(&mut self, name: &str, value: &Bits) -> Result<()> {
        let port = self.port(name)?;
        if !port.input {
            return Err(LeafError::Output {
                module: self.module.clone(),
                port: name.to_owned(),
            });
        }
        let index = port.index;
        self.model.pin_mut().set(index, value.bytes());
        Ok(())
    }

    fn too_wide(&self, port: &str, value: String) -> LeafError {
        LeafError::Width {
            module: self.module.clone(),
            port: port.to_owned(),
            width: self.ports.get(port).map_or(0, |port| port.width),
            value,
        }
    }
}
