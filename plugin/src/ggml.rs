//! The ggml that is in the process.
//!
//! Its symbols are visible to us or not, as whoever loaded it chose (Python's ctypes keeps them
//! local), so every object in the process is asked for them.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute_copy;

use weightstream_core::ggml::Api;

/// `ggml_log_internal`: a level, a format and its arguments.
pub type LogFunction = unsafe extern "C" fn(c_int, *const c_char, ...);

/// ggml's functions.
pub struct Ggml {
    pub api: Api,
    pub log: LogFunction,
}

/// Why there is no ggml to serve.
#[derive(Debug, thiserror::Error)]
pub enum NoGgml {
    #[error("there is no ggml in this process: none of its objects has {ANCHOR}")]
    None,
    #[error("there are several ggml in this process: {}", .0.join(", "))]
    Several(Vec<String>),
    #[error("the ggml in {object} has no {symbol}")]
    Symbol {
        object: String,
        symbol: &'static str,
    },
}

/// A symbol that tells ggml from what only calls it.
const ANCHOR: &str = "ggml_backend_buffer_init";

impl Ggml {
    /// # Errors
    /// [`NoGgml`] if there is none, or more than one to choose from, or a function is missing.
    pub fn find() -> Result<Ggml, NoGgml> {
        // An object's handle finds the symbols of what it depends on, too: one ggml, many handles.
        let mut found = BTreeMap::new();
        for object in objects() {
            if let Some(at) = object.symbol(ANCHOR) {
                found.entry(at as usize).or_insert(object);
            }
        }
        let mut found = found.into_values();
        let object = match (found.next(), found.next()) {
            (Some(object), None) => object,
            (None, _) => return Err(NoGgml::None),
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(found);
                return Err(NoGgml::Several(all.map(|o| o.definer(ANCHOR)).collect()));
            }
        };
        macro_rules! function {
            ($symbol:literal) => {{
                let at = object.symbol($symbol).ok_or_else(|| NoGgml::Symbol {
                    object: object.definer(ANCHOR),
                    symbol: $symbol,
                })?;
                // SAFETY: the function of that name in ggml, whose signature the table has.
                unsafe { transmute_copy(&at) }
            }};
        }
        Ok(Ggml {
            api: Api {
                version: function!("ggml_version"),
                op_name: function!("ggml_op_name"),
                get_type_traits: function!("ggml_get_type_traits"),
                nbytes: function!("ggml_nbytes"),
                graph_n_nodes: function!("ggml_graph_n_nodes"),
                graph_node: function!("ggml_graph_node"),
                buffer_init: function!("ggml_backend_buffer_init"),
                buft_is_host: function!("ggml_backend_buft_is_host"),
            },
            log: function!("ggml_log_internal"),
        })
    }
}

/// An object (program or shared object) in the process, kept there.
struct Object(*mut c_void);

impl Object {
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).expect("without NUL");
        // SAFETY: the handle is open as long as the object is ours.
        let at = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!at.is_null()).then_some(at)
    }

    /// The file that defines `symbol`, for messages.
    fn definer(&self, symbol: &str) -> String {
        let at = self.symbol(symbol).unwrap_or(std::ptr::null_mut());
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: `info` is written if the result is not 0; its strings are those of the object.
        unsafe {
            if libc::dladdr(at, info.as_mut_ptr()) == 0
                || info.assume_init_ref().dli_fname.is_null()
            {
                return "an object without a name".into();
            }
            let name = CStr::from_ptr(info.assume_init_ref().dli_fname);
            name.to_string_lossy().into_owned()
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: opened by `objects`, closed once. Whoever loaded ggml keeps it loaded, as it
        // keeps pointers to us.
        unsafe { libc::dlclose(self.0) };
    }
}

/// All objects in the process.
fn objects() -> Vec<Object> {
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes an object's description, and `names` is the vector below.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() {
                (*names.cast::<Vec<CString>>()).push(CStr::from_ptr(name).into());
            }
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: `each` gets the vector and does not keep it. Objects are opened afterwards: the
    // loader is locked meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut names).cast()) };
    let open = |name: &CString| {
        // The program itself has no name.
        let file = match name.is_empty() {
            true => std::ptr::null(),
            false => name.as_ptr(),
        };
        // SAFETY: loads nothing that is not loaded.
        let handle = unsafe { libc::dlopen(file, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Object(handle))
    };
    names.iter().filter_map(open).collect()
}
