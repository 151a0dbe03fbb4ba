"""What is taught: lessons and exercises, where they meet the engine, and all that is said of them."""
