//! Writes a safetensors file one tensor at a time: a large model need not be in memory to be written.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use candle_core::{DType, Tensor};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

/// Headers are filled up with spaces to this, so that the data is aligned.
const ALIGNMENT: usize = 8;

/// What is written: name, precision and shape.
pub(crate) type Planned = (String, DType, Vec<usize>);

/// Writes the planned tensors in their order; `fill` puts each when its turn comes.
pub(crate) fn write<E: From<io::Error>>(
    path: &Path,
    planned: &[Planned],
    mut fill: impl FnMut(&str, &mut Output<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = BufWriter::new(File::create(path)?);
    let header = header(planned)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for planned in planned {
        let mut output = Output { file: &mut out, planned, left: bytes(planned) };
        fill(&planned.0, &mut output)?;
        if output.left != 0 {
            return Err(output.is_not_as_planned().into());
        }
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

/// Writes tensors that are at hand.
pub(crate) fn write_all<'a>(path: &Path, tensors: impl Iterator<Item = (&'a str, &'a Tensor)>) -> io::Result<()> {
    let tensors: Vec<_> = tensors.collect();
    let planned = |(name, tensor): &(&str, &Tensor)| ((*name).to_owned(), tensor.dtype(), tensor.dims().to_vec());
    let planned: Vec<_> = tensors.iter().map(planned).collect();
    let mut rest = tensors.into_iter();
    write(path, &planned, |_, output| rest.next().map_or(Ok(()), |(_, tensor)| output.tensor(tensor)))
}

/// Where the numbers of one tensor go.
pub(crate) struct Output<'a> {
    file: &'a mut BufWriter<File>,
    planned: &'a Planned,
    left: usize,
}

impl Output<'_> {
    /// All of it.
    pub(crate) fn tensor(&mut self, tensor: &Tensor) -> io::Result<()> {
        let (_, dtype, shape) = self.planned;
        if tensor.dtype() != *dtype || tensor.dims() != shape {
            return Err(self.is_not_as_planned());
        }
        // What the disk says must stay to be recognised.
        tensor.write_bytes(self).map_err(|error| match error {
            candle_core::Error::Io(error) => error,
            other => io::Error::other(other),
        })
    }

    /// The next numbers of a tensor of f32.
    pub(crate) fn floats(&mut self, numbers: &[f32]) -> io::Result<()> {
        if self.planned.1 != DType::F32 {
            return Err(self.is_not_as_planned());
        }
        numbers.iter().try_for_each(|number| self.write_all(&number.to_le_bytes()))
    }

    fn is_not_as_planned(&self) -> io::Error {
        io::Error::other(format!("{} is not as it was planned", self.planned.0))
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.left {
            return Err(self.is_not_as_planned());
        }
        let written = self.file.write(bytes)?;
        self.left -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn bytes((_, dtype, shape): &Planned) -> usize {
    shape.iter().product::<usize>() * dtype.size_in_bytes()
}

/// Others ask which framework's tensors these are.
fn header(planned: &[Planned]) -> io::Result<Vec<u8>> {
    let mut offset = 0;
    let mut infos = Vec::with_capacity(planned.len());
    for tensor in planned {
        let (name, dtype, shape) = tensor;
        let end = offset + bytes(tensor);
        let info = TensorInfo { dtype: stored(*dtype)?, shape: shape.clone(), data_offsets: (offset, end) };
        offset = end;
        infos.push((name.clone(), info));
    }
    let framework = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let header = Metadata::new(Some(framework), infos).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
    Ok(header)
}

fn stored(dtype: DType) -> io::Result<Dtype> {
    match dtype {
        DType::F32 => Ok(Dtype::F32),
        DType::F16 => Ok(Dtype::F16),
        DType::BF16 => Ok(Dtype::BF16),
        other => Err(io::Error::other(format!("{other:?} is no type of weights"))),
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn planned() -> [Planned; 2] {
        [("a".to_owned(), DType::BF16, vec![2, 2]), ("b".to_owned(), DType::F32, vec![3])]
    }

    #[test]
    fn is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        let whole = Tensor::new(&[[1f32, 2.], [3., 4.]], &Device::Cpu).unwrap().to_dtype(DType::BF16).unwrap();
        write(&path, &planned(), |name, output| match name {
            "a" => output.tensor(&whole),
            _ => output.floats(&[5.0]).and_then(|()| output.floats(&[6.0, 7.0])),
        })
        .unwrap();
        let read = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
        assert_eq!(read["a"].to_dtype(DType::F32).unwrap().to_vec2::<f32>().unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(read["b"].to_vec1::<f32>().unwrap(), [5.0, 6.0, 7.0]);
    }

    #[test]
    fn refuses_what_is_shorter_or_longer_than_planned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        for numbers in [&[1.0; 2][..], &[1.0; 4]] {
            let planned = &planned()[1..];
            let failed = write(&path, planned, |_, output| output.floats(numbers)).unwrap_err();
            assert_eq!(failed.to_string(), "b is not as it was planned");
        }
    }
}
