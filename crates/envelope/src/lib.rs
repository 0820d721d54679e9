//! What a fact looks like on the wire: metadata, headers, subjects, derived ids.
