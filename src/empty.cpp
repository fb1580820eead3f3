namespace fusec {}
