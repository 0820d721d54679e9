//! Messages of the PostgreSQL protocol, version 3: a type, a length that counts itself, a body.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// No message of a test is that long.
const LENGTH_MAX: usize = 64 << 20;

/// One message.
#[derive(Debug)]
pub(super) struct Frame {
    /// None for the first message of a connection, which has no type.
    pub(super) kind: Option<u8>,
    pub(super) body: Vec<u8>,
}

impl Frame {
    /// The next message with a type; none at the end of the connection.
    pub(super) async fn read(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut kind = [0];
        if reader.read(&mut kind).await? == 0 {
            return Ok(None);
        }
        Ok(Some(Self { kind: Some(kind[0]), body: body(reader).await? }))
    }

    /// The first message of a client.
    pub(super) async fn read_first(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        Ok(Self { kind: None, body: body(reader).await? })
    }

    pub(super) async fn write(&self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let length = u32::try_from(self.body.len() + 4).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(self.body.len() + 5);
        bytes.extend(self.kind);
        bytes.extend(length.to_be_bytes());
        bytes.extend(&self.body);
        writer.write_all(&bytes).await
    }

    /// An error of the server, in a class that says nothing about connections, locks or constraints.
    pub(super) fn error(message: &str) -> Self {
        let fields = [(b'S', "ERROR"), (b'V', "ERROR"), (b'C', "XX000"), (b'M', message)];
        let mut body = Vec::new();
        for (field, value) in fields {
            body.push(field);
            body.extend(value.as_bytes());
            body.push(0);
        }
        body.push(0);
        Self { kind: Some(b'E'), body }
    }

    /// The texts that the body begins with, each ended by a zero byte.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

async fn body(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = reader.read_u32().await?;
    let rest = usize::try_from(length).ok().and_then(|length| length.checked_sub(4)).filter(|rest| *rest <= LENGTH_MAX);
    let Some(rest) = rest else { return Err(io::Error::other(format!("a message of {length} bytes"))) };
    let mut body = vec![0; rest];
    reader.read_exact(&mut body).await?;
    Ok(body)
}
