//! Reads the data as a GGUF file, and widens its tensors where they are few.
#![no_main]

use warpforge_tensor::Blob;
use warpforge_tensor::io::gguf;

/// The most numbers that are widened.
const MOST: usize = 1 << 16;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(file) = gguf::decode(&Blob::from(data.to_vec())) else { return };
    for stored in file.tensors().values() {
        let elements: usize = stored.dims.iter().product();
        if elements <= MOST {
            let tensor = stored.to_f32().expect("a tensor of a file that was read");
            assert_eq!(tensor.dims(), stored.dims);
        }
    }
});
