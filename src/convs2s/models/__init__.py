"""The networks: as torch modules and as ONNX graphs. This package reads no files."""
