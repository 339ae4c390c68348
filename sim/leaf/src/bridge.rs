//! The border to C++ (`cpp/model.h`).

#[cxx::bridge(namespace = "ws_leaf")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("weightstream-leaf/cpp/model.h");

        type Model;

        fn model_names() -> Vec<String>;
        fn create(name: &str) -> UniquePtr<Model>;

        fn ports(&self) -> usize;
        fn name(&self, port: usize) -> &str;
        fn width(&self, port: usize) -> u32;
        fn input(&self, port: usize) -> bool;
        fn set(self: Pin<&mut Model>, port: usize, bytes: &[u8]);
        fn get(&self, port: usize, bytes: &mut [u8]);
        fn assertions(self: Pin<&mut Model>, on: bool);
        fn eval(self: Pin<&mut Model>) -> Result<()>;
    }
}
