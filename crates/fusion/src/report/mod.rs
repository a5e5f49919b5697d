//! Clusters for people: as text, as JSON, as a picture.
