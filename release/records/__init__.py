"""What a release says of itself: bills of materials, where it comes from, and checksums."""
