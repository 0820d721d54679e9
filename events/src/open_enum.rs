//! Reasons that keep values they have never heard of.

/// Declares an open enum of wire codes: the named values, and `Other` with the text of any value from the future.
///
/// `Other` keeps the text, so that a fact that is stored, forwarded or replayed by an older build is not changed by it.
macro_rules! open_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $code:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[doc = $doc])+ #[serde(rename = $code)] $variant,)+
            /// Any other code, kept as it came.
            #[serde(untagged)]
            Other(String),
        }

        impl $name {
            /// The code on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $code,)+
                    Self::Other(code) => code,
                }
            }
        }

        impl From<&str> for $name {
            fn from(code: &str) -> Self {
                match code {
                    $($code => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use open_enum;
