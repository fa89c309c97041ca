"""Files for others: model cards, models for the Hugging Face Hub and ONNX, and result archives."""
