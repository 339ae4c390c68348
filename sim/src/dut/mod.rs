//! Other people's RTL in the harness: a design under test, Verilated and compiled with the clock
//! loop, the memory model and the protocol checks into a shared object that [`crate::Sim::load`]
//! runs.
//!
//! All that is needed besides the design, Verilator, make and a C++ compiler is embedded here.

mod compile;
mod error;
mod verilate;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use include_dir::{Dir, include_dir};
use weightstream_verilated::toolchain::Toolchain;

pub use error::DutError;

/// Stands for the sources of the harness. A shared object runs in a binary of the same harness.
pub(crate) const HARNESS: &str = env!("WEIGHTSTREAM_SIM_HARNESS");

static RTL: Dir = include_dir!("$CARGO_MANIFEST_DIR/../rtl");
static CPP: Dir = include_dir!("$CARGO_MANIFEST_DIR/cpp");
static HOOKS: Dir = include_dir!("$CARGO_MANIFEST_DIR/verilated/cpp");

/// What a design takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The streaming kernel, behind our DMA engine with a stream of `bus_width` bits: 64, 128, 256
    /// or 512. Its ports are those of `docs/dut.md`.
    Kernel { bus_width: u32 },
    /// The whole accelerator: a module `weightstream` with the ports of ours, as an edited `rtl/`
    /// has it.
    Accelerator,
}

/// A design under test and how it is built.
#[derive(Debug, Clone)]
pub struct Dut<'a> {
    pub part: Part,
    /// Its top module.
    pub top: &'a str,
    /// Files of arguments for Verilator, each with paths relative to its own folder (`-F`).
    pub filelists: &'a [PathBuf],
    /// Parameters of the top module, as SystemVerilog expressions.
    pub parameters: &'a [(String, String)],
    /// The shared object to be made.
    pub output: &'a Path,
    /// A folder for what is made on the way. What has not changed since is not compiled again.
    pub build_dir: &'a Path,
    /// Count which lines run and which bits toggle. A process that ran the object writes its counts
    /// when it ends, as Verilator's `<pid>.dat` in the folder that the environment variable
    /// `WEIGHTSTREAM_COVERAGE` names. The simulation is some 20 times slower.
    pub coverage: bool,
    /// Compile in two thirds of the time, for a simulation that is an eighth slower: what runs for
    /// seconds ends earlier so.
    pub quick: bool,
    /// Compilers at a time.
    pub jobs: usize,
}

impl Dut<'_> {
    /// Makes the shared object. `say` gets Verilator's messages as they are; compiler and linker
    /// write theirs to stderr.
    ///
    /// # Errors
    /// [`DutError`]; an older object at `output` is then left as it was.
    pub fn build(&self, mut say: impl FnMut(&str)) -> Result<(), DutError> {
        self.check()?;
        let toolchain = Toolchain::find().map_err(DutError::Verilator)?;
        let folder = Folder::new(self.build_dir)?;
        folder.unpack(&RTL, "rtl")?;
        folder.unpack(&CPP, "harness")?;
        folder.unpack(&HOOKS, "harness")?;
        verilate::verilate(self, &toolchain, &folder, &mut say)?;
        compile::compile(self, &toolchain, &folder)
    }

    fn check(&self) -> Result<(), DutError> {
        let fail = |option, value: String, rule| {
            Err(DutError::Option {
                option,
                value,
                rule,
            })
        };
        let identifier = |s: &str| {
            s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && s.chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        };
        if !identifier(self.top) {
            return fail("top", self.top.into(), "must be the name of a module");
        }
        if let Some((name, _)) = self.parameters.iter().find(|(name, _)| !identifier(name)) {
            return fail("param", name.clone(), "must be the name of a parameter");
        }
        if let Part::Kernel { bus_width } = self.part
            && ![64, 128, 256, 512].contains(&bus_width)
        {
            let value = bus_width.to_string();
            return fail("bus-width", value, "must be 64, 128, 256 or 512 bits");
        }
        for filelist in self.filelists {
            fs::File::open(filelist).map_err(io_error(filelist))?;
        }
        Ok(())
    }
}

/// The folder in which an object is built.
struct Folder(PathBuf);

impl Folder {
    fn new(path: &Path) -> Result<Folder, DutError> {
        fs::create_dir_all(path).map_err(io_error(path))?;
        // Verilator and make run elsewhere.
        Ok(Folder(path.canonicalize().map_err(io_error(path))?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn unpack(&self, from: &Dir, to: &str) -> Result<(), DutError> {
        for file in from.files() {
            self.write(&Path::new(to).join(file.path()), file.contents())?;
        }
        from.dirs().try_for_each(|dir| self.unpack(dir, to))
    }

    /// Writes a file, unless it holds that already: make goes by the times.
    fn write(&self, name: &Path, contents: &[u8]) -> Result<(), DutError> {
        let path = self.0.join(name);
        if fs::read(&path).is_ok_and(|old| old == contents) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io_error(parent))?;
        }
        fs::write(&path, contents).map_err(io_error(&path))
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DutError {
    let path = path.to_owned();
    move |source| DutError::Io { path, source }
}
