//! A front end in Rust over fusec's C API, with rustc alone: reads a model in the textual form, compiles it, shows what is
//! fused and why, and runs it on the CPU by the emulator. A crate would take the declarations from bindgen.
//!
//!   rustc --edition 2021 compile.rs -L PREFIX/lib && LD_LIBRARY_PATH=PREFIX/lib ./compile

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    dtype: *const c_char,
    shape: *const i64,
    rank: usize,
}

// Handles: opaque to Rust as they are to C.
macro_rules! handles {
    ($($name:ident)*) => { $(#[repr(C)] struct $name { _private: [u8; 0] })* };
}
handles!(Error Text Options Registry Model Compilation Module);

#[link(name = "fusec")]
extern "C" {
    fn fusec_version() -> *const c_char;
    fn fusec_error_message(error: *const Error) -> *const c_char;
    fn fusec_error_free(error: *mut Error);
    fn fusec_text_data(text: *const Text) -> *const u8;
    fn fusec_text_size(text: *const Text) -> usize;
    fn fusec_text_free(text: *mut Text);
    fn fusec_options_new(options: *mut *mut Options, error: *mut *mut Error) -> i32;
    fn fusec_options_set(options: *mut Options, name: *const c_char, value: *const c_char, error: *mut *mut Error) -> i32;
    fn fusec_options_free(options: *mut Options);
    fn fusec_model_parse(text: *const c_char, size: usize, directory: *const c_char, registry: *const Registry,
                         options: *const Options, model: *mut *mut Model, error: *mut *mut Error) -> i32;
    fn fusec_model_free(model: *mut Model);
    fn fusec_compile(model: *const Model, options: *const Options, compilation: *mut *mut Compilation,
                     error: *mut *mut Error) -> i32;
    fn fusec_compilation_explain(compilation: *const Compilation, nodes: *const *const c_char, count: usize, json: i32,
                                 explanation: *mut *mut Text, error: *mut *mut Error) -> i32;
    fn fusec_compilation_product(compilation: *const Compilation, kind: *const c_char, product: *mut *mut Text,
                                 error: *mut *mut Error) -> i32;
    fn fusec_compilation_free(compilation: *mut Compilation);
    fn fusec_module_of(compilation: *const Compilation, module: *mut *mut Module, error: *mut *mut Error) -> i32;
    fn fusec_module_run_on_emulator(module: *const Module, arguments: *const Tensor, argument_count: usize,
                                    results: *const Tensor, result_count: usize, threads: i32,
                                    error: *mut *mut Error) -> i32;
    fn fusec_module_free(module: *mut Module);
}

/// Calls with a place for the error, and makes a Result of the status.
fn checked(call: impl FnOnce(*mut *mut Error) -> i32) -> Result<(), String> {
    let mut error = null_mut();
    if call(&mut error) == 0 {
        return Ok(());
    }
    let message = unsafe { CStr::from_ptr(fusec_error_message(error)) }.to_string_lossy().into_owned();
    unsafe { fusec_error_free(error) };
    Err(message)
}

/// A handle that is freed with its owner.
struct Owned<T>(*mut T, unsafe extern "C" fn(*mut T));

impl<T> Owned<T> {
    fn new(free: unsafe extern "C" fn(*mut T), make: impl FnOnce(*mut *mut T, *mut *mut Error) -> i32) -> Result<Self, String> {
        let mut handle = null_mut();
        checked(|error| make(&mut handle, error))?;
        Ok(Owned(handle, free))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        unsafe { (self.1)(self.0) }
    }
}

fn text(make: impl FnOnce(*mut *mut Text, *mut *mut Error) -> i32) -> Result<String, String> {
    let made = Owned::new(fusec_text_free, make)?;
    let bytes = unsafe { std::slice::from_raw_parts(fusec_text_data(made.0), fusec_text_size(made.0)) };
    String::from_utf8(bytes.to_vec()).map_err(|e| e.to_string())
}

fn set(options: &Owned<Options>, name: &str, value: Option<&str>) -> Result<(), String> {
    let name = CString::new(name).unwrap();
    let value = value.map(|v| CString::new(v).unwrap());
    let pointer = value.as_ref().map_or(null(), |v| v.as_ptr());
    checked(|error| unsafe { fusec_options_set(options.0, name.as_ptr(), pointer, error) })
}

const MODEL: &str = r#"
model "rms"
symbol rows min=1 max=4096
input x: float32[rows, 96]
constant weight: float32[96]
norm = rms_norm(x, weight, eps=1e-5, normalized_shape=[96])
y = silu(norm)
return y
"#;

const ROWS: usize = 4;
const COLUMNS: usize = 96;

fn right(x: &[f32], weight: &[f32]) -> Vec<f32> {
    let mut y = Vec::new();
    for row in x.chunks(COLUMNS) {
        let mean = row.iter().map(|v| f64::from(v * v)).sum::<f64>() / COLUMNS as f64;
        for (v, w) in row.iter().zip(weight) {
            let norm = f64::from(*v) / (mean + 1e-5).sqrt() * f64::from(*w);
            y.push((norm / (1.0 + (-norm).exp())) as f32);
        }
    }
    y
}

fn run() -> Result<(), String> {
    println!("fusec {}", unsafe { CStr::from_ptr(fusec_version()) }.to_str().unwrap());
    let options = Owned::new(fusec_options_free, |o, e| unsafe { fusec_options_new(o, e) })?;
    set(&options, "arch", Some("sm_90a"))?;
    set(&options, "ptx", None)?;
    let model = Owned::new(fusec_model_free, |m, e| unsafe {
        fusec_model_parse(MODEL.as_ptr().cast(), MODEL.len(), null(), null(), options.0, m, e)
    })?;
    let compiled = Owned::new(fusec_compilation_free, |c, e| unsafe { fusec_compile(model.0, options.0, c, e) })?;
    let kind = CString::new("summary").unwrap();
    println!("{}", text(|t, e| unsafe { fusec_compilation_product(compiled.0, kind.as_ptr(), t, e) })?);
    println!("{}", text(|t, e| unsafe { fusec_compilation_explain(compiled.0, null(), 0, 0, t, e) })?);
    let module = Owned::new(fusec_module_free, |m, e| unsafe { fusec_module_of(compiled.0, m, e) })?;

    let mut x: Vec<f32> = (0..ROWS * COLUMNS).map(|i| (i % 11) as f32 - 5.0).collect();
    let mut weight: Vec<f32> = (0..COLUMNS).map(|i| i as f32 / 48.0).collect();
    let mut y = vec![0f32; ROWS * COLUMNS];
    let float32 = CString::new("float32").unwrap();
    let (rows, columns) = ([ROWS as i64, COLUMNS as i64], [COLUMNS as i64]);
    let tensor = |data: &mut Vec<f32>, shape: &[i64]| Tensor {
        data: data.as_mut_ptr().cast(),
        dtype: float32.as_ptr(),
        shape: shape.as_ptr(),
        rank: shape.len(),
    };
    let arguments = [tensor(&mut x, &rows), tensor(&mut weight, &columns)];
    let results = [tensor(&mut y, &rows)];
    checked(|e| unsafe {
        fusec_module_run_on_emulator(module.0, arguments.as_ptr(), arguments.len(), results.as_ptr(), results.len(), 0, e)
    })?;
    let worst = y.iter().zip(right(&x, &weight)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("the largest error is {:.1e}", worst);
    if worst < 1e-4 { Ok(()) } else { Err("wrong numbers".to_string()) }
}

fn main() {
    if let Err(message) = run() {
        eprintln!("error: {}", message);
        std::process::exit(1);
    }
}
