//! Writes safetensors one tensor at a time: a large model need not be in memory to be written.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use candle_core::{DType, Tensor};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

/// Headers are filled up with spaces to this, so that the data is aligned.
const ALIGNMENT: usize = 8;

/// What is written: name, precision and shape.
pub(super) type Planned = (String, DType, Vec<usize>);

/// Writes the planned tensors in their order; `make` gives each when its turn comes.
pub(super) fn write<E: From<io::Error>>(
    path: &Path,
    planned: &[Planned],
    mut make: impl FnMut(&str) -> Result<Tensor, E>,
) -> Result<(), E> {
    let mut offset = 0;
    let mut infos = Vec::with_capacity(planned.len());
    for (name, dtype, shape) in planned {
        let bytes = shape.iter().product::<usize>() * dtype.size_in_bytes();
        let info = TensorInfo { dtype: stored(*dtype)?, shape: shape.clone(), data_offsets: (offset, offset + bytes) };
        offset += bytes;
        infos.push((name.clone(), info));
    }
    let header = Metadata::new(None, infos).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&header).map_err(io::Error::from)?;
    header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for (name, dtype, shape) in planned {
        let tensor = make(name)?;
        if tensor.dtype() != *dtype || tensor.dims() != shape {
            return Err(io::Error::other(format!("{name} is not as it was planned")).into());
        }
        tensor.write_bytes(&mut out).map_err(io::Error::other)?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

fn stored(dtype: DType) -> io::Result<Dtype> {
    match dtype {
        DType::F32 => Ok(Dtype::F32),
        DType::F16 => Ok(Dtype::F16),
        DType::BF16 => Ok(Dtype::BF16),
        other => Err(io::Error::other(format!("{other:?} is no type of weights"))),
    }
}
