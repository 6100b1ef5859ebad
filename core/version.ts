/** The version in package.json, which is not in a function's bundle; a test compares the two. */
export const version = '0.1.0';
