// Placeholder so that the library exists; goes away with the first real source.
namespace fusec {}
