// What the install test builds where no example of a front end exists: linking is all it shows.
int main() {
  return 0;
}
